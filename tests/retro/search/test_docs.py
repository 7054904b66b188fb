"""The guide to the search: its mode of one's own works, and its table names every key."""

import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from harness.track import ROOT
from retro.config import CONFIGS, read_config
from retro.search.settings import MODES, Settings
from scripted_game import Hopper, fastest
from scripted_game.searching import finish, segment, settings
from scripted_game.small import Rooms

GUIDE = (ROOT / "docs" / "retro_search.md").read_text()


def block(language: str) -> str:
    """The guide's one block of code in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    return str(found)


@pytest.fixture
def rush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The guide's mode, written to where it can be imported; its name."""
    (tmp_path / "rush.py").write_text(block("python"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "rush", raising=False)
    return "rush:Rush"


def test_the_mode_alone_solves_a_segment(rush: str) -> None:
    search = finish(*segment(Rooms(), told=settings(modes={rush: 1}, shave=0)))
    assert search.ending == "solved"
    assert search.best == 10
    assert set(search.mode_frames) == {rush}


def test_the_mode_is_settled_by_the_seed_and_keeps_to_its_frames(rush: str) -> None:
    told = settings(modes={rush: 1}, frames=60_000, patience=60_000, shave=0)
    one, other = (finish(*segment(Hopper(), ((0, 1), (8, 1)), told)) for _ in range(2))
    assert (one.solutions, one.archive.known()) == (other.solutions, other.archive.known())
    assert one.best is not None
    assert one.best >= len(fastest(1))
    longest = 8 * max(Hopper.holds) + 20  # what the starts left over may cost
    assert one.frames <= told.frames + told.items * longest + 2 * told.item_frames


def test_the_configuration_names_the_mode(rush: str, tmp_path: Path) -> None:
    text = (CONFIGS / "quick.toml").read_text()
    (tmp_path / "own.toml").write_text(text[: text.index("[modes]")] + block("toml"))
    modes = read_config(str(tmp_path / "own.toml")).settings.modes
    assert dict(modes) == {"walks": 60, "frontier": 20, rush: 20}


def test_every_key_is_explained() -> None:
    table = GUIDE[GUIDE.index("## Configuration") : GUIDE.index("## When something goes wrong")]
    keys = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert sorted(keys) == sorted(["seed", "workers", *(field.name for field in fields(Settings))])


def test_the_shares_are_those_of_the_configurations() -> None:
    shares = {
        name: int(share) for name, share in re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", GUIDE, re.MULTILINE)
    }
    assert set(shares) == set(MODES)
    for name in ("quick", "long"):
        assert dict(read_config(name).settings.modes) == shares
