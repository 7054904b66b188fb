"""Rules about the recipe: what ran is what the source says, read from the source without running it."""

import ast
import io
import json
import tokenize
import warnings
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from harness.checks.base import Rule, RunFiles, expect, rule
from harness.errors import Problem
from harness.files import canonical_json, sha256_bytes
from harness.record import MANIFEST, SOURCE

_RECIPE, _RECIPES = "Recipe", "RECIPES"
_READING = ("get", "items", "keys", "values")  # methods that leave a dict as it is


@dataclass(frozen=True)
class Setting:
    """The value of one field of a recipe, and the line of the source that gives it."""

    value: Any
    line: int


@rule("manifest")
def recipe_hash(run: RunFiles) -> str:
    """The recipe's hash in the manifest is the hash of the recipe in the manifest."""
    found, computed = run.manifest.recipe_sha256, sha256_bytes(canonical_json(run.manifest.recipe).encode())
    expect("recipe_sha256", found, computed, by="recipe", file=run.name(MANIFEST))
    return found


@rule("manifest", "track")
def source(run: RunFiles) -> str:
    """speedrun.py is the source that ran, beside the track's open files, which the manifest names."""
    found, manifest, file = run.home.sha256(SOURCE), run.manifest, run.name(MANIFEST)
    expect("sha256", found, manifest.source_sha256, by=file, file=SOURCE)
    patterns = run.home.track.open_files
    for name in manifest.open_files:
        if not any(lies_in(name, pattern) for pattern in patterns):
            raise Problem(f"open_files names {name!r}, which no recipe may bring", file=file)
    for pattern in patterns if "open_files" in manifest.model_fields_set else ():
        if not any(lies_in(name, pattern) for name in manifest.open_files):
            raise Problem(f"open_files names none of {pattern}, expected all that there were", file=file)
    return found


def lies_in(name: str, pattern: str) -> bool:
    """Whether a path from the root is one that a pattern without `**` finds."""
    path = PurePosixPath(name)
    same_depth = name.count("/") == pattern.count("/") and str(path) == name
    return same_depth and ".." not in path.parts and path.match(pattern)


@rule("manifest")
def recipe_in_source(run: RunFiles) -> str:
    """The recipe in the manifest is, field by field, the one that speedrun.py gives under that name."""
    manifest = run.manifest
    expect("recipe_name", manifest.recipe_name, manifest.hardware_class, by="class", file=run.name(MANIFEST))
    written = read_recipe(run.home.text(SOURCE), manifest.recipe_name)
    for name in sorted(written.keys() - manifest.recipe.keys()):
        raise Problem(f"the recipe lacks {name!r}, which {SOURCE} sets", file=run.name(MANIFEST))
    for name, found in manifest.recipe.items():
        if name not in written:
            raise Problem(f"the recipe has {name!r}, which {SOURCE} does not", file=run.name(MANIFEST))
        setting = written[name]
        if canonical_json(found) != canonical_json(setting.value):
            reason = (
                f"the recipe's {name} is {found!r}, expected {setting.value!r} by {SOURCE}:{setting.line}"
            )
            raise Problem(reason, file=run.name(MANIFEST))
    return f"{len(written)} fields of {manifest.recipe_name!r} agree"


LONGEST_SOURCE = 2**20


def read_recipe(text: str, name: str) -> dict[str, Setting]:
    """The recipe called `name` as a source gives it, without running it: literals and defaults only.

    The source must hold one frozen dataclass `Recipe` without bases or special methods, and one assignment
    `RECIPES = {"name": Recipe(field=literal, ...), ...}`; neither name may be bound or changed anywhere else.

    Raises:
        Problem: the source says it in another way; file and line say where.
    """
    if len(text) > LONGEST_SOURCE:
        raise Problem(f"has {len(text):,} characters, at most {LONGEST_SOURCE:,} are read", file=SOURCE)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(text.encode()).readline)
        if encoding != "utf-8":  # Python would then read another text than this one
            raise Problem(f"is declared to be {encoding}, expected UTF-8", file=SOURCE)
        with warnings.catch_warnings(action="ignore"):  # they are of style
            module = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise Problem(f"is not Python: {error}", file=SOURCE, line=getattr(error, "lineno", None)) from None
    _refuse_other_bindings(module)
    defaults = _defaults(_recipe_class(module))
    call = _call(_recipes(module), name)
    recipe = dict(defaults)
    for keyword in call.keywords:
        if keyword.arg not in defaults:
            raise _fault(keyword, f"Recipe has no field {keyword.arg or '**'!r}")
        recipe[keyword.arg] = Setting(_literal(keyword.value, keyword.arg), keyword.lineno)
    settings: dict[str, Setting] = {}
    for field, setting in recipe.items():
        if setting is None:
            raise _fault(call, f"recipe {name!r} gives no value for {field!r}")
        settings[field] = setting
    return settings


