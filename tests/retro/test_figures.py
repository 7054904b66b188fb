"""Reports of a run are drawn again from its files, the same bytes each time, and show what was played."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from retro_runs import make_run, slower

from harness import figures as drawing
from harness.track import load_track
from retro.figures import cells, route
from retro.splits import splits, stages
from retro.task import GAMES
from retro.trace import trace

GAME = GAMES[0]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: the first is slow, and a search of the second is as fast as it gets."""
    folder = make_run(tmp_path_factory.mktemp("record"), 1, [slower(30), None, *[slower(40)] * 6])
    make_run(folder / "verification", 2, [*[slower(40)] * 7, slower(0)])
    return folder


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_the_route_is_that_of_the_best_movie_over_the_levels(record: Path) -> None:
    svg = route(record)
    assert route(record) == svg
    *titles, optimum, best = texts(svg)
    assert (optimum, best) == ("optimum", "best movie")
    assert len(titles) == 5
    for title in titles:  # the best movie is the optimum
        match = re.fullmatch(r".+: (\d+), optimum \1 frames", title)
        assert match, title
    lines = [line.attrib["points"] for line in ElementTree.fromstring(svg).iter(f"{SVG}polyline")]
    assert lines and len(lines) == 2 * len(set(lines))
    steps = [np.abs(np.diff(points, axis=0)).max(initial=0) for points in map(parse, lines)]
    assert max(steps) <= 8  # pixels in a frame: a portal is no line


def parse(points: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array([point.split(",") for point in points.split()], dtype=np.float64)


def test_without_a_movie_the_route_is_the_optimum_alone(tmp_path: Path) -> None:
    *titles, optimum = texts(route(make_run(tmp_path, 3, [None] * 8)))
    assert optimum == "optimum" and all(re.fullmatch(r".+: optimum \d+ frames", title) for title in titles)


def test_a_trace_holds_states_and_values_after_every_frame() -> None:
    rows = trace(GAME.package, [0] * 60, ("mode", "x"))
    assert rows.shape == (60, 3)
    assert set(rows[:, 0]) == {-1, 0}  # transit, then the title
    assert len(set(rows[rows[:, 0] == 0, 1])) == 1


def test_stages_last_from_state_to_state() -> None:
    entered = {"title": 20, "level-2": 200, "level-1": 40, "ending": 260}
    assert stages(entered) == {"power-on": 20, "title": 20, "level-1": 160, "level-2": 60}
    assert stages({}) == {}


def test_splits_show_every_search_beside_the_optimum(record: Path) -> None:
    text = splits(record)
    assert text.startswith(f"## {GAME.name}\n")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"]
    head, _, optimum, *searches = rows
    assert head[1:3] == ["power-on", "title"] and head[-2:] == ["all", "over it"]
    assert optimum[0] == "the optimum, proven"
    assert sum(map(int, optimum[1:-2])) == int(optimum[-2]) == GAME.best
    names = [f"{run} run, search {search}" for run in ("first", "second") for search in range(8)]
    assert [row[0] for row in searches] == names
    assert searches[0][-2:] == [str(GAME.best + 30), f"{3000 / GAME.best:.1f}%"]
    assert searches[0][2] == str(int(optimum[2]) + 30)
    assert set(searches[1][1:]) == {"-"}
    assert searches[15][-2:] == [f"**{GAME.best}**", "0.0%"]
    assert [cell.strip("*") for cell in searches[15][1:-1]] == optimum[1:-1]


def write_log(path: Path, steps: Sequence[dict[str, float]]) -> None:
    utc = "2026-11-30T00:00:00+00:00"
    events = [
        ("run_start", {"run_id": "a", "seed": 1, "recipe_sha256": "b"}),
        ("warmup_start", {}),
        ("warmup_stop", {}),
        ("train_start", {"cpu_s": 0.0}),
        *(("step", {"step": number, **fields}) for number, fields in enumerate(steps, start=1)),
        ("train_stop", {"steps": len(steps), "cpu_s": 1.0}),
    ]
    lines = [{"event": name, "monotonic": 5.0, "utc": utc, **fields} for name, fields in events]
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Every figure that is drawn, before it becomes text."""
    kept: list[Figure] = []
    to_text = drawing.svg
    monkeypatch.setattr(drawing, "svg", lambda figure: (kept.append(figure), to_text(figure))[1])
    return kept


def step(search: int, segment: int, frames: int, cells: int) -> dict[str, float]:
    return {"search": search, "segment": segment, "frames": frames, "cells": cells, "route": 0}


def test_cells_are_drawn_by_segment_from_its_beginning(tmp_path: Path, drawn: list[Figure]) -> None:
    steps = [
        step(0, 0, 100, 5),
        step(1, 0, 50, 4),
        step(0, 1, 300, 20),
        step(1, 0, 90, 6),
        step(0, 1, 500, 30),
    ]
    write_log(tmp_path / "log.jsonl", steps)
    write_log(tmp_path / "verification/log.jsonl", [step(0, 1, 10, 9)])
    svg = cells(tmp_path)
    title, level, empty = drawn[0].axes
    assert [axes.get_title("left") for axes in (title, level)] == ["title", "level-1"]
    assert not empty.axison
    lines = [
        [list(map(list, zip(*line.get_data(), strict=True))) for line in axes.lines]
        for axes in (title, level)
    ]
    assert lines == [
        [[[0, 0], [100, 5]], [[0, 0], [50, 4], [90, 6]]],
        [[[0, 0], [200, 20], [400, 30]], [[0, 0], [10, 9]]],
    ]
    assert level.lines[0].get_color() != level.lines[1].get_color()
    with mpl.rc_context({"font.size": 30}):
        assert cells(tmp_path) == svg
    ElementTree.fromstring(svg)


def test_a_log_without_cells_draws_an_empty_picture(tmp_path: Path) -> None:
    write_log(tmp_path / "log.jsonl", [{"frames": 1.0}])
    ElementTree.fromstring(cells(tmp_path))


def test_the_track_names_these_reports(record: Path) -> None:
    write_log(record / "log.jsonl", [step(0, 0, 100, 5)])
    made = {report.name: report.make(record) for report in load_track("retro").reports}
    assert made.keys() == {"route.svg", "cells.svg", "splits.md"}
    assert made["splits.md"] == splits(record) and made["cells.svg"] == cells(record)
    assert all("\r" not in text and text.endswith("\n") for text in made.values())
