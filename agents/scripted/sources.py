"""FIXED: the source of our functions as the scripted programmer sends it: one by one, without types."""

import ast
from functools import cache
from pathlib import Path


@cache
def sources(module: str) -> dict[str, str]:
    """Source by name of the functions of `agents/scripted/<module>.py`, in their order."""
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text())
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = ast.unparse(_Untyped().visit(node))
    return found


def renamed(source: str, old: str, new: str) -> str:
    """The source of a function under another name."""
    return source.replace(f"def {old}(", f"def {new}(", 1)


class _Untyped(ast.NodeTransformer):
    """Takes away annotations, whose names are not there in the sandbox."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.Assign:
        assert node.value is not None
        return ast.copy_location(ast.Assign([node.target], node.value), node)
