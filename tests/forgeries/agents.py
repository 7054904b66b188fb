"""A true record of the agents track, made by a script, made untrue in what is the track's own."""

import json
from collections.abc import Callable
from typing import Any

from forgeries.table import EITHER, Forgery, bomb, fixed, packed
from toy_track.forging import Forged, Row, Step, both, copy_play, play, then, update, write

SECOND = ("verification",)
EVIDENCE, MEMORY = "evidence.jsonl.xz", "memory.json"


def first(rows: list[Row], **fields: object) -> int:
    """The place of the first line with these fields; of a label, its beginning."""
    label = str(fields.pop("label", ""))
    return next(
        place
        for place, row in enumerate(rows)
        if str(row.get("label", "")).startswith(label) and fields.items() <= row.items()
    )


def episode(change: Callable[[Row], object]) -> Step:
    """Another first episode."""
    return play(lambda rows: change(rows[first(rows, kind="episode")]))


def actions(change: Callable[[list[str]], object]) -> Step:
    """Other actions in the first episode, with as many steps."""

    def forge(row: Row) -> None:
        change(row["actions"])
        row["steps"] = len(row["actions"])

    return episode(forge)


def call(label: str, /, **changes: Any) -> Step:
    """Other fields in the first call of a label."""
    return play(lambda rows: rows[first(rows, label=label)].update(changes))


def calls(label: str, /, **changes: Any) -> Step:
    """Other fields in all calls of a label."""
    return play(lambda rows: [row.update(changes) for row in rows if _of(row, label)])


def drop(label: str) -> Step:
    """The calls of a label left out, and their tokens with them."""
    return play(lambda rows: rows.__setitem__(slice(None), [row for row in rows if not _of(row, label)]))


def _of(row: Row, label: str) -> bool:
    return str(row.get("label", "")).startswith(label)


def move(label: str, before: str) -> Step:
    """The first call of a label put before the first episode or the first call of another."""

    def change(rows: list[Row]) -> None:
        row = rows.pop(first(rows, label=label))
        rows.append(row) if before == "end" else rows.insert(first(rows, label=before), row)

    return play(change)


def swap(rows: list[Row]) -> None:
    """Two episodes in each other's place."""
    place = first(rows, kind="episode")
    rows[place], rows[place + 1] = rows[place + 1], rows[place]


def episodes(change: Callable[[list[Row], int], object]) -> Step:
    """Other lines, given the place of the first episode."""
    return play(lambda rows: change(rows, first(rows, kind="episode")))


def skill_hidden(rows: list[Row]) -> None:
    """An episode that a skill played, told as the one action that called it."""
    row = next(row for row in rows if row.get("kind") == "episode" and len(row["actions"]) > 4)
    row["actions"], row["steps"] = row["actions"][:1], 1


def recipe(**changes: Any) -> Step:
    """Other fields of the recipe in the first line."""
    return play(lambda rows: rows[0]["recipe"].update(changes))


def prompts(**changes: str) -> Step:
    """Other hashes of prompts in the first line."""
    return play(lambda rows: rows[0]["prompts"].update(changes))


def memory(change: Callable[[Row], object]) -> Step:
    """Another memory, which log and evidence name."""

    def forge(f: Forged) -> None:
        content = json.loads((f / MEMORY).read_text())
        change(content)
        f.save(json.dumps(content, separators=(",", ":"), sort_keys=True).encode() + b"\n")

    return forge


def cheaper(f: Forged) -> None:
    """Half the tokens in every prompt of the evidence, and in the record; the log stays."""

    def change(rows: list[Row]) -> None:
        for row in rows:
            if "prompt" in row:
                row["prompt"] //= 2

    f.play(change)


def open_files(**changes: str) -> Step:
    """Other hashes of open files in the manifest."""
    return lambda f: f.manifest(open_files=f.read_manifest()["open_files"] | changes)


def without_open_files(folder: str) -> Step:
    """No hashes of the open files in a folder."""

    def forge(f: Forged) -> None:
        files = f.read_manifest()["open_files"]
        f.manifest(open_files={name: files[name] for name in files if not name.startswith(folder)})

    return forge


def reorder(rows: list[Row]) -> None:
    """Two calls as if they had ended the other way round."""
    rows[1], rows[2] = rows[2], rows[1]


def fail_once(rows: list[Row]) -> None:
    """A call that took nothing and was not answered, before one that was."""
    nothing = {"reply": None, "finish": None, "prompt": None, "completion": None, "lost": 0}
    rows.insert(1, rows[1] | nothing | {"request": "0" * 64})


SAME_SEED: dict[str, Step] = {
    "calls in another order": play(reorder),
    "a call that failed": play(fail_once),
    "tokens that were lost": call("wake/", lost=1),
    "another version of a library": play(lambda rows: rows[0]["versions"].update(minigrid="9")),
    "blanks in the memory": lambda f: f.save((f / MEMORY).read_bytes().replace(b",", b" , ")),
}

