"""What a row of the suite is: one way to make a true record untrue, and the checks that must see it."""

from typing import NamedTuple

from harness.checks import CHECKS
from toy_track.forging import Forged, Step, failing


class Forgery(NamedTuple):
    """One way to make a record untrue, with all else made to agree again."""

    name: str
    forge: Step
    fails: tuple[str, ...]
    """The check that must catch it, and then all others that see it; of a second run, without its prefix."""
    says: str
    """Part of what the first of them says."""
    parts: tuple[str, ...] = ("",)
    """In which run it is done, "" or "verification"; each makes a record of its own."""
    first: tuple[str, ...] = ()
    """Further checks that see it in the first run."""
    second: tuple[str, ...] = ()
    """Further checks that see it in the second run."""
    finish: bool = True
    """Whether hashes and README are then made to agree."""


EITHER = ("", "verification")


def judge(forgery: Forgery, part: str, forged: Forged) -> None:
    """Forge, and see that the checks meant for it fail, and no other."""
    forged.part = part
    forgery.forge(forged)
    if forgery.finish:
        forged.finish()
    found = failing(forged.checks())
    names = [f"{part}/{name}" if part and f"{part}/{name}" in CHECKS else name for name in forgery.fails]
    assert set(found) == {*names, *(forgery.second if part else forgery.first)}, found
    assert forgery.says in found[names[0]]


def rows(forgeries: list[Forgery]) -> list[tuple[Forgery, str]]:
    """Every forgery in every run in which it is done."""
    return [(forgery, part) for forgery in forgeries for part in forgery.parts]


def identify(value: object) -> str:
    """A row's name in a test's."""
    return value.name if isinstance(value, Forgery) else str(value) or "first"
