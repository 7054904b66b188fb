"""Tracks are found by name, and their fixed files by pattern."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import Problem
from harness.files import sha256_file
from harness.track import ROOT, Score, available_tracks, fixed_file_hashes, load_track
from toy_track.track import TRACK


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which modules are found; those found in it are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


def add(place: Path, name: str, text: str) -> None:
    (place / name).mkdir()
    (place / name / "track.py").write_text(text)


def test_a_track_is_loaded_by_name() -> None:
    assert load_track("toy_track") is TRACK


@pytest.mark.parametrize("name", ["", "Toy", "toy-track", "os.path", "../toy", "toy track"])
def test_what_cannot_be_a_name_is_not_imported(name: str) -> None:
    with pytest.raises(Problem, match="cannot be the name of a track"):
        load_track(name)


@pytest.mark.parametrize("name", ["no_such_track", "json", "antigravity"])
def test_an_unknown_track_is_a_problem_that_lists_the_known(name: str) -> None:
    with pytest.raises(Problem, match=f"there is no track '{name}'. Remedy: choose one of:"):
        load_track(name)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("needy", "import no_such_library", "needs the module 'no_such_library'"),
        ("empty", "", "defines no TRACK named 'empty'"),
        ("misnamed", "from toy_track.track import TRACK", "defines no TRACK named 'misnamed'"),
        ("other", "TRACK = 3", "defines no TRACK named 'other'"),
    ],
)
def test_a_folder_that_holds_no_track_is_a_problem(place: Path, name: str, text: str, reason: str) -> None:
    add(place, name, text)
    with pytest.raises(Problem, match=reason):
        load_track(name)


def test_the_tracks_are_the_folders_that_hold_one(tmp_path: Path) -> None:
    for name in ("walk", "harness", "run"):
        add(tmp_path, name, "")
    (tmp_path / "docs").mkdir()
    assert available_tracks(tmp_path) == ["run", "walk"]
    assert "harness" not in available_tracks()


def test_fixed_files_are_hashed_once_each_in_order(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "deep/c.py", "deep/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    track = replace(TRACK, fixed_files=("*.py", "**/*.py", "deep"))
    with pytest.raises(Problem, match="no file matches the fixed files 'deep'"):
        fixed_file_hashes(track, tmp_path)
    track = replace(TRACK, fixed_files=("*.py", "**/*.py"))
    expected = {name: sha256_file(tmp_path / name) for name in ("a.py", "b.py", "deep/c.py")}
    assert list(fixed_file_hashes(track, tmp_path).items()) == list(expected.items())


@pytest.mark.parametrize("name", ["toy_track", *available_tracks()])
def test_a_track_fixes_itself_and_files_that_exist(name: str) -> None:
    track = load_track(name)
    hashes = fixed_file_hashes(track)
    own = Path(sys.modules[f"{name}.track"].__file__ or "").relative_to(ROOT).as_posix()
    assert hashes[own] == sha256_file(ROOT / own)


BELOW = replace(TRACK, goal="below", target=1.1)


def ratio(value: float, low: float, high: float) -> Score:
    return Score(value, low, high, None, 1, "searches", (value,))


def test_the_goal_says_which_end_of_the_interval_decides() -> None:
    score = ratio(1.0, 0.7, 1.1)
    assert (TRACK.bound(score), BELOW.bound(score)) == (0.7, 1.1)
    assert TRACK.verdict(score) == "the low end 0.7 is not above the target 0.7"
    assert BELOW.verdict(score) == "the high end 1.1 is not below the target 1.1"
    assert not TRACK.clears(score) and not BELOW.clears(score)  # the target itself is not past the target
    score = ratio(1.0, 0.7001, 1.0999)
    assert TRACK.clears(score) and BELOW.clears(score)
    assert BELOW.verdict(score) == "the high end 1.0999 is below the target 1.1"
    assert not TRACK.clears(ratio(1.0, 0.5, 2.0)) and not BELOW.clears(ratio(1.0, 0.5, 2.0))


def test_the_worst_score_is_the_furthest_from_the_goal() -> None:
    small, large, wide = ratio(1.0, 0.9, 1.1), ratio(1.2, 1.1, 1.3), ratio(1.2, 0.5, 1.9)
    assert TRACK.worst([small, large]) is small and BELOW.worst([small, large]) is large
    assert TRACK.worst([large, wide]) is wide and BELOW.worst([large, wide]) is wide


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_score_is_finite_and_has_an_outcome_for_each_unit(value: float) -> None:
    good = Score(0.5, 0.1, 0.9, 1, 2, "levels", (0.0, 1.0))
    for name in ("value", "low", "high"):
        with pytest.raises(ValueError, match="must be finite"):
            replace(good, **{name: value})
    with pytest.raises(ValueError, match="must be finite"):
        replace(good, outcomes=(0.0, value))
    with pytest.raises(ValueError, match="2 outcomes for 3 levels"):
        replace(good, count=3)
    with pytest.raises(ValueError, match="0 outcomes for 0 levels"):
        replace(good, count=0, outcomes=())


def test_a_track_as_an_earlier_ruleset_had_it() -> None:
    first = replace(TRACK, ruleset="7", earlier={"6": lambda track: replace(track, target=0.5)}).under("6")
    assert (first.ruleset, first.target, first.title) == ("6", 0.5, TRACK.title)
    assert TRACK.under(TRACK.ruleset) is TRACK
    with pytest.raises(Problem) as caught:
        TRACK.under("9")
    assert caught.value.reason == "toy_track has no ruleset '9'"
    assert caught.value.remedy == "the rulesets here are: 1, 2; a later checkout may know more"


def test_a_class_has_its_target_under_every_ruleset() -> None:
    track = replace(TRACK, earlier={"1": lambda track: replace(track, target=0.5)})
    assert track.under("1").of_class("cpu").target == 0.5
    of_class = tuple(replace(hardware, target=0.6) for hardware in TRACK.classes)
    assert replace(track, classes=of_class).under("1").of_class("cpu").target == 0.6
