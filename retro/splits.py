"""Where each search lost frames, `splits.md`: frames from state to state, beside those of the optimum."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from harness.record import SECOND
from retro.evidence import read_evidence
from retro.task import EVIDENCE, GAMES, Benchmark

_NONE = "-"


def splits(folder: Path) -> str:
    """A table for each game of the run or runs in `folder`, as Markdown."""
    return "\n".join(_table(game, folder) for game in GAMES)


def stages(entered: Mapping[str, int]) -> dict[str, int]:
    """State -> frames from its beginning to that of the next, and before the first state "power-on"."""
    order = sorted(entered, key=lambda state: entered[state])
    first = {"power-on": entered[order[0]]} if order else {}
    return first | {state: entered[after] - entered[state] for state, after in pairwise(order)}


def _table(game: Benchmark, folder: Path) -> str:
    bar = stages(game.best_splits)
    name = "the optimum, proven" if game.proven else "the fewest known"
    rows = [("", *bar, "all", "over it"), ("---", *["---:"] * (len(bar) + 2))]
    rows.append((name, *map(str, bar.values()), str(game.best), ""))
    parts = [(folder, "first" if (folder / SECOND).is_dir() else "")]
    parts += [(folder / SECOND, "second")] if (folder / SECOND).is_dir() else []
    for part, which in parts:
        _, lines = read_evidence(part / EVIDENCE)
        for line in lines:
            if line.found.game == game.name:
                search = (
                    f"{which} run, search {line.found.search}" if which else f"search {line.found.search}"
                )
                rows.append(
                    (search, *_cells(stages(line.row["splits"]), bar), *_total(line.row["frames"], game))
                )
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"""## {game.name}

Frames from the beginning of each state to that of the next. **Bold** is as fast as the optimum.

{table}
"""


def _cells(took: Mapping[str, int], bar: Mapping[str, int]) -> list[str]:
    return [_cell(took.get(state), frames) for state, frames in bar.items()]


def _cell(frames: int | None, best: int) -> str:
    return _NONE if frames is None else f"**{frames}**" if frames <= best else str(frames)


def _total(frames: int | None, game: Benchmark) -> tuple[str, str]:
    over = _NONE if frames is None else f"{100 * (frames / game.best - 1):.1f}%"
    return _cell(frames, game.best), over
