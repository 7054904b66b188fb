"""FIXED: the functions that agents write: their form, and the module that holds them."""

import ast
import builtins
import copy
import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agents.sandbox.allowed import MODULES

HEADER = "".join(f"import {module}\n" for module in MODULES)
"""At the top of a module, so that no function has to import anything."""


_TAKEN = {*MODULES, *dir(builtins), "env", "episodes"}


class Function(NamedTuple):
    """A function of a codebook or a skill library."""

    name: str
    source: str
    """The definition, without surrounding blank lines."""
    signature: str
    """`go_to(kind, color=None)`: as it is called, without `env`."""
    docstring: str
    """"" for a helper without one."""

    @property
    def public(self) -> bool:
        """Whether agents may call it; helpers, whose names begin with `_`, serve other functions alone."""
        return not self.name.startswith("_")


class NoFunction(ValueError):
    """Why a text is no function that can be kept, in words for the model that wrote it."""


def read_functions(source: str) -> list[Function]:
    """The functions that a text defines, in order; it may hold imports besides.

    Raises:
        NoFunction: it does not parse, defines none or one twice, holds other statements, hides something by a
            name, or a function that is no helper lacks the parameter `env` or a docstring.
    """
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    try:
        with warnings.catch_warnings():  # of escapes such as "\d", which are no fault
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" in line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or "nested too deep"
        raise NoFunction(f"it is not Python: {reason}{line}") from error
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    found: dict[str, Function] = {}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if not isinstance(node, ast.FunctionDef):
            raise NoFunction(f"line {node.lineno} is not a function: only `def` and imports may stand there")
        if node.name in _TAKEN:
            raise NoFunction(f"{node.name} is the name of something else")
        if node.name in found:
            raise NoFunction(f"{node.name} is defined twice")
        found[node.name] = _function(node, source.split("\n"), imports)
    if not found:
        raise NoFunction("it defines no function")
    return list(found.values())


def module_source(functions: Iterable[Function]) -> str:
    """The module of all functions, "" if there are none. They may call each other."""
    sources = [function.source for function in functions]
    return HEADER + "".join(f"\n\n{source}\n" for source in sources) if sources else ""


def _function(node: ast.FunctionDef, lines: Sequence[str], imports: Sequence[str]) -> Function:
    arguments = copy.deepcopy(node.args)
    positional = arguments.posonlyargs or arguments.args
    docstring = ast.get_docstring(node) or ""
    if positional and positional[0].arg == "env":
        del positional[0]
        left = len(arguments.posonlyargs) + len(arguments.args)
        arguments.defaults = arguments.defaults[-left:] if left else []
    elif not node.name.startswith("_"):
        raise NoFunction(f"the first parameter of {node.name} is not `env`")
    if not docstring.strip() and not node.name.startswith("_"):
        raise NoFunction(f"{node.name} has no docstring")
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    source = "\n".join([*imports, *lines[first - 1 : node.end_lineno]]).rstrip()
    return Function(node.name, source, f"{node.name}({ast.unparse(arguments)})", docstring)