NO_HASH = "0" * 64
_PROMPT, _METHOD = "agents/prompts/system.md", "agents/methods/speedrunner.py"
FORGERIES: list[Forgery] = [
    # ---- episodes ----
    Forgery("an action added", actions(lambda some: some.insert(0, "turn left")), ("evidence",), "", SECOND),
    Forgery(
        "actions after the end", actions(lambda some: some.extend(["done"] * 1_000)), ("evidence",),
        "comes after the", SECOND,
    ),
    Forgery("an action left out", actions(lambda some: some.pop(0)), ("evidence",), "expected", SECOND),
    Forgery("actions reordered", actions(list.reverse), ("evidence",), "", SECOND),
    Forgery(
        "an action that there is not", actions(lambda some: some.__setitem__(0, "fly")), ("evidence",), "",
        SECOND,
    ),
    Forgery(
        "a score in another form", episode(lambda row: row.update(score=int(row["score"]))), ("evidence",),
        ", expected ", SECOND,
    ),
    Forgery(
        "a score of less than nothing",
        play(lambda rows: [row.update(score=-0.0) for row in rows if row.get("score") == 0]),
        ("evidence",), "score of ", SECOND,
    ),
    Forgery("a skill's steps hidden", play(skill_hidden), ("evidence",), "expected", SECOND),
    Forgery(
        "fewer steps than actions", episode(lambda row: row.update(steps=1)), ("evidence",), "but it has",
        SECOND,
    ),
    Forgery(
        "a better score", play(lambda rows: rows[-1].update(score=1.0)), ("evidence",),
        "score is 1.0, expected 0.0", SECOND,
    ),
    Forgery(
        "a score beyond all", episode(lambda row: row.update(score=1e9)), ("evidence",), "no number from 0",
        SECOND,
    ),
    Forgery(
        "another digest of what was seen", episode(lambda row: row.update(digest=NO_HASH)), ("evidence",),
        "digest is", SECOND,
    ),
    Forgery("an episode left out", episodes(lambda rows, at: rows.pop(at)), ("evidence",), "must be", SECOND),
    Forgery("the last episode left out", play(list.pop), ("evidence",), "4 of 5 episodes", SECOND),
    Forgery(
        "an episode repeated", episodes(lambda rows, at: rows.insert(at, rows[at])), ("evidence",),
        "must be", SECOND,
    ),
    Forgery(
        "an episode more", play(lambda rows: rows.append(rows[-1])), ("evidence",), "more than 5", SECOND,
    ),
    Forgery("episodes reordered", play(swap), ("evidence",), "must be", SECOND),
    Forgery(
        "an easier episode", episode(lambda row: row.update(seed=2_000_000)), ("evidence",),
        "seed is 2000000", SECOND,
    ),
    Forgery(
        "an episode of training", episode(lambda row: row.update(seed=7)), ("evidence",), "seed is 7",
        SECOND,
    ),
    Forgery(
        "another task", episode(lambda row: row.update(task="open")), ("evidence",), "task is 'open'",
        SECOND,
    ),
    # ---- calls ----
    Forgery("tokens lowered in the record", lambda f: f.own("cost", 1.0), ("cost",), "cost is 1.0", EITHER),
    Forgery("tokens lowered in every call", cheaper, ("cost",), "training had taken", SECOND),
    Forgery(
        "an answer without tokens", call("wake/", completion=0), ("evidence",), "without a token", SECOND,
    ),
    Forgery(
        "an answer in one token", call("sleep/0/1", completion=1), ("evidence",), "bytes of an answer in 1",
        SECOND,
    ),
    Forgery("tokens not told", call("wake/", prompt=None), ("cost",), "expected None", SECOND),
    Forgery("negative tokens", call("wake/", lost=-5000), ("evidence",), "lost of call", SECOND),
    Forgery("tokens a fraction", call("wake/", prompt=0.5), ("evidence",), "prompt of call", SECOND),
    Forgery("tokens without bound", call("wake/", prompt=2**60), ("evidence",), "prompt of call", SECOND),
    Forgery(
        "a call of training left out", drop("wake/000000/001"), ("evidence",), "number 1 is missing", SECOND,
    ),
    Forgery(
        "an episode of training left out", drop("wake/000001"), ("evidence",), "number 1 is missing", SECOND,
    ),
    Forgery(
        "the last episode of training left out", drop("wake/000003"), ("evidence_source",), "episodes is 4",
        SECOND,
    ),
    Forgery("a sleep left out", drop("sleep/0/0"), ("evidence",), "number 0 is missing", SECOND),
    Forgery(
        "all of training left out", then(drop("wake/"), drop("sleep/")), ("evidence_source", "cost"),
        "episodes is 4", SECOND,
    ),
    Forgery(
        "an episode that nothing told what to do", drop("eval/000001"), ("evidence",), "no call eval/000001",
        SECOND,
    ),
    Forgery(
        "answers that say nothing", calls("eval/000000", reply=""), ("evidence",), "was answered", SECOND,
    ),
    Forgery(
        "a call of no episode", call("eval/000004/003", label="eval/000009/000"), ("evidence",),
        "no such episode", SECOND,
    ),
    Forgery(
        "a call of no phase", call("wake/", label="free/000000/000"), ("evidence",), "label is 'free",
        SECOND,
    ),
    Forgery(
        "a label that looks alike", call("wake/", label="w\u0430ke/000000/000"), ("evidence",), "label is",
        SECOND,
    ),
    Forgery(
        "an answer twice", play(lambda rows: rows.insert(1, rows[1])), ("evidence",), "a second answer",
        SECOND,
    ),
    Forgery("calls after the episodes", move("wake/", "end"), ("evidence",), "more than 5", SECOND),
    Forgery("a call with its price", call("wake/", dollars=0.0), ("evidence",), "no call", SECOND),
    # ---- what asked and what was asked ----
    Forgery(
        "another model", recipe(model="gpt-5"), ("evidence_source",), "the recipe's model is 'scripted'",
        SECOND,
    ),
    Forgery("another method", recipe(method="react"), ("evidence_source",), "the recipe's method", SECOND),
    Forgery("another temperature", recipe(temperature=0.0), ("evidence_source",), "temperature", SECOND),
    Forgery("more turns", recipe(turn_limit=400), ("evidence_source",), "turn_limit", SECOND),
    Forgery("a limit in another form", recipe(turn_limit=4.0), ("evidence_source",), "expected 4.0", SECOND),
    Forgery("a recipe of lists", recipe(model=["scripted"]), ("evidence",), "neither text nor", SECOND),
    Forgery(
        "the class with easier tasks", update(0, **{"class": "crafter"}), ("evidence",), "versions does not",
        SECOND,
    ),
    Forgery("another seed", update(0, seed=5), ("evidence_source",), "seed is", SECOND),
    Forgery("fewer episodes", update(0, episodes=1), ("evidence",), "episodes is 1, expected 5", SECOND),
    Forgery(
        "another library", play(lambda rows: rows[0]["versions"].update(minigrid="1; rm -r")), ("evidence",),
        "versions", SECOND,
    ),
    Forgery(
        "a prompt that is not what ran", prompts(system=NO_HASH), ("evidence_source",),
        f"open file {_PROMPT}", SECOND,
    ),
    Forgery(
        "a prompt that there is not", prompts(hint=NO_HASH), ("evidence_source",), "hint.md is None", SECOND,
    ),
    Forgery("other rules told", prompts(rules=NO_HASH), ("evidence",), "other rules than", SECOND),
    Forgery(
        "a method that is not what ran", open_files(**{_METHOD: NO_HASH}), ("same_recipe",), "open_files",
        EITHER,
    ),
    Forgery(
        "a prompt file that is not what ran", open_files(**{_PROMPT: NO_HASH}),
        ("evidence_source", "same_recipe"), f"open file {_PROMPT}", EITHER,
    ),
    Forgery(
        "methods that nobody names", both(without_open_files("agents/methods/")),
        ("source", "verification/source"), "open_files names none of agents/methods/*.py",
    ),
    Forgery(
        "an open file of another's folder", both(open_files(**{"agents/prompts/../core/loop.py": NO_HASH})),
        ("source", "verification/source"), "which no recipe may bring",
    ),
    Forgery(
        "an open file from elsewhere", both(open_files(**{"/tmp/agents/prompts/system.md": NO_HASH})),
        ("source", "verification/source"), "which no recipe may bring",
    ),
    # ---- memory ----
    Forgery(
        "evidence of another memory", update(0, checkpoint_sha256=NO_HASH), ("checkpoint",), "expected '000",
        SECOND,
    ),
    Forgery(
        "another memory in place", write(MEMORY, "{}\n"), ("checkpoint", "checkpoint_form"), "sha256 is",
        EITHER,
    ),
    Forgery(
        "the memory of another seed", memory(lambda content: content.update(seed=5)), ("checkpoint_form",),
        "is not what", SECOND,
    ),
    Forgery(
        "the memory of another method", memory(lambda content: content.update(method="opo")),
        ("checkpoint_form",), "is not what", SECOND,
    ),
    Forgery(
        "a memory with more", memory(lambda content: content.update(answers={})), ("checkpoint_form",),
        "nothing else", SECOND,
    ),
    Forgery(
        "the first run's play again", copy_play(f"*/{EVIDENCE}"), ("evidence_distinct",),
        "holds the same", SECOND,
    ),
    # ---- the checkout ----
    fixed("agents/benchmarks/base.py"),
    fixed("agents/llm/ledger.py"),
    fixed("agents/core/wake.py"),
    Forgery(
        "a stream that unpacks without bound", packed(bomb()), ("evidence",), "a line of more than", SECOND,
    ),
]  # fmt: skip
