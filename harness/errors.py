"""The one exception that users see, and the way a command line shows it."""

import io
import os
import signal
import sys
from collections.abc import Callable
from os import PathLike, fspath
from types import TracebackType
from typing import NoReturn

INSTALLED = ("numpy", "psutil", "pydantic", "rich", "torch", "tqdm", "tyro")
"""Libraries without which nothing was installed."""


class Problem(Exception):
    """Something the reader of the message can put right; str() is `file:line: reason. Remedy: ...`."""

    def __init__(
        self,
        reason: str,
        *,
        file: str | PathLike[str] | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.file = None if file is None else fspath(file)
        self.line = line
        self.remedy = remedy

    def __str__(self) -> str:
        text = self.reason
        if self.file is not None:
            text = f"{self.file}: {text}" if self.line is None else f"{self.file}:{self.line}: {text}"
        if self.remedy is not None:
            text = f"{text.removesuffix('.')}. Remedy: {self.remedy}"
        return text


class Unavailable(Problem):
    """This machine lacks something, such as a library, levels or Java; nothing else is wrong."""


def run_command(main: Callable[[], int | None], *expected: type[Exception]) -> NoReturn:
    """Exit with what `main` returns; a Problem, or an `expected` error, is printed bare and exits 2.

    So does an output that cannot be written; where its reader is gone, the status is 141, as of SIGPIPE.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # whatever the terminal cannot show is escaped
            stream.reconfigure(errors="backslashreplace")
    shown: tuple[type[Exception], ...] = (Problem, *expected)
    try:
        status = main()
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
        sys.exit(status)
    except shown as problem:
        print(_plain(str(problem)), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # another one, at the interpreter's end, is as quiet
        print("Stopped by Ctrl-C.", file=sys.stderr)
        sys.exit(130)
    except OSError:
        error = _refusal()
        if error is None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is not tried again
        if isinstance(error, BrokenPipeError):
            sys.exit(141)
        print(f"standard output cannot be written: {error.strerror}", file=sys.stderr)
        sys.exit(2)


def quiet_interrupts() -> None:
    """Let Ctrl-C print no traceback, also while a command still imports its libraries; nor a missing one."""
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            print("Stopped by Ctrl-C.", file=sys.stderr)
        elif isinstance(error, ModuleNotFoundError) and error.name in INSTALLED:
            remedy = "make venv, then source .venv/bin/activate"
            print(f"{error.name} is not installed in this Python. Remedy: {remedy}", file=sys.stderr)
        else:
            before(kind, error, traceback)

    sys.excepthook = show


def _plain(text: str) -> str:
    """Lines of text, some of it from files that were read, without what could move a terminal's cursor."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _refusal() -> OSError | None:
    """Why standard output takes no further line; None = it takes one."""
    try:
        print(flush=True)
    except OSError as error:
        return error
    return None
