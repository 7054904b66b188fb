"""Progress is a bar for a terminal and lines for a file."""

import contextlib
import io
import os
import sys
from pathlib import Path

import pytest

from harness import progress
from harness.progress import progress_bar


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_file_gets_the_last_line_only_when_all_is_quick(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress_bar(1000, "step") as bar:
        for step in range(1000):
            bar.set_postfix(solve_rate=step / 1000)
            bar.update()
    lines = capsys.readouterr().err
    assert "\r" not in lines
    assert lines.count("\n") == 1
    assert "1000/1000" in lines
    assert "solve_rate=0.999" in lines


def test_a_file_gets_a_line_whenever_one_is_due(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    with progress_bar(3, "step") as bar:
        for _ in range(3):
            bar.update()
            bar.refresh()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 4
    assert all(f"{count}/3" in "\n".join(lines) for count in (1, 2, 3))


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar(3, "step") as bar:
        bar.update(3)
    assert "\r" in terminal.getvalue()
    assert "3/3" in terminal.getvalue()


def test_a_bar_that_nobody_can_see_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    with Path("/dev/full").open("w") as full:
        for stream in (None, full):
            monkeypatch.setattr(sys, "stderr", stream)
            with progress_bar(3, "step") as bar:
                bar.update()
                bar.refresh()
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            full.close()


@pytest.mark.parametrize("size", [(0, 0), (0, 24), (80, 0)])
def test_a_terminal_of_unknown_size_gets_a_whole_bar(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(terminal, "fileno", lambda: 2)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size(size))
    with progress_bar(3, "step") as bar:
        bar.set_postfix(solve_rate=0.5)
        bar.update(3)
    last = terminal.getvalue().split("\r")[-1]
    assert "3/3" in last and "solve_rate=0.5]" in last
