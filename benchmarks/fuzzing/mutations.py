"""One mutation of a true record: of bytes, lines, fields of JSON, whole files, or the folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.fuzzing import trees
from benchmarks.fuzzing.damage import XZ_MAGIC, bomb, damage_bytes, damage_lines, repack
from benchmarks.fuzzing.records import RUNS, TrueRecord, payload
from benchmarks.fuzzing.sealing import seal
from benchmarks.fuzzing.texts import other_text
from harness.record import RECORD

BOMB_SHARE = 0.002


@dataclass
class Mutation:
    """A record that is to be judged: its files, the name of its folder, and what was done."""

    files: dict[str, bytes]
    folder: str
    what: str
    sealed: bool = False
    operated: bool = False
    """Whether something is yet to happen to the files once they are written, see `folders.operate`."""


def mutate(record: TrueRecord, random: Random, donors: Sequence[bytes]) -> Mutation:
    """A mutation drawn by chance; `donors` are contents to splice from. Every second one is sealed again."""
    mutation = Mutation(dict(record.files), record.place.name, "")
    kinds: tuple[tuple[float, Callable[[TrueRecord, Mutation, Random, Sequence[bytes]], None]], ...] = (
        (BOMB_SHARE, _bomb), (0.25, _bytes), (0.10, _lines), (0.46, _field), (0.04, _whole), (0.03, _folder),
        (0.12, _operation),
    )  # fmt: skip
    change = random.choices([kind for _, kind in kinds], [share for share, _ in kinds])[0]
    change(record, mutation, random, donors)
    if random.randrange(2):
        mutation.sealed = True
        mutation.files = seal(record, mutation.files)
    return mutation


def _bytes(record: TrueRecord, mutation: Mutation, random: Random, donors: Sequence[bytes]) -> None:
    name = _draw(record, random)
    content = mutation.files[name]
    if content.startswith(XZ_MAGIC) and random.randrange(4):
        mutation.files[name] = repack(damage_bytes(payload(content), random, donors), random)
        mutation.what = f"bytes in what {name} holds"
    else:
        mutation.files[name] = damage_bytes(content, random, donors)
        mutation.what = f"bytes of {name}"


def _lines(record: TrueRecord, mutation: Mutation, random: Random, donors: Sequence[bytes]) -> None:
    name = _draw(record, random)
    content = mutation.files[name]
    changed = damage_lines(payload(content), random, donors)
    mutation.files[name] = repack(changed, random) if content.startswith(XZ_MAGIC) else changed
    mutation.what = f"lines of {name}"


def _field(record: TrueRecord, mutation: Mutation, random: Random, donors: Sequence[bytes]) -> None:
    names = [name for name in record.files if name.endswith((".json", ".jsonl", ".xz"))]
    name = random.choice([*names, RECORD, RECORD])
    content = mutation.files[name]
    text = payload(content).decode()
    if name.endswith(".json"):
        changed = change_json(text, random)
    else:
        lines = text.split("\n")
        place = random.randrange(len(lines) - 1)
        if random.randrange(2):  # what differs from most lines says the most
            rare = [index for index, line in enumerate(lines[:-1]) if '"event": "step"' not in line]
            place = random.choice([rare[0], *rare])
        lines[place] = change_json(lines[place], random)
        changed = "\n".join(lines)
        name_of_line = f"line {place + 1} of "
    data = changed.encode("utf-8", "surrogatepass")
    mutation.files[name] = repack(data, random) if content.startswith(XZ_MAGIC) else data
    mutation.what = f"a field of {name if name.endswith('.json') else name_of_line + name}"


def _whole(record: TrueRecord, mutation: Mutation, random: Random, donors: Sequence[bytes]) -> None:
    """A file in the place of another, of this record or of any."""
    name, other = _draw(record, random), _draw(record, random)
    if random.randrange(2):
        mutation.files[name] = random.choice(donors)
        mutation.what = f"another record's file for {name}"
    else:
        mutation.files[name], mutation.files[other] = record.files[other], record.files[name]
        mutation.what = f"{name} and {other} exchanged"


def _folder(record: TrueRecord, mutation: Mutation, random: Random, donors: Sequence[bytes]) -> None:
    name = other_text(mutation.folder, random).replace("/", "").replace("\0", "")[:200]
    mutation.folder = name if name not in ("", ".", "..") else "x"
    mutation.what = f"the folder is called {mutation.folder!r}"


def _operation(record: TrueRecord, mutation: Mutation, random: Random, donors: Sequence[bytes]) -> None:
    mutation.operated = True
    mutation.what = "files as such"


def _bomb(record: TrueRecord, mutation: Mutation, random: Random, donors: Sequence[bytes]) -> None:
    """What unpacks without end: noughts, empty lines or objects, after nothing or after true evidence."""
    name = random.choice(RUNS) + record.track.evidence_name
    unit = random.choice((b"\0", b"\n", b"{}\n", b"[" * 64))
    before = payload(record.files[name]) if random.randrange(2) else b""
    mutation.files[name] = bomb(unit, before)
    mutation.what = f"{name} unpacks to {unit[:8]!r} without end"


def change_json(text: str, random: Random) -> str:
    """The text of a value of JSON with some place changed, otherwise written as it was."""
    ending = text[len(text.rstrip("\n")) :]
    tree = trees.parse(text)
    styles = (trees.PLAIN, trees.COMPACT, trees.INDENTED)
    style = next((style for style in styles if trees.write(tree, style) + ending == text), trees.COMPACT)
    return trees.write(trees.mutate(tree, random), style) + ending


def _draw(record: TrueRecord, random: Random) -> str:
    """A file's name; figures, which are large and say little, seldom."""
    names = [name for name in record.files if name not in record.derived]
    return random.choice([*names, *names, *names, *sorted(record.derived), RECORD])