def _recipe_class(module: ast.Module) -> ast.ClassDef:
    for node in module.body:
        if isinstance(node, ast.ClassDef) and node.name == _RECIPE:
            if node.bases or node.keywords or list(map(_freezes, node.decorator_list)) != [True]:
                raise _fault(node, "Recipe must be a @dataclass(frozen=True) without bases")
            return node
    raise Problem("defines no class Recipe", file=SOURCE)


def _freezes(decorator: ast.expr) -> bool:
    if not isinstance(decorator, ast.Call):
        return False
    options = {keyword.arg: ast.unparse(keyword.value) for keyword in decorator.keywords}
    named = ast.unparse(decorator.func) in ("dataclass", "dataclasses.dataclass")
    return named and options.get("frozen") == "True"


def _defaults(recipe: ast.ClassDef) -> dict[str, Setting | None]:
    """Field name -> its default, or None where the field has none."""
    fields: dict[str, Setting | None] = {}
    for node in recipe.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                fields[name] = None if value is None else Setting(_literal(value, name), node.lineno)
            case ast.Expr(value=ast.Constant()):
                pass  # a docstring
            case ast.FunctionDef(name=name) if not name.startswith("__") or name == "__post_init__":
                pass  # what __post_init__ may change shows where source and manifest are compared
            case _:
                raise _fault(node, "Recipe may hold fields, docstrings and plain methods only")
    return fields


def _recipes(module: ast.Module) -> ast.Dict:
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="RECIPES")], value=ast.Dict() as recipes):
                return recipes
            case ast.AnnAssign(target=ast.Name(id="RECIPES"), value=ast.Dict() as recipes):
                return recipes
    raise Problem('assigns no RECIPES = {"name": Recipe(...)}', file=SOURCE)


def _call(recipes: ast.Dict, name: str) -> ast.Call:
    found: ast.Call | None = None
    for key, value in zip(recipes.keys, recipes.values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            raise _fault(value, "the keys of RECIPES must be texts")
        if key.value == name:
            if found is not None:
                raise _fault(key, f"RECIPES holds {name!r} twice")
            match value:
                case ast.Call(func=ast.Name(id="Recipe"), args=[]):
                    found = value
                case _:
                    raise _fault(value, f"RECIPES[{name!r}] must be Recipe(field=value, ...)")
    if found is None:
        raise _fault(recipes, f"RECIPES holds no {name!r}")
    return found


def _refuse_other_bindings(module: ast.Module) -> None:
    """Refuse a source that binds Recipe or RECIPES more than once, or changes what is in RECIPES."""
    bound: dict[str, list[ast.AST]] = {_RECIPE: [], _RECIPES: []}
    for node in ast.walk(module):
        match node:
            case ast.Subscript(value=ast.Name(id="RECIPES"), ctx=ast.Store() | ast.Del()):
                raise _fault(node, "changes RECIPES after it is written")
            case ast.Attribute(value=ast.Name(id="RECIPES"), attr=method) if method not in _READING:
                raise _fault(node, f"uses RECIPES.{method}, which may change RECIPES")
            case ast.Attribute(value=ast.Name(id="Recipe"), ctx=ast.Store() | ast.Del()):
                raise _fault(node, "changes Recipe after it is written")
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                raise _fault(node, "imports *, which may bind any name")
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.get(name, []).append(node)
            case ast.MatchMapping(rest=str(name)) | ast.ExceptHandler(name=str(name)):
                bound.get(name, []).append(node)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.get(name, []).append(node)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound.get(name, []).append(node)
            case ast.alias(name=name, asname=other):
                bound.get(other or name.partition(".")[0], []).append(node)
    for name, nodes in bound.items():
        if len(nodes) > 1:
            last = max(nodes, key=lambda node: getattr(node, "lineno", 0))
            raise _fault(last, f"binds {name} a second time")


def _literal(node: ast.expr, field: str) -> Any:
    try:
        return json.loads(canonical_json(ast.literal_eval(node)))
    except (ValueError, TypeError):
        raise _fault(node, f"the value of {field} is {ast.unparse(node)}, expected a literal") from None


def _fault(node: ast.AST, reason: str) -> Problem:
    return Problem(reason, file=SOURCE, line=getattr(node, "lineno", None))


RULES: tuple[Rule[RunFiles], ...] = (recipe_hash, source, recipe_in_source)
