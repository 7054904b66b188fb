"""FIXED: what a run said and did: every call of its model, and every action of its evaluation.

`evidence.jsonl.xz` is one xz stream of JSON lines with sorted keys. The first says which run it is of, see
`evidence_header`. Then comes a line a call, those of training first, in the order in which they ended:

    {"completion":41,"finish":"stop","kind":"call","label":"wake/000012/003","lost":0,"prompt":2310,
        "reply":"Thought: ...","request":"9a0d..."}

and at last a line an episode of the evaluation, in the order of `agents.task.episodes`:

    {"actions":["turn left","go forward"],"digest":"31c7...","kind":"episode","score":1.0,"seed":2003411,
        "steps":2,"task":"goto"}

The first part of a label is the phase: wake and sleep are training, eval is the evaluation, whose episode k
asks under "eval/00000k/". `prompt` and `completion` are the tokens that the server reports, null where it
says nothing; `lost` are those that failed attempts may have taken, at their most. An answer takes at least a
token of a prompt, and of its own what its text needs. The calls of an episode or a conversation are numbered
without a gap. `digest` is that of all the agent was shown.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from agents.task import TASKS, episodes
from agents.traces import Played, at, read_played, versions_fault
from harness.errors import Problem
from harness.files import read_json, write_atomic
from harness.packed import pack_lines, unpack_lines

LONGEST_LINE = 2**22  # bytes
MOST_TOKENS = 2**40  # of a call
LONGEST_TOKEN = 256  # bytes; more than any tokenizer has
PROMPTS = "agents/prompts/"
PHASES = ("wake", "sleep", "eval")
RECIPE_FIELDS = ("method", "model", "temperature", "max_tokens", "turn_limit", "history")
"""Fields of the recipe that shaped the play, as the header repeats them."""

_CALL = {"kind", "label", "request", "reply", "finish", "prompt", "completion", "lost"}
_LABEL = re.compile(rf"(?:{'|'.join(PHASES)})(?:/[A-Za-z0-9_.-]{{1,100}}){{1,10}}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class CallRow(NamedTuple):
    """A call of the model."""

    label: str
    """With the request unique among answered calls."""
    request: str
    """Hash of all that decides the answer."""
    reply: str | None
    """None = there was no answer."""
    finish: str | None
    prompt: int | None
    completion: int | None
    lost: int

    @property
    def tokens(self) -> int | None:
        """All that it took; None = not known."""
        if self.reply is None:
            return self.lost
        if self.prompt is None or self.completion is None:
            return None
        return self.prompt + self.completion + self.lost

    def line(self) -> dict[str, Any]:
        """The call as evidence has it."""
        return {"kind": "call", **self._asdict()}


class Evidence(NamedTuple):
    """Evidence in the right form, not yet replayed."""

    header: dict[str, Any]
    calls: list[CallRow]
    episodes: list[Played]
    first_line: int
    """Number of the line of the first episode; the others follow."""

    @property
    def learned(self) -> int:
        """How many training episodes asked for an action."""
        return len({call.label.split("/")[1] for call in self.calls if call.label.startswith("wake/")})

    def tokens(self, *phases: str) -> int | None:
        """What all calls of some phases took, or of all; None = a server did not say of one."""
        counts = [call.tokens for call in self.calls if call.label.split("/")[0] in (phases or PHASES)]
        return None if None in counts else sum(count or 0 for count in counts)


def evidence_header(
    name: str,
    *,
    seed: int,
    checkpoint_sha256: str,
    prompts: Mapping[str, str],
    recipe: Mapping[str, Any],
    versions: Mapping[str, str],
) -> dict[str, Any]:
    """The first line of evidence: which run played what, with which prompts and libraries.

    `prompts` are the hashes of all fixed words that models read; of `recipe` only RECIPE_FIELDS are kept.
    """
    return {
        "class": name,
        "seed": seed,
        "checkpoint_sha256": checkpoint_sha256,
        "episodes": len(episodes(name)),
        "prompts": dict(prompts),
        "recipe": {field: recipe[field] for field in RECIPE_FIELDS},
        "versions": dict(versions),
    }


def write_evidence(
    path: Path, header: Mapping[str, Any], calls: Iterable[CallRow], played: Iterable[Played]
) -> None:
    """Write evidence, whole or not at all."""
    write_atomic(
        path, pack_lines([header, *(call.line() for call in calls), *(one.line() for one in played)])
    )


def read_evidence(path: Path) -> Evidence:
    """Read evidence and check its form.

    Raises:
        Problem: with file and line: no strict JSON lines in one xz stream; a header of another form; a call
            of no phase, answered twice, or answered without tokens; an episode missing, repeated, out of
            order, or played without an answer; a library of the benchmark is missing.
    """
    lines = unpack_lines(path, LONGEST_LINE)
    number, header = next(lines, (1, {}))
    with at(path, number):
        check_header(header)
        wanted = episodes(header["class"])
    calls: list[CallRow] = []
    played: list[Played] = []
    answered: set[tuple[str, str]] = set()
    first = number + 1
    for number, row in lines:
        with at(path, number):
            if row.get("kind") == "call" and not played:
                calls.append(call := read_call(row))
                if call.reply is not None:
                    if (call.label, call.request) in answered:
                        raise Problem(f"a second answer to {call.label!r}")
                    answered.add((call.label, call.request))
                first = number + 1
            elif len(played) < len(wanted):
                played.append(read_played(row, wanted[len(played)]))
            else:
                raise Problem(f"more than {len(wanted)} episodes")
    if len(played) < len(wanted):
        raise Problem(f"{len(played)} of {len(wanted)} episodes, the rest is missing", file=path)
    _check_asked(calls, played, path, first)
    _check_numbers(calls, path)
    return Evidence(header, calls, played, first)


def check_header(header: Mapping[str, Any]) -> None:
    """A Problem where the first line is not in the form of `evidence_header`."""
    name = header.get("class")
    if not isinstance(name, str) or name not in TASKS:
        raise Problem(f"class is {name!r:.60}, none of {', '.join(TASKS)}")
    seed, versions, recipe = (header.get(key) for key in ("seed", "versions", "recipe"))
    if not _whole(seed, 2**31):
        raise Problem("seed is not a number of 31 bits")
    prompts = header.get("prompts")
    if not isinstance(prompts, dict):
        raise Problem("prompts is not an object of hashes")
    for key, digest in (("checkpoint_sha256", header.get("checkpoint_sha256")), *prompts.items()):
        if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            raise Problem(f"{key!r:.60} has no SHA-256")
    if fault := versions_fault(name, versions):
        raise Problem(fault)
    if not isinstance(recipe, dict) or recipe.keys() != set(RECIPE_FIELDS):
        raise Problem(f"recipe does not hold {', '.join(RECIPE_FIELDS)} and no others")
    for field, value in recipe.items():
        if not isinstance(value, str | int | float | None):
            raise Problem(f"the recipe's {field} is {value!r:.60}, neither text nor number nor null")
    given = {key: header[key] for key in ("seed", "checkpoint_sha256", "prompts", "recipe", "versions")}
    made = evidence_header(name, **given)
    if header.keys() != made.keys():
        raise Problem(f"the first line must hold exactly {', '.join(sorted(made))}")
    if type(header["episodes"]) is not int or header["episodes"] != made["episodes"]:
        raise Problem(f"episodes is {header['episodes']!r:.60}, expected {made['episodes']}")


def read_call(row: Mapping[str, Any]) -> CallRow:
    """The call on a line; a Problem where it has another form."""
    if row.keys() != _CALL or row["kind"] != "call":
        raise Problem(f"no call: it must have exactly {', '.join(sorted(_CALL))}")
    if not isinstance(row["label"], str) or not _LABEL.fullmatch(row["label"]):
        raise Problem(f"label is {row['label']!r:.60}, expected {'/... or '.join(PHASES)}/...")
    where = f"call {row['label']!r:.80}"
    if not isinstance(row["request"], str) or not _SHA256.fullmatch(row["request"]):
        raise Problem(f"request of {where} is not a SHA-256")
    answered = isinstance(row["reply"], str) and isinstance(row["finish"], str)
    if not answered and not (row["reply"] is None and row["finish"] is None):
        raise Problem(f"{where} has neither the text and end of an answer nor null for both")
    for name in ("prompt", "completion"):
        count = row[name]
        if count is not None and not (answered and _whole(count, MOST_TOKENS)):
            raise Problem(f"{name} of {where} is {count!r:.60}, no number of tokens and not null")
    if not _whole(row["lost"], MOST_TOKENS):
        raise Problem(f"lost of {where} is {row['lost']!r:.60}, no number of tokens")
    if answered and (row["prompt"] == 0 or (row["reply"] and row["completion"] == 0)):
        raise Problem(f"{where} was asked or answered without a token")
    if answered and row["completion"] is not None:
        size = len(row["reply"].encode(errors="replace"))
        if size > LONGEST_TOKEN * row["completion"]:
            raise Problem(f"{where} has {size:,} bytes of an answer in {row['completion']} tokens")
    return CallRow(**{name: row[name] for name in CallRow._fields})


def _check_asked(calls: Sequence[CallRow], played: Sequence[Played], path: Path, first: int) -> None:
    """Refuse an episode with actions that no answer told it, and evaluation calls of no episode."""
    evaluation = [(call.label.split("/")[1], call.reply) for call in calls if call.label.startswith("eval/")]
    asked = {name for name, _ in evaluation}
    answered = {name for name, reply in evaluation if reply}
    for index, row in enumerate(played):
        name = f"{index:06d}"
        if row.actions and name not in answered:
            reason = f"took actions, but no call eval/{name}/... was answered"
            raise Problem(reason, file=path, line=first + index)
        asked.discard(name)
    if asked:
        reason = f"calls eval/{min(asked):.40}/..., but there is no such episode"
        raise Problem(reason, file=path)


def _check_numbers(calls: Sequence[CallRow], path: Path) -> None:
    """Refuse calls between which one is missing, and training episodes between which one is."""
    asked: dict[str, set[int]] = {}
    for call in calls:
        place, _, number = call.label.rpartition("/")
        if number.isdecimal():
            asked.setdefault(f"{place}/", set()).add(int(number))
        if place.startswith("wake/") and (number := place.split("/")[1]).isdecimal():
            asked.setdefault("wake/", set()).add(int(number))
    for place, numbers in asked.items():
        missing = next(number for number in count() if number not in numbers)
        if missing < max(numbers):
            raise Problem(f"of the calls {place:.60}... number {missing} is missing", file=path)


def read_checkpoint(path: Path, method: str, seed: int) -> dict[str, Any]:
    """The memory in a checkpoint.

    Raises:
        Problem: it cannot be read, or is of another method or seed.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.keys() != {"method", "seed", "memory"}:
        raise Problem("should hold method, seed and memory, and nothing else", file=path)
    if (content["method"], content["seed"]) != (method, seed) or not isinstance(content["memory"], dict):
        raise Problem(f"is not what {method} of seed {seed} has learned", file=path)
    return dict(content["memory"])


def _whole(value: object, below: int) -> bool:
    return type(value) is int and 0 <= value < below
