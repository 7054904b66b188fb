"""FIXED: what model-written code may use; said in one place for the gate and the worker."""

MODULES = (
    "bisect",
    "collections",
    "copy",
    "dataclasses",
    "enum",
    "functools",
    "heapq",
    "itertools",
    "json",
    "math",
    "operator",
    "random",
    "re",
    "statistics",
    "string",
    "typing",
)
"""Modules that may be imported, and parts of them such as `collections.abc`."""

FORBIDDEN_NAMES = frozenset(
    {
        "__import__",
        "breakpoint",
        "compile",
        "copyright",
        "credits",
        "delattr",
        "eval",
        "exec",
        "exit",
        "globals",
        "help",
        "input",
        "license",
        "locals",
        "open",
        "quit",
        "vars",
    }
)
"""Builtins that are not there."""


def importable(name: str) -> bool:
    """Whether code may import a module."""
    return name.partition(".")[0] in (*MODULES, "__future__")
