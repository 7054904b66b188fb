"""FIXED: what can be said against model-written code before it runs. The lock is what confines it, not this.

It keeps out what could not work in the worker, or has no honest use there, with words that help to mend it.
"""

import ast
import re
import warnings
from collections.abc import Iterator

from agents.sandbox.allowed import FORBIDDEN_NAMES, MODULES, importable
from agents.sandbox.process import Limits

MAX_FUNCTIONS = 200
"""Top-level functions of a module."""

_DUNDER = re.compile(r"__\w*[a-z]\w*__")
_INSIDES = re.compile(
    "f_(back|builtins|code|globals|locals)|tb_(frame|next)|(gi|cr|ag)_(frame|code)|co_(code|consts)"
)
"""Attributes that lead from values into the interpreter."""
_BY_NAME = frozenset({"getattr", "hasattr", "setattr", "attrgetter", "methodcaller"})
_FORBIDDEN_METHODS = frozenset({"__class_getitem__", "__del__", "__getattribute__", "__reduce__"})


def check(
    source: str, limits: Limits, *, docstrings: bool = False, functions: int = MAX_FUNCTIONS
) -> list[str]:
    """Every reason against a module of skills; none if it may be loaded.

    Args:
        docstrings: whether each public function needs one.
        functions: how many the module may define at its top level.
    """
    if len(source) > limits.source_chars:
        return [f"the source has {len(source)} characters; {limits.source_chars} is the limit"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an unknown escape in a string is no concern of the caller's
            tree = ast.parse(source)
    except SyntaxError as error:
        return [f"line {error.lineno or 1}: it does not parse: {error.msg}"]
    except (ValueError, RecursionError, MemoryError) as error:
        return [f"it does not parse: {str(error) or type(error).__name__}"]
    skills = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    reasons = [f"it defines {len(skills)} functions; {functions} is the limit"] * (len(skills) > functions)
    spoken = _docstrings(tree)
    faults = {fault for node in ast.walk(tree) for fault in _faults(node, spoken)}
    for skill in skills:
        faults |= set(_skill_faults(skill, docstrings))
    return reasons + [f"line {line}: {reason}" for line, reason in sorted(faults)]


def _skill_faults(skill: ast.FunctionDef, docstrings: bool) -> Iterator[tuple[int, str]]:
    if skill.name.startswith("_"):
        return
    parameters = [*skill.args.posonlyargs, *skill.args.args]
    if not parameters or parameters[0].arg != "env":
        yield (
            skill.lineno,
            f"the first parameter of {skill.name} is not env (helpers are named _{skill.name})",
        )
    if docstrings and not (ast.get_docstring(skill) or "").strip():
        yield skill.lineno, f"{skill.name} has no docstring"


def _docstrings(tree: ast.Module) -> set[ast.Constant]:
    """The strings that only say something to a reader."""
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _faults(node: ast.AST, spoken: set[ast.Constant]) -> Iterator[tuple[int, str]]:
    """(line, reason) for everything that is wrong about one node by itself."""
    line = getattr(node, "lineno", 1)
    match node:
        case ast.Import(names=names):
            for alias in names:
                if not importable(alias.name):
                    yield line, _unimportable(alias.name)
        case ast.ImportFrom(module=module, level=level, names=names):
            if level or not importable(module or ""):
                yield line, _unimportable("." * level + (module or ""))
            for alias in names:
                if _hidden(alias.name):
                    yield line, f"the name {alias.name} is not allowed"
        case ast.Name(id=name) if name in FORBIDDEN_NAMES or (_DUNDER.fullmatch(name) and name != "__name__"):
            yield line, f"the name {name} is not allowed"
        case ast.Attribute(attr=name) if _hidden(name):
            yield line, f"the attribute {name} is not allowed"
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments) if name in _BY_NAME:
            wanted = arguments[1:2] if name in ("getattr", "hasattr", "setattr") else arguments
            if not all(isinstance(a, ast.Constant) and isinstance(a.value, str) for a in wanted):
                yield line, f"{name} takes the attribute's name as a plain string here"
            elif any(_INSIDES.fullmatch(ast.literal_eval(a)) for a in wanted):
                yield line, f"{name} is not allowed to reach into frames and code"
        case ast.Constant(value=str(text)) if node not in spoken and _DUNDER.search(text):
            yield line, f"the string holds {_DUNDER.search(text)[0]}, which is not allowed"  # type: ignore[index]
        case ast.FunctionDef(name=name) if name in _FORBIDDEN_METHODS:
            yield line, f"a function named {name} is not allowed"
        case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
            yield line, "async code does not work here"
        case _:
            pass


def _hidden(name: str) -> bool:
    special = _DUNDER.fullmatch(name) and name not in ("__init__", "__name__", "__post_init__")
    return bool(special or _INSIDES.fullmatch(name))


def _unimportable(name: str) -> str:
    return f"{name} cannot be imported; these can: {', '.join(MODULES)}"
