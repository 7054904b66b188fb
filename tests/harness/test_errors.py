"""What users see when something is wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import Problem, run_command


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("it is broken"), "it is broken"),
        (Problem("it is broken", file="a/b.json"), "a/b.json: it is broken"),
        (Problem("it is broken", file=Path("a/b.json"), line=3), "a/b.json:3: it is broken"),
        (Problem("it is broken", remedy="mend it"), "it is broken. Remedy: mend it"),
        (Problem("It is.", file="f", line=1, remedy="mend it"), "f:1: It is. Remedy: mend it"),
    ],
)
def test_a_problem_reads_place_reason_remedy(problem: Problem, text: str) -> None:
    assert str(problem) == text


def fail(error: BaseException) -> Callable[[], int]:
    def main() -> int:
        raise error

    return main


@pytest.mark.parametrize(
    ("main", "status"),
    [
        (lambda: None, None),
        (lambda: 1, 1),
        (fail(Problem("bad input", file="x")), 2),
        (fail(LookupError("expected")), 2),
        (fail(KeyboardInterrupt()), 130),
    ],
)
def test_a_command_exits_without_traceback(
    capsys: pytest.CaptureFixture[str], main: Callable[[], int | None], status: int | None
) -> None:
    with pytest.raises(SystemExit) as caught:
        run_command(main, LookupError)
    assert caught.value.code == status
    shown = capsys.readouterr().err
    assert "Traceback" not in shown
    assert (status == 2) == (shown in ("x: bad input\n", "expected\n"))


def test_a_mistake_in_the_code_is_no_problem_of_the_user() -> None:
    with pytest.raises(ZeroDivisionError):
        run_command(fail(ZeroDivisionError()))
