"""Pictures of a run: the route of its best movie, `route.svg`, and the cells of its archives, `cells.svg`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from harness import figures
from harness.log import RunLog, read_log
from harness.record import LOG, SECOND
from retro.evidence import Found, fastest, movie_inputs, read_evidence
from retro.games.quarterstep.levels import BOX, screens
from retro.games.quarterstep.picture import background
from retro.packages import load_package
from retro.pixels import TileSheet
from retro.task import EVIDENCE, GAMES, Benchmark
from retro.trace import trace

WIDTH, HEIGHT, GAP, TITLE = 256, 240, 12, 20  # pixels of a level's panel and around it
COLUMNS = 3
LONGEST_STEP = 8  # pixels; what moves further in a frame went through a portal

OPTIMUM, FOUND, GROUND = "#56B4E9", "#F0E442", "#101028"
"""Colours that read on the dark screens of a console (Okabe and Ito 2008)."""


def route(folder: Path) -> str:
    """The way of the player through each level, in the run's best movie and in the optimum, as SVG text.

    Where no search reached the ending there is only the optimum.
    """
    game = GAMES[0]
    best = _best(folder, game)
    paths = [(OPTIMUM, 3.0, _paths(game, fastest(game)))]
    paths += [(FOUND, 1.2, _paths(game, best))] if best else []
    sheet, panels = TileSheet(), []
    levels = [screen for screen in screens() if f"level-{screen.number}" in paths[0][2]]
    for place, screen in enumerate(levels):
        state = f"level-{screen.number}"
        x = GAP + place % COLUMNS * (WIDTH + GAP)
        y = GAP + place // COLUMNS * (HEIGHT + TITLE + GAP)
        here = [(color, stroke, found[state]) for color, stroke, found in paths if state in found]
        took = f"{len(here[-1][2])}, " if len(here) > 1 else ""
        panels.append(f'<g transform="translate({x} {y})">')
        panels.append(f'<text y="12">{screen.name}: {took}optimum {len(here[0][2])} frames</text>')
        panels.append(f'<g transform="translate(0 {TITLE})" clip-path="url(#screen)">')
        panels.append(sheet.draw(background(screen.number)))
        for color, stroke, points in here:
            panels += _lines(points, color, stroke)
        panels.append("</g></g>")
    rows = -(-len(levels) // COLUMNS)
    width, height = GAP + COLUMNS * (WIDTH + GAP), GAP + rows * (HEIGHT + TITLE + GAP) + TITLE
    for place, ((color, stroke, _), words) in enumerate(zip(paths, ("optimum", "best movie"), strict=False)):
        x, y = GAP + place * (WIDTH + GAP), height - TITLE + 4
        panels.append(f'<rect x="{x}" y="{y - 8}" width="36" height="12" fill="{GROUND}"/>')
        line = f'<path d="M{x + 4} {y - 2}h28" stroke="{color}" stroke-width="{stroke}"/>'
        panels.append(f'{line}<text x="{x + 44}" y="{y + 2}">{words}</text>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="sans-serif" font-size="12" fill="{figures.INK}">',
            f'<clipPath id="screen"><rect width="{WIDTH}" height="{HEIGHT}"/></clipPath>',
            sheet.definitions(),
            *panels,
            "</svg>\n",
        ]
    )


def cells(folder: Path) -> str:
    """Cells in the archive over frames emulated, a panel for each segment and a line for each search.

    Drawn from the fields `search`, `segment`, `frames` (emulated since the search began) and `cells` (of the
    segment's archive) of the log's steps.
    """
    runs = [("first run", figures.FIRST, read_log(folder / LOG))]
    if (folder / SECOND / LOG).is_file():
        runs.append(("second run", figures.LATER, read_log(folder / SECOND / LOG)))
    curves = [(name, color, curve) for name, color, log in runs for curve in _curves(log)]
    segments = sorted({segment for _, _, (segment, _) in curves})
    rows = max(1, -(-len(segments) // COLUMNS))
    with figures.style():
        figure = Figure(figsize=(10.0, 2.5 * rows))
        panels = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
        for axes, segment in zip(panels, segments, strict=False):
            named: set[str] = set()
            for name, color, (its_segment, points) in curves:
                if its_segment == segment:
                    label = name if name not in named else None
                    named.add(name)
                    axes.plot(*points.T, color=color, alpha=0.7, linewidth=1.2, label=label)
            axes.set(title=_state(segment), xlim=(0, None), ylim=(0, None))
            axes.set_xlabel("frames emulated")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda frames, _: f"{frames / 1000:g}k"))
        for axes in panels[len(segments) :]:
            axes.set_axis_off()
        if segments:
            panels[0].set_ylabel("cells")
        if len(runs) > 1 and segments:
            panels[0].legend(loc="lower right", labelcolor="linecolor", fontsize=9)
        return figures.svg(figure)


def _best(folder: Path, game: Benchmark) -> Found | None:
    """The fastest movie of the run or runs in a folder, cut off where it ends; of equals the first."""
    lines = [
        line
        for part in (folder, folder / SECOND)
        if (part / EVIDENCE).is_file()
        for line in read_evidence(part / EVIDENCE)[1]
        if line.found.game == game.name and line.row["frames"] is not None
    ]
    return min(lines, key=lambda line: int(line.row["frames"])).found if lines else None


def _paths(game: Benchmark, found: Found) -> dict[str, NDArray[np.float64]]:
    """State -> (frames, 2), the middle of the player in pixels after each frame in which the state holds."""
    rows = trace(game.package, movie_inputs(found), ("x", "y"))
    middles = (rows[:, 1:] + BOX / 2) / 4
    states = load_package(game.package).states
    return {
        state.name: middles[rows[:, 0] == index]
        for index, state in enumerate(states)
        if (rows[:, 0] == index).any()
    }


def _lines(points: NDArray[np.float64], color: str, width: float) -> Iterator[str]:
    """A line along the points, (frames, 2), broken where they jump."""
    breaks = np.flatnonzero(np.abs(np.diff(points, axis=0)).max(axis=1) > LONGEST_STEP) + 1
    for part in np.split(points, breaks):
        places = " ".join(f"{x:g},{y:g}" for x, y in part)
        yield f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="{width:g}"/>'


def _curves(log: RunLog) -> list[tuple[int, NDArray[np.float64]]]:
    """(segment, points (steps + 1, 2) of frames and cells, from nothing) of every search of a segment."""
    curves: list[tuple[int, list[tuple[float, float]]]] = []
    present: dict[int, int] = {}  # search -> segment
    last: dict[int, float] = {}  # search -> frames at its last step
    begun: dict[int, float] = {}  # search -> frames at which its present segment began
    of_search: dict[int, list[tuple[float, float]]] = {}
    for step in log.steps:
        fields: dict[str, float] = step.fields
        if {"search", "segment", "frames", "cells"} <= fields.keys():
            search, segment = int(fields["search"]), int(fields["segment"])
            if present.get(search) != segment:
                present[search], begun[search] = segment, last.get(search, 0.0)
                of_search[search] = [(0.0, 0.0)]
                curves.append((segment, of_search[search]))
            of_search[search].append((fields["frames"] - begun[search], fields["cells"]))
            last[search] = fields["frames"]
    return [(segment, np.array(points)) for segment, points in curves if any(cells for _, cells in points)]


def _state(segment: int) -> str:
    names: Sequence[str] = [state.name for state in load_package(GAMES[0].package).states]
    return names[segment] if 0 <= segment < len(names) else f"segment {segment}"
