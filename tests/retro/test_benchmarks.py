"""The benchmarks of the retro track run, and their contestants play the same game from power-on."""

import gc
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from benchmarks import retro_against_peers as peers
from benchmarks import retro_speed as speed
from harness.files import read_json
from harness.track import ROOT
from retro.packages import load_package
from retro.replay import replay
from retro.task import GAMES

SPEC = GAMES[0].package


@pytest.fixture
def goal() -> Iterator[peers.Goal]:
    made = peers.Goal(load_package(SPEC), limit=2 * GAMES[0].best)
    yield made
    made.close()
    del made
    gc.collect()  # a process holds one emulator


def test_brutes_environment_plays_the_optimum_from_power_on_every_time(goal: peers.Goal) -> None:
    inputs = peers.fastest_known(SPEC, goal.package)
    assert inputs is not None
    for _ in range(2):
        goal.reset()
        gained = 0.0
        for bits in inputs[1:]:
            _, gain, done, cut, _ = goal.step(goal.masks[max(0, goal.state)].index(bits))
            gained += gain
        assert (done, cut, goal.complete, goal.inputs) == (True, False, True, inputs)
        # The ending's index, half for a reward of nothing, and 2 - 1/2 for half the limit.
        assert gained == pytest.approx(len(goal.package.states) - 1 + 0.5 + 1.5)
    del goal


def test_brute_is_cut_off_at_the_limit_and_gains_nothing_by_waiting(goal: peers.Goal) -> None:
    goal.reset()
    seen = [goal.step(0)[1:4] for _ in range(2 * GAMES[0].best - 1)]
    assert [cut for _, _, cut in seen] == [False] * (len(seen) - 1) + [True]
    assert sum(gain for gain, _, _ in seen) == 0.5  # the title, which rewards nothing
    del goal


def test_the_whole_game_is_one_segment_with_the_states_in_its_cells() -> None:
    package = load_package(SPEC)
    one = peers.whole(package)
    inputs = peers.fastest_known(SPEC, package)
    assert inputs is not None
    held, inner, deaths = [], [], 0

    def watch(_: object, ram: object) -> None:
        nonlocal deaths
        held.append(one.state_of(ram))
        if held[-1] >= 0:
            inner.append(one.cell(ram)[0])
            assert one.cell(ram)[1:] == package.cell(ram)
        deaths += one.states[0].dead(ram)

    replay(package, inputs, watch=watch)
    assert held.index(1) == len(inputs) - 1  # the ending
    assert sorted(set(inner)) == list(range(len(package.states)))
    assert inner == sorted(inner)
    assert not deaths


def test_more_reward_is_more_progress_and_a_later_state_most() -> None:
    class Sloped(type(load_package(SPEC))):  # type: ignore[misc]
        states = tuple(
            peers.replace(state, reward=lambda ram: ram) for state in load_package(SPEC).states[:2]
        )

    package = Sloped()
    rewards = (-1e9, -100.0, -1.0, 0.0, 1.0, 100.0, 1e9)
    worth = [peers.progress(package, state, reward) for state in (0, 1) for reward in rewards]
    assert worth == sorted(set(worth))


def test_no_movie_is_worse_than_any() -> None:
    assert peers.spread([3.0, None, 2.0]) == ("3", "3  none  2")
    assert peers.spread([None, None, 2.0]) == ("none", "none  none  2")


def test_every_contestant_has_its_time_and_the_table_its_row(tmp_path) -> None:  # type: ignore[no-untyped-def]
    out = tmp_path / "peers.json"
    command = [sys.executable, "-W", "error", "-m", "benchmarks.retro_against_peers"]
    arguments = ["--seconds", "1", "--seeds", "1", "--games", SPEC, "--out", str(out)]
    shown = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert f"the fewest frames known are {GAMES[0].best:,}" in shown.stdout
    for contestant in peers.CONTESTANTS:
        assert re.search(rf"^ *{contestant} .*(\d|none)", shown.stdout, re.MULTILINE)
    outcomes = read_json(out)["outcomes"]
    assert sorted(one["contestant"] for one in outcomes) == sorted(peers.CONTESTANTS)
    assert all(1 <= one["cpu_seconds"] < 8 for one in outcomes)


def test_a_game_or_contestant_that_is_none_is_named() -> None:
    command = [sys.executable, "-m", "benchmarks.retro_against_peers"]
    for arguments, said in ((["--games", "ping"], "'ping'"), (["--contestants", "Brut"], "'Brut'")):
        shown = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        assert shown.returncode == 2
        assert said in shown.stderr
        assert "Traceback" not in shown.stderr


def test_a_piece_of_work_is_timed_on_a_worker_and_on_the_core() -> None:
    turns = speed.measure_worker(SPEC, speed.longest_segment(SPEC), turns=1, begun=1)
    assert {"walks", "frontier", "tree"} <= set(turns)
    for (turn,) in turns.values():
        assert 0 < turn.states <= turn.frames <= turn.run
        assert 0 < turn.core < 3 * turn.worker
