"""A search of `retro.run` that is watched: its milestones, its counts, and what the command says."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from live_views import route

from harness.errors import Problem
from retro.live import watching as watching_module
from retro.live.keys import UPLOAD
from retro.live.snapshot import Counts, parse_snapshot
from retro.live.watching import relaying, watched
from retro.packages import load_package
from retro.run import main
from retro.search.pool import open_pool
from retro.search.route import Piece, Route, RouteSearch
from retro.task import GAMES
from scripted_game.searching import settings


class Seen:
    """In place of a publisher: what it is told."""

    earlier = None

    def __init__(self, *_: object, **__: object) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __enter__(self) -> "Seen":
        return self

    def __exit__(self, *_: object) -> None: ...

    def update(self, doing: str, search: object, pieces: list[Piece], counts: Counts, journal: Any) -> None:
        self.calls.append((doing, [piece.state for piece in pieces], counts, list(journal)))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    publisher = Seen()
    monkeypatch.setattr(watching_module, "Publisher", lambda *_, **__: publisher)
    return publisher


def test_pieces_become_milestones_and_counts(tmp_path: Path, seen: Seen) -> None:
    pieces = route(GAMES[0].best_inputs)
    slow = replace(pieces[1], frames=29, inputs="29", first=33)
    package = load_package("quarterstep")
    of = Route("quarterstep", package.name, "5" * 64, 1, settings())
    rounds: list[str] = []
    with open_pool("quarterstep", 0) as pool:
        searcher = RouteSearch(tmp_path, of, pool, replays=False)
        beginning = searcher._arrive(of.pieces)
        of.pieces = []
        with watched("", tmp_path, of, pool, 0, package, lambda doing, search: rounds.append(doing)) as watch:
            search = watching_module.SegmentSearch(beginning, of.settings, "1")
            of.pieces = [pieces[0], slow]
            watch("search", search)
            of.pieces = [*pieces[:2]]
            watch("improve", search)
            of.pieces = pieces
            watch("shave", search)
    assert rounds == ["search", "improve", "shave"]
    *_, (doing, states, counts, journal) = seen.calls
    assert (doing, states[-1]) == ("idle", "level-5")
    events = [(line["event"], line["state"], line["saved"]) for line in journal]
    assert events == [
        ("begun", None, None),
        ("piece", "power-on", None),
        ("piece", "title", None),
        ("improved", "title", 10),
        *[("piece", f"level-{number}", None) for number in range(1, 5)],
        ("ending", "level-5", None),
        ("stopped", None, None),
    ]
    assert (counts.found, counts.improved, counts.pieces, counts.levels_beaten) == (7, 1, 7, 6)
    assert all(line["frames"] == sum(piece.frames for piece in pieces) for line in journal[4:])


def test_a_relay_needs_a_key_before_the_search_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(UPLOAD, raising=False)
    with pytest.raises(Problem, match=UPLOAD), relaying(tmp_path, "http://127.0.0.1:9"):
        raise AssertionError
    with pytest.raises(Problem, match="not an address"), relaying(tmp_path, "quick"):
        raise AssertionError
    with relaying(tmp_path, None):
        pass


def test_the_command_publishes_what_it_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        "seed = 1\nworkers = 0\nframes = 9000\npatience = 500\nitems = 2\nitem_frames = 300\ncells = 500\n"
        "crossings = 1\nlookahead = 0\nshave = 0\nsettle = 3\nmodes = {walks = 1}\n"
    )
    words = ["search", "quarterstep", str(config), "--until", "level-1", "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", ["retro.run", *words, "--live"])
    assert main() == 0
    shown = parse_snapshot((tmp_path / "run" / "live" / "snapshot.json").read_bytes())
    assert [split.state for split in shown.splits] == ["power-on", "title"]
    assert shown.movie is not None
    assert shown.movie.verified
    names = {path.name for path in (tmp_path / "run" / "live").iterdir()}
    assert names == {"snapshot.json", "frame.png", "mosaic.png", "movie.mp4", "ram.json", "pieces.json"}
    assert [line.event for line in shown.journal] == ["begun", "piece", "piece", "stopped"]
