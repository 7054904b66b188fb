"""No file that a run imports is neither fixed nor open, whether it is imported at once or on the way."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.track import ROOT, available_tracks, fixed_file_hashes, load_track, open_file_hashes

ASIDE = {
    "llm.figures": "draws a report of a run that is done",
    "llm.report": "writes a report of a run that is done",
    "retro.figures": "draws reports of a run that is done",
    "retro.splits": "writes a report of a run that is done",
    "retro.movies": "keeps the board of movies",
}
"""Modules that fixed files import for something else than a run."""

LIST_IMPORTED = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
for module in list(sys.modules.values()):
    if getattr(module, "__file__", None):
        print(module.__file__)
"""


def known(track: str) -> set[str]:
    """The fixed and the open files of a track."""
    found = load_track(track)
    return {f"{track}/speedrun.py", *fixed_file_hashes(found), *open_file_hashes(found)}


def file_of(module: str) -> Path | None:
    """The file of one of our modules."""
    path = ROOT / module.replace(".", "/")
    found = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
    return found[0] if found else None


def imported_by(path: Path) -> Iterator[str]:
    """Every module that a source may import, at any depth, packages included."""
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


@pytest.mark.parametrize("track", available_tracks())
def test_what_a_run_imports_at_once_is_fixed_or_open(track: str) -> None:
    command = [sys.executable, "-c", LIST_IMPORTED, f"{track}.speedrun", f"{track}.eval_speedrun"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    files = [Path(line) for line in done.stdout.splitlines()]
    ours = [file.relative_to(ROOT) for file in files if file.is_absolute() and file.is_relative_to(ROOT)]
    names = {file.as_posix() for file in ours if "site-packages" not in file.parts}
    assert f"{track}/speedrun.py" in names and "harness/run.py" in names
    assert names - known(track) == set()


@pytest.mark.parametrize("track", available_tracks())
def test_what_a_run_may_import_on_the_way_is_fixed_or_open(track: str) -> None:
    waiting = [f"{track}.speedrun", f"{track}.eval_speedrun"]
    found: dict[str, str] = {}
    while waiting:
        path = file_of(waiting.pop())
        assert path is not None
        for module in imported_by(path):
            if module not in ASIDE and module not in found and file_of(module) is not None:
                found[module] = path.name
                waiting.append(module)
    files = {path.relative_to(ROOT).as_posix() for module in found if (path := file_of(module)) is not None}
    assert files - known(track) == set()


@pytest.mark.parametrize("track", available_tracks())
def test_earlier_rulesets_fixed_no_more_than_is_fixed_now(track: str) -> None:
    now = load_track(track)
    assert list(now.earlier) == ["1"] and now.ruleset == "2"
    for ruleset in now.earlier:
        then = now.under(ruleset)
        assert (then.ruleset, then.target, then.comparable) == (ruleset, now.target, True)
        assert then.closes is not None and now.closes is None
        assert fixed_file_hashes(then).keys() < fixed_file_hashes(now).keys()
    assert {"harness/errors.py", "harness/rulesets.py"} <= fixed_file_hashes(now).keys()
