"""Standing records of the tracks pass every check; made untrue in one way, they fail the check for that."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from forgeries import llm, non_llm, retro
from forgeries.table import Forgery, identify, judge, judge_seed, rows
from harness.track import ROOT
from toy_track.forging import Forged, Step, failing

TABLES = {"non_llm": non_llm, "llm": llm, "retro": retro}


@pytest.fixture(scope="module")
def _copies(tmp_path_factory: pytest.TempPathFactory, boxoban_folder: Path) -> dict[str, Forged]:
    return {
        track: Forged(ROOT / "records" / track / table.ORIGINAL, ROOT, tmp_path_factory.mktemp(track))
        for track, table in TABLES.items()
    }


@pytest.fixture
def copies(_copies: dict[str, Forged]) -> Iterator[dict[str, Forged]]:
    yield _copies
    for copy in _copies.values():
        copy.restore()


@pytest.mark.parametrize("track", TABLES)
def test_a_true_record_passes(track: str, copies: dict[str, Forged]) -> None:
    assert failing(copies[track].checks()) == {}


TRUE: dict[str, Step] = {
    "later libraries": lambda f: f.manifest(packages={"torch": "3.0.0"}),
    "another Python": lambda f: f.manifest(machine=f.read_manifest()["machine"] | {"python": "3.14.1"}),
    "a harmless variable": lambda f: f.manifest(environment={"CUDA_VISIBLE_DEVICES": ""}),
    "another place for the checkout": lambda f: f.manifest(git=None),
}
"""What two honest runs may differ in."""


@pytest.mark.parametrize("track", TABLES)
@pytest.mark.parametrize("name", TRUE)
def test_what_is_not_ruled_changes_nothing(name: str, track: str, copies: dict[str, Forged]) -> None:
    copies[track].part = "verification"
    TRUE[name](copies[track])
    copies[track].finish()
    assert failing(copies[track].checks()) == {}


@pytest.mark.parametrize(("forgery", "part"), rows(non_llm.FORGERIES), ids=identify)
def test_non_llm(forgery: Forgery, part: str, copies: dict[str, Forged]) -> None:
    judge(forgery, part, copies["non_llm"])


@pytest.mark.parametrize(("forgery", "part"), rows(llm.FORGERIES), ids=identify)
def test_llm(forgery: Forgery, part: str, copies: dict[str, Forged]) -> None:
    judge(forgery, part, copies["llm"])


@pytest.mark.parametrize(("forgery", "part"), rows(retro.FORGERIES), ids=identify)
def test_retro(forgery: Forgery, part: str, copies: dict[str, Forged]) -> None:
    judge(forgery, part, copies["retro"])


@pytest.mark.parametrize(("track", "name"), [(track, n) for track in TABLES for n in TABLES[track].SAME_SEED])
def test_what_may_be_written_otherwise_gives_no_other_second_seed(
    track: str, name: str, copies: dict[str, Forged]
) -> None:
    judge_seed(TABLES[track].SAME_SEED[name], copies[track])
