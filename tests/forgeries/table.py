"""What a row of the suite is: one way to make a true record untrue, and the checks that must see it."""

import lzma
from typing import NamedTuple

from harness.checks import CHECKS
from harness.eligibility import second_seed
from harness.manifest import read_manifest
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


def judge_seed(step: Step, forged: Forged) -> None:
    """See that what no check sees, as it may be so, gives no other second seed under today's ruleset."""

    def seed() -> int:
        manifest = read_manifest(forged / "manifest.json").model_copy(update={"ruleset": "2"})
        return second_seed(forged / forged.track.evidence_name, manifest, forged.track)

    forged.part = "verification"
    true, said = seed(), (forged / forged.track.evidence_name).read_bytes()
    step(forged)
    forged.finish()
    assert (forged / forged.track.evidence_name).read_bytes() != said
    assert failing(forged.checks()) == {}
    assert seed() == true


def fixed(name: str) -> Forgery:
    """A file of the checkout that no recipe may change, changed."""

    def forge(f: Forged) -> None:
        path = f.fixed(name)
        path.write_bytes(path.read_bytes() + b"\n")

    return Forgery(f"{name} changed", forge, ("fixed_files", "verification/fixed_files"), f"{name} is ")


def packed(content: bytes) -> Step:
    """Other bytes as evidence, which the log names."""
    return lambda f: f.write_evidence(content)


def bomb() -> bytes:
    """Two hundred megabytes of one line, packed."""
    packer = lzma.LZMACompressor(preset=0)
    return b"".join([*(packer.compress(b" " * 2**20) for _ in range(200)), packer.flush()])


def rows(forgeries: list[Forgery]) -> list[tuple[Forgery, str]]:
    """Every forgery in every run in which it is done."""
    return [(forgery, part) for forgery in forgeries for part in forgery.parts]


def identify(value: object) -> str:
    """A row's name in a test's."""
    return value.name if isinstance(value, Forgery) else str(value) or "first"
