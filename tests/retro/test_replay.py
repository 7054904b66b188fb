"""Replays in fresh processes, against stable-retro's own player and recorder; claims that are not so."""

import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from harness.errors import Problem
from retro.inputs import format_inputs, mask
from retro.movie import Evidence, Movie, read_movie, write_movie
from retro.packages import load_package
from retro.replay import Replay, compare, make_movie, package_of, replay, replay_fresh, verify

PACKAGES = ("airstriker", "quarterstep")

# The official player draws on a display; where there is none it can still play.
PLAY = """
import sys
from functools import partial
import stable_retro, xxhash
from stable_retro.scripts import playback_movie
stable_retro.data.Integrations.add_custom_path(sys.argv[2])
stable_retro.make = partial(
    stable_retro.make, render_mode="rgb_array", inttype=stable_retro.data.Integrations.ALL
)
emulator, movie, duration = playback_movie.load_movie(sys.argv[1])
playback_movie.playback_movie(emulator, movie)
print(xxhash.xxh3_64_hexdigest(emulator.get_ram().tobytes()[:int(sys.argv[3])]))
"""

RECORD = """
import sys
import numpy as np
import stable_retro, xxhash
stable_retro.data.Integrations.add_custom_path(sys.argv[2])
env = stable_retro.make(
    sys.argv[4],
    state=getattr(stable_retro.State, sys.argv[5]),
    use_restricted_actions=stable_retro.Actions.ALL,
    render_mode="rgb_array",
    inttype=stable_retro.data.Integrations.ALL,
)
env.record_movie(sys.argv[1])
env.reset()
for bits in map(int, sys.argv[6:]):
    env.step(np.array([bits >> place & 1 for place in range(env.num_buttons)], np.uint8))
env.stop_record()
print(xxhash.xxh3_64_hexdigest(env.get_ram().tobytes()[:int(sys.argv[3])]))
"""

WORK_RAM = {"airstriker": "65536", "quarterstep": "2048"}


def inputs_for(name: str, count: int = 700, seed: int = 1) -> list[int]:
    """A frame of nothing, then holds; START often at first, so that the game begins."""
    buttons = load_package(name).console_buttons
    generator = random.Random(seed)
    keys = [mask([key], buttons) for key in ("LEFT", "RIGHT", "UP", "A", "B")]
    inputs = [0]
    while len(inputs) < count:
        start = mask(["START"], buttons) if len(inputs) < 420 and generator.random() < 0.4 else 0
        inputs += [start | sum(generator.sample(keys, generator.randint(0, 2)))] * generator.randint(1, 10)
    return inputs[:count]


