"""What can happen to the files of a folder rather than to their content."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

Operation = Callable[[Path, str, Random], object]
"""(folder, name of a file in it, chance) -> something happens to that file."""

_NAMES = (b"extra.txt", b"README.md ", b"readme.md", b"record.json.bak", b".hidden", b"record\xff.json",
          b"a\nb",
          "r\u0435cord.json".encode(), b"-rf", b"$(touch x)", b"x" * 255, "\u202enosj.drocer".encode(),
          b".git", b"__pycache__", b"conftest.py", b"sitecustomize.py", b"con", b"a|b`c`.svg")  # fmt: skip


def operate(folder: Path, names: list[str], random: Random) -> str:
    """Let one operation, or two, happen to files drawn from `names`; says which."""
    said = []
    for _ in range(random.choice((1, 1, 2))):
        operation, name = random.choice(OPERATIONS), random.choice(names)
        if os.path.lexists(folder / name):
            with suppress(OSError):  # what happened before may leave no room for it
                operation(folder, name, random)
            said.append(f"{operation.__name__.lstrip('_')} {name}")
    return ", ".join(said)


def _missing(folder: Path, name: str, random: Random) -> None:
    _remove(folder / name)


def _extra(folder: Path, name: str, random: Random) -> None:
    place = os.fsencode((folder / name).parent) + b"/" + random.choice(_NAMES)
    if not os.path.lexists(place):
        if random.randrange(3):
            Path(os.fsdecode(place)).write_bytes(random.choice((b"", b"x", b"{}\n")))
        else:
            Path(os.fsdecode(place)).mkdir()


def _link(folder: Path, name: str, random: Random) -> None:
    """A link to the same content, to itself, to nothing, or to what never ends."""
    path, elsewhere = folder / name, folder.parent / "elsewhere"
    if elsewhere.exists():
        _remove(elsewhere)
    path.rename(elsewhere)
    path.symlink_to(
        random.choice((elsewhere, path, folder / "nothing", Path("/dev/zero"), folder, Path("/")))
    )


def _hard_link(folder: Path, name: str, random: Random) -> None:
    path, other = folder / name, (folder / name).with_name("linked")
    if path.is_file() and not path.is_symlink() and not other.exists():
        os.link(path, other)


def _folder_in_place(folder: Path, name: str, random: Random) -> None:
    content = folder / name
    _remove(content)
    content.mkdir()
    if random.randrange(2):
        (content / Path(name).name).write_bytes(b"x")


def _pipe(folder: Path, name: str, random: Random) -> None:
    _remove(folder / name)
    os.mkfifo(folder / name)


def _no_rights(folder: Path, name: str, random: Random) -> None:
    if not (folder / name).is_symlink():
        (folder / name).chmod(random.choice((0, 0o200, 0o111, 0o4755)))


def _huge(folder: Path, name: str, random: Random) -> None:
    """A file with a hole that makes it too large, or absurd."""
    if (folder / name).is_file() and not (folder / name).is_symlink():
        os.truncate(folder / name, random.choice((2**23, 2**23 + 1, 2**30, 2**40)))


def _empty(folder: Path, name: str, random: Random) -> None:
    if (folder / name).is_file() and not (folder / name).is_symlink():
        (folder / name).write_bytes(b"")


def _exchange(folder: Path, name: str, random: Random) -> None:
    """Two files of the folder in each other's place."""
    files = [path for path in sorted(folder.rglob("*")) if _is_small(path)]
    first, second = folder / name, random.choice(files or [folder / name])
    if _is_small(first) and _is_small(second):
        first_content, second_content = first.read_bytes(), second.read_bytes()
        first.write_bytes(second_content)
        second.write_bytes(first_content)


def _first_for_second(folder: Path, name: str, random: Random) -> None:
    """A file of the first run in the place of the second's, or the other way round."""
    other = name.partition("/")[2] if "/" in name else f"verification/{name}"
    if _is_small(folder / name) and (folder / other).parent.is_dir() and not (folder / other).is_dir():
        _remove(folder / other)
        shutil.copy(folder / name, folder / other)


def _rename(folder: Path, name: str, random: Random) -> None:
    path = folder / name
    others = (
        path.name.upper(),
        path.name + " ",
        path.name.replace("e", "\u0435"),
        "." + path.name,
        path.name[:-1],
    )
    other = path.with_name(random.choice(others))
    if not os.path.lexists(other):
        path.rename(other)


def _second(folder: Path, name: str, random: Random) -> None:
    """The second run's folder gone, empty, a link, a file, or deeper by one."""
    path, kind = folder / "verification", random.randrange(5)
    if not path.is_dir() or path.is_symlink():
        return
    elsewhere = folder.parent / "elsewhere"
    if os.path.lexists(elsewhere):
        _remove(elsewhere)
    path.rename(elsewhere)
    if kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to(elsewhere)
    elif kind == 3:
        path.write_bytes(b"")
    elif kind == 4:
        path.mkdir()
        elsewhere.rename(path / "verification")


def _is_small(path: Path) -> bool:
    """Whether it is a plain file that may be read whole."""
    return path.is_file() and not path.is_symlink() and path.stat().st_size <= 2**23


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


OPERATIONS: tuple[Operation, ...] = (
    *(_missing, _extra, _link, _hard_link, _folder_in_place, _pipe, _no_rights, _huge, _empty, _exchange),
    *(_first_for_second, _rename, _second),
)
