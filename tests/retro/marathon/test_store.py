"""A marathon's file that was damaged, or changed by hand, is a Problem before anything is searched."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import Problem
from retro.marathon.store import MARATHON, MOVIE, open_saved
from retro.packages import load_package
from retro.search.route import ROUTE
from scripted_game.marathons import config, run, without_a_console

HOPPER = "scripted_game:Hopper"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a marathon that has reached the ending and practises."""
    without_a_console(monkeypatch)
    assert run(tmp_path, HOPPER, config(), frames=120_000).standing
    return tmp_path


def again(folder: Path) -> Problem:
    with pytest.raises(Problem) as caught:
        run(folder, HOPPER, config(), frames=300)
    return caught.value


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no practice": lambda saved: saved["practice"].clear(),
    "practice without inputs": lambda saved: saved["practice"][0].update(inputs=""),
    "practice of another state": lambda saved: saved["practice"][0].update(state="zz"),
    "an unknown state in work": lambda saved: saved["standing"].update(state="zz"),
    "a count below 0": lambda saved: saved["standing"]["failures"].update({"practice level-1": -1}),
    "fewer pieces": lambda saved: saved["route"]["pieces"].pop(),
    "fewer places": lambda saved: saved["standing"]["entered"].pop(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_does_not_fit_the_rest_is_a_problem(
    folder: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    saved = json.loads((folder / MARATHON).read_text())
    change(saved)
    (folder / MARATHON).write_text(json.dumps(saved))
    problem = again(folder)
    assert (problem.file, problem.remedy is not None) == (str(folder / MARATHON), True)


@pytest.mark.parametrize("text", ["", "[]", '{\n"route":'])
def test_what_is_no_marathon_is_named_with_a_remedy(tmp_path: Path, text: str) -> None:
    (tmp_path / MARATHON).write_text(text)
    problem = again(tmp_path)
    assert problem.file == str(tmp_path / MARATHON)
    assert problem.remedy and "--out" in problem.remedy
    assert problem.line == (None if text == "[]" else text.count("\n") + 1)


def test_a_movie_whose_marathon_is_gone_is_not_written_over(folder: Path) -> None:
    movie = (folder / MOVIE).read_bytes()
    for name in (MARATHON, ROUTE):
        (folder / name).unlink()
    with pytest.raises(Problem, match="holds another search"):
        open_saved(folder, HOPPER, load_package(HOPPER), config())
    assert (folder / MOVIE).read_bytes() == movie