def in_subprocess(script: str, *arguments: str, folder: Path) -> str:
    """The last line that a script prints which knows nothing of this repository."""
    command = [sys.executable, "-W", "ignore", "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


@pytest.fixture(scope="module", params=PACKAGES)
def played(request: pytest.FixtureRequest) -> tuple[str, list[int], Replay]:
    inputs = inputs_for(request.param)
    return request.param, inputs, replay_fresh(request.param, inputs)


@pytest.fixture(scope="module")
def short() -> Movie:
    """A movie of Quarterstep in 90 frames."""
    inputs = inputs_for("quarterstep", 90)
    return make_movie(load_package("quarterstep"), inputs, replay_fresh("quarterstep", inputs))


def custom_path(name: str) -> str:
    """Where stable-retro looks for the game: the folder of its integration's folder."""
    return str(load_package(name).integration.parent)


# ---- the same in every process -----------------------------------------------------------------------------


def test_a_fresh_process_shows_what_this_one_does(played: tuple[str, list[int], Replay]) -> None:
    name, inputs, fresh = played
    package = load_package(name)
    seen: list[int] = []
    here = replay(package, inputs, watch=lambda emulator, ram: seen.append(package.state_of(ram)))
    # A core may keep addresses of its process in a state.
    assert here._replace(boot=b"") == fresh._replace(boot=b"") and len(here.boot) == len(fresh.boot)
    assert here.frames == len(seen) == len(inputs) == 700
    assert len(here.ram_hashes) == 12 and len(set(here.ram_hashes)) == 12
    first = {package.states[index].name: seen.index(index) + 1 for index in seen[::-1] if index >= 0}
    assert dict(sorted(here.splits.items(), key=lambda item: item[1])) == here.splits
    assert here.splits == {name: first[name] for name in here.splits} and here.splits.keys() == first.keys()
    assert here.ending == package.states[-1].name and here.rom_sha256 == fresh.rom_sha256


def test_inputs_may_be_text(short: Movie) -> None:
    text = format_inputs(short.inputs, load_package("quarterstep").console_buttons)
    shown = replay_fresh("quarterstep", text)
    assert shown.evidence == short.evidence and shown.boot == short.boot


def test_replays_from_a_daemon(short: Movie) -> None:
    with get_context("spawn").Pool(
        1
    ) as pool:  # its workers are daemons, which may have no children of the kind
        assert pool.apply(replay_fresh, ("quarterstep", short.inputs)).evidence == short.evidence


def test_replays_while_this_process_holds_an_emulator(short: Movie) -> None:
    package = load_package("airstriker")
    emulator = package.open()
    try:
        assert replay_fresh("quarterstep", short.inputs).evidence == short.evidence
        with pytest.raises(Problem, match="another emulator"):
            replay(package, [0])
    finally:
        emulator.close()


# ---- stable-retro ------------------------------------------------------------------------------------------


def test_stable_retro_s_player_ends_where_the_replay_does(
    played: tuple[str, list[int], Replay], tmp_path: Path
) -> None:
    name, inputs, fresh = played
    write_movie(tmp_path / "movie.bk2", make_movie(load_package(name), inputs, fresh))
    path = str(tmp_path / "movie.bk2")
    assert (
        in_subprocess(PLAY, path, custom_path(name), WORK_RAM[name], folder=tmp_path) == fresh.ram_hashes[-1]
    )


@pytest.mark.parametrize("name", PACKAGES)
def test_what_stable_retro_recorded_from_power_on_replays(name: str, tmp_path: Path) -> None:
    inputs, path = inputs_for(name, 500), str(tmp_path / "movie.bk2")
    where = path, custom_path(name), WORK_RAM[name], load_package(name).name, "NONE"
    last = in_subprocess(RECORD, *where, *map(str, inputs), folder=tmp_path)
    shown = verify(tmp_path / "movie.bk2")
    assert shown.replay.ram_hashes[-1] == last and shown.replay.splits
    assert not shown.compared and shown.differences == [] and shown.package == name
    assert shown.movie.inputs == (0, 0, *inputs)


def test_a_movie_from_a_savestate_is_refused(tmp_path: Path) -> None:
    where = (
        str(tmp_path / "movie.bk2"),
        custom_path("airstriker"),
        "65536",
        "Airstriker-Genesis-v0",
        "DEFAULT",
    )
    in_subprocess(RECORD, *where, "0", "1", folder=tmp_path)
    with pytest.raises(Problem, match=r"movie\.bk2: the movie starts from a savestate, not from power-on"):
        verify(tmp_path / "movie.bk2")


# ---- verification ------------------------------------------------------------------------------------------


def test_a_movie_that_is_as_it_claims(played: tuple[str, list[int], Replay], tmp_path: Path) -> None:
    name, inputs, fresh = played
    movie = make_movie(load_package(name), inputs, fresh)
    write_movie(tmp_path / "movie.bk2", movie)
    shown = verify(tmp_path / "movie.bk2")
    assert shown.compared and shown.differences == [] and shown.package == name
    assert shown.movie == movie == read_movie(tmp_path / "movie.bk2")


def claims(change: Callable[[Evidence], Evidence]) -> Callable[[Movie], Movie]:
    def changed(movie: Movie) -> Movie:
        assert movie.evidence is not None
        return replace(movie, evidence=change(movie.evidence))

    return changed


def lie(hashes: tuple[str, ...], place: int) -> tuple[str, ...]:
    return (*hashes[:place], "0" * 16, *hashes[place + 1 :])


@pytest.mark.parametrize(
    ("forge", "found"),
    [
        (
            claims(lambda e: replace(e, ram_hashes=lie(e.ram_hashes, 3))),
            "work RAM differs after frame 240: 0000",
        ),
        (
            claims(lambda e: replace(e, ram_hashes=lie(e.ram_hashes, 11))),
            "work RAM differs after frame 700: 00",
        ),
        (claims(lambda e: replace(e, ram_hashes=e.ram_hashes[:5])), "5 hashes of work RAM, expected 12"),
        (claims(lambda e: replace(e, screen_hash="0" * 16)), "the last picture differs: 0000"),
        (claims(lambda e: replace(e, splits={})), "title is entered at frame None, by the replay at"),
        (
            claims(lambda e: replace(e, splits={**e.splits, "ending": 700})),
            "ending is entered at frame 700, ",
        ),
    ],
)
def test_claims_that_are_not_so_are_named(
    forge: Callable[[Movie], Movie], found: str, played: tuple[str, list[int], Replay]
) -> None:
    name, inputs, fresh = played
    differences = compare(forge(make_movie(load_package(name), inputs, fresh)), fresh)
    assert differences and found in differences[0]


def test_a_movie_with_other_inputs_does_not_verify(short: Movie, tmp_path: Path) -> None:
    write_movie(tmp_path / "movie.bk2", replace(short, inputs=(0, *short.inputs[:-1])))
    assert "work RAM differs after frame" in verify(tmp_path / "movie.bk2").differences[0]


def test_other_versions_are_named_only_where_something_differs(played: tuple[str, list[int], Replay]) -> None:
    name, inputs, fresh = played
    movie = make_movie(load_package(name), inputs, fresh)
    old = replace(movie, versions={**movie.versions, "stable-retro": "0.9"})
    assert compare(old, fresh) == []
    differences = compare(old, fresh._replace(screen_hash="1" * 16))
    assert "it was made on stable-retro 0.9, and here is 1.0.1" in differences


@pytest.mark.parametrize(
    ("forge", "reason"),
    [
        (lambda movie: replace(movie, rom_sha256="0" * 64), "a movie of another ROM: its SHA-256 is 0000"),
        (
            lambda movie: replace(movie, game="Unknown-Nes-v0"),
            "nor stable-retro has the ROM of Unknown-Nes-v0",
        ),
        (lambda movie: replace(movie, boot=b"FCS" + bytes(100)), "starts from a savestate"),
    ],
)
def test_movies_that_cannot_be_verified(
    forge: Callable[[Movie], Movie], reason: str, short: Movie, tmp_path: Path
) -> None:
    write_movie(tmp_path / "movie.bk2", forge(short))
    with pytest.raises(Problem, match=reason):
        verify(tmp_path / "movie.bk2")


def test_a_movie_of_another_game_than_the_package_s(short: Movie, tmp_path: Path) -> None:
    write_movie(tmp_path / "movie.bk2", short)
    with pytest.raises(Problem, match="a movie of Quarterstep-Nes-v0, not of Airstriker-Genesis-v0"):
        verify(tmp_path / "movie.bk2", "airstriker")


def test_packages_by_game() -> None:
    assert package_of("Airstriker-Genesis-v0") == "airstriker"
    assert package_of("Quarterstep-Nes-v0") == "quarterstep"
    assert package_of("1942-Nes-v0") is None


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ([], "at least one frame"),
        ([8, 0], "the first without buttons"),
        ([0, 2], "not buttons"),
        ("1 2:Q", "inputs, line 1, column 3: 'Q' is not a button"),
    ],
)
def test_malformed_inputs(inputs: list[int] | str, reason: str) -> None:
    with pytest.raises(Problem, match=reason):
        replay_fresh("quarterstep", inputs)


def test_a_package_that_is_not_there() -> None:
    with pytest.raises(Problem, match="no game package 'zelda'"):
        replay_fresh("zelda", [0])


def test_a_package_from_a_folder_of_this_process_s_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_strike.py").write_text(
        "from retro.packages import GamePackage, State, Variable\n\n\n"
        "class Strike(GamePackage):\n"
        "    name = 'Airstriker-Genesis-v0'\n    title = 'Mine'\n"
        "    variables = {'level': Variable(16712280, '>u2')}\n"
        "    states = (\n"
        "        State('begin', 'start', lambda ram: ram.level == 0, dead=lambda ram: ram.level == 0),\n"
        "        State('play', 'play', lambda ram: ram.level > 0),\n    )\n"
        "    buttons = ((), ('START',))\n    holds = (1,)\n\n"
        "    def cell(self, ram):\n        return (ram.level,)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    shown = replay_fresh("my_strike:Strike", [0] * 30, hash_every=7)
    assert (shown.splits, shown.ending, shown.dead) == ({"begin": 1}, "play", 1)
    assert len(shown.ram_hashes) == 5
