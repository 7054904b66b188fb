"""The score is that of movies played again: of the optimum, of slower ones, of none, and of forged ones."""

import json
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from retro_runs import make_run, slower

from harness.errors import Problem
from harness.intervals import bootstrap
from harness.track import ROOT, fixed_file_hashes
from retro.evidence import (
    fastest,
    read_movies,
    write_evidence,
)  # fmt: skip
from retro.task import EVIDENCE, GAMES
from retro.track import MISSING, TRACK, replay_all, score

SEED = 7
GAME = GAMES[0]
Line = dict[str, Any]


def test_the_optimum_is_what_it_says() -> None:
    replay = next(replay_all([fastest(GAME)]))
    assert replay is not None and replay.frames == GAME.best and replay.splits == GAME.best_splits


def test_ratios_to_the_optimum_are_averaged_over_searches(tmp_path: Path) -> None:
    texts = [slower(0), slower(10), slower(20), slower(10), None, f"{GAME.best}", slower(0), slower(20)]
    evidence = make_run(tmp_path, SEED, texts) / EVIDENCE
    best = GAME.best
    ratios = (
        1,
        (best + 10) / best,
        (best + 20) / best,
        (best + 10) / best,
        MISSING,
        MISSING,
        1,
        (best + 20) / best,
    )
    result = score(evidence)
    assert result.outcomes == pytest.approx(ratios)
    assert result.value == pytest.approx(sum(ratios) / 8)
    assert (result.low, result.high) == bootstrap(ratios)
    assert (result.count, result.unit, result.seed, result.hardware_class) == (8, "searches", SEED, "cpu")
    assert not TRACK.clears(result)


def test_where_all_searches_are_equal_the_interval_is_a_point(tmp_path: Path) -> None:
    result = score(make_run(tmp_path, SEED, [slower(0)] * 8) / EVIDENCE)
    assert (result.value, result.low, result.high) == (1, 1, 1)
    assert TRACK.clears(result) and TRACK.verdict(result).startswith("the high end 1 is below the target")


def test_a_run_without_a_movie_has_the_worst_score(tmp_path: Path) -> None:
    result = score(make_run(tmp_path, SEED, [None] * 8) / EVIDENCE)
    assert (result.value, result.low, result.high) == (MISSING, MISSING, MISSING)


def test_no_movie_is_worse_than_none(tmp_path: Path) -> None:
    result = score(make_run(tmp_path, SEED, [slower(9 * GAME.best), *[None] * 7]) / EVIDENCE)
    assert result.outcomes == (MISSING,) * 8


FORGERIES: list[tuple[Callable[[Line], object], str]] = [
    (lambda row: row.update(frames=row["frames"] - 1), r"frames is \d+, expected \d+ by the replay"),
    (lambda row: row.update(frames=None), r"frames is None, expected \d+ by the replay"),
    (lambda row: row.update(frames=float(row["frames"])), r"frames is \d+\.0, expected \d+ by the replay"),
    (lambda row: row["ram"].__setitem__(3, "0" * 16), "hash 3 of work RAM, one every 60 frames, is 0000"),
    (lambda row: row["ram"].pop(), r"hash \d+ of work RAM.* is None, expected"),
    (lambda row: row["ram"].append("0" * 16), r"hash \d+ of work RAM.* expected None by the replay"),
    (lambda row: row.update(ram={}), "ram is {}, expected"),
    (lambda row: row["splits"].update(ending=1), "splits is"),
    (lambda row: row["splits"].pop("level-1"), "splits is"),
    (lambda row: row.update(splits=[]), "splits is"),
    (lambda row: row.update(screen="0" * 16), "screen is 0000000000000000, expected"),
    (lambda row: row.update(screen=None), "screen is None, expected"),
]


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run"), SEED, [slower(0), None, *[slower(5)] * 6]) / EVIDENCE


@pytest.mark.parametrize(("forge", "reason"), FORGERIES)
@pytest.mark.parametrize("row", [1, 4])
def test_what_a_replay_does_not_show_is_named_by_line(
    evidence: Path, tmp_path: Path, forge: Callable[[Line], object], reason: str, row: int
) -> None:
    lines = [json.loads(line) for line in lzma.decompress(evidence.read_bytes()).splitlines()]
    forge(lines[row])
    path = tmp_path / "evidence.jsonl.xz"
    (tmp_path / "movies.json").write_bytes(evidence.with_name("movies.json").read_bytes())
    path.write_bytes(lzma.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    with pytest.raises(Problem, match=reason) as caught:
        score(path)
    assert (caught.value.file, caught.value.line) == (str(path), row + 1)


def test_a_search_without_a_movie_can_claim_none(evidence: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in lzma.decompress(evidence.read_bytes()).splitlines()]
    lines[2] |= {name: lines[1][name] for name in ("frames", "ram", "splits", "screen")}
    (tmp_path / "movies.json").write_bytes(evidence.with_name("movies.json").read_bytes())
    path = tmp_path / "evidence.jsonl.xz"
    path.write_bytes(lzma.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    with pytest.raises(Problem, match=r"frames is .*, expected None by the replay"):
        score(path)


def test_a_replay_on_another_emulator_says_so(evidence: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in lzma.decompress(evidence.read_bytes()).splitlines()]
    lines[0]["versions"] = {"stable-retro": "0.9"}
    path = tmp_path / "evidence.jsonl.xz"
    (tmp_path / "movies.json").write_bytes(evidence.with_name("movies.json").read_bytes())
    write_evidence(path, lines[0], lines[1:])
    assert score(path).outcomes[0] == 1  # the replay is the same all the same
    lines[1]["screen"] = "0" * 16
    write_evidence(path, lines[0], lines[1:])
    with pytest.raises(Problem, match=r"Remedy: it was made on .*0\.9.*, and here is .*1\.0\.1"):
        score(path)


def test_without_the_emulator_there_is_one_clear_problem(
    evidence: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retro.track.find_spec", lambda name: None if name == "stable_retro" else name)
    with pytest.raises(Problem, match=r"takes the stable-retro library. Remedy: pip install '.\[retro\]'"):
        list(replay_all(read_movies(evidence.with_name("movies.json"), SEED)))
    assert TRACK.ready() == ["the stable-retro library"]


def test_verification_needs_no_torch(evidence: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from harness.track import load_track\n"
        "from pathlib import Path\n"
        "print(load_track('retro').score(Path(sys.argv[1])).outcomes[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(evidence)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1.0\n"


def test_the_set_piece_takes_time() -> None:
    assert TRACK.calibrate() > 0


def test_what_is_fixed_holds_the_game_and_the_emulator() -> None:
    hashes = fixed_file_hashes(TRACK)
    assert {GAME.rom, "retro/emulator.py", "retro/replay.py", "retro/track.py"} <= hashes.keys()
    assert GAME.optimum in hashes and "retro/speedrun.py" not in hashes
    assert TRACK.data_files() == {f"{GAME.name}/rom.nes": hashes[GAME.rom]}
