"""The standing record of the llm track's cpu class made untrue in what is the track's own."""

import json
import lzma
from collections.abc import Callable
from typing import Any

from forgeries.table import EITHER, Forgery, bomb, fixed, packed
from harness.files import sha256_file
from harness.track import ROOT
from llm.completion import INTERRUPTION
from llm.puzzles import Puzzle, dataset_sha256, read_puzzles
from toy_track.forging import Forged, Row, Step, both, copy_play, play, then, update, write

ORIGINAL = "2026-11-30_01_hot-sampling"
SECOND = ("verification",)
EVIDENCE, CHECKPOINT = "evidence.jsonl.xz", "checkpoint.json"
Completion = dict[str, Any]


def completion(**changes: Any) -> Step:
    """Other fields in the third completion of the second puzzle."""
    return play(lambda rows: rows[2]["completions"][2].update(changes))


def puzzle(change: Callable[[list[Completion]], object]) -> Step:
    """Other completions of the second puzzle."""
    return play(lambda rows: change(rows[2]["completions"]))


def header(name: str, **changes: Any) -> Step:
    """Other settings in a field of the first line."""
    return play(lambda rows: rows[0][name].update(changes))


def mistakes(rows: list[Row]) -> list[tuple[Puzzle, Completion]]:
    """Every completion that does not repeat the reference solution, with its puzzle."""
    puzzles = read_puzzles(rows[0]["puzzles"])
    return [
        (puzzle, one)
        for puzzle, row in zip(puzzles, rows[1:], strict=True)
        for one in row["completions"]
        if one["text"] != f"<answer>{puzzle.solution}</answer>"
    ]


def solve_one(rows: list[Row]) -> None:
    """The solution in place of a completion that was none, with as many tokens as it takes."""
    known, wrong = mistakes(rows)[0]
    wrong |= {"text": f"<answer>{known.solution}</answer>", "tokens": len(known.solution) + 3}


def solve_in_first(f: Forged) -> None:
    """A solution put into the first run, whose second run stays as it is."""
    f.play(solve_one)


def solve_all(rows: list[Row]) -> None:
    """The solution in place of every completion, with the tokens that were counted before."""
    for known, wrong in mistakes(rows):
        wrong["text"] = f"<answer>{known.solution}</answer>"


def swap(rows: list[Row]) -> None:
    """Two puzzles in each other's place."""
    rows[10], rows[11] = rows[11], rows[10]


def index(change: Callable[[dict[str, Any]], object]) -> Step:
    """Another index of the checkpoint's files, which log and evidence name."""

    def forge(f: Forged) -> None:
        content = json.loads((f / CHECKPOINT).read_text())
        change(content["files"])
        f.save(json.dumps(content, separators=(",", ":"), sort_keys=True).encode() + b"\n")

    return forge


def starting_model(files: dict[str, str]) -> None:
    """The weights that training began with."""
    files["model.safetensors"] = sha256_file(ROOT / "llm/tiny/model.safetensors")


def data(name: str, digest: str) -> Step:
    """Both runs say that they read another file too."""
    return both(lambda f: f.manifest(data=f.read_manifest()["data"] | {name: digest}))


def count_more(rows: list[Row]) -> None:
    """A token more in a completion, as if one of them were not shown."""
    rows[2]["completions"][2]["tokens"] += 1


SAME_SEED: dict[str, Step] = {
    "a file more in the checkpoint": index(lambda files: files.update({"note": "0" * 64})),
    "a token more that is not shown": play(count_more),
}
CUT = {"finish": "length", "tokens": 96, "answer_tokens": 16, "interrupted": 0, "text": INTERRUPTION}
FORGERIES: list[Forgery] = [
    # ---- puzzles and completions ----
    Forgery("puzzle left out", play(lambda rows: rows.pop(5)), ("evidence",), "must be puzzle 4", SECOND),
    Forgery("puzzle repeated", play(lambda rows: rows.insert(5, rows[5])), ("evidence",), "puzzle 5", SECOND),
    Forgery("puzzles reordered", play(swap), ("evidence",), "must be puzzle 9", SECOND),
    Forgery("last puzzles missing", play(lambda rows: rows.pop()), ("evidence",), "999 of 1000", SECOND),
    Forgery("puzzle a fraction", update(5, puzzle=4.0), ("evidence",), "must be puzzle 4", SECOND),
    Forgery("fewer completions", puzzle(list.pop), ("evidence",), "no list of 8", SECOND),
    Forgery(
        "more completions", puzzle(lambda some: some.append(some[0])), ("evidence",), "no list of 8", SECOND,
    ),
    Forgery(
        "the best completion said to be all", update(2, completions={}), ("evidence",), "no list of", SECOND,
    ),
    Forgery(
        "a completion replaced by the solution", solve_in_first, ("second_seed",),
        "seed is 547237501, expected",
    ),
    Forgery(
        "completions replaced by solutions of other lengths", play(solve_all), ("evidence",),
        "tokens cannot be", SECOND,
    ),
    Forgery(
        "text longer than its tokens", completion(text="<answer>UUUUUUUUUUUU</answer>"), ("evidence",),
        "tokens cannot be", SECOND,
    ),
    Forgery(
        "words that the model does not know", completion(text="<answer>Ð</answer>"), ("evidence",),
        "which the model cannot write", SECOND,
    ),
    Forgery(
        "letters that look alike", completion(text="<answer>\u216c\u216c</answer>"), ("evidence",),
        "which the model cannot write", SECOND,
    ),
    Forgery(
        "tokens over the limit", completion(tokens=97), ("evidence",), "not a number from 1", SECOND,
    ),
    Forgery(
        "tokens past the interruption", completion(tokens=95), ("evidence",), "which comes before 80",
        SECOND,
    ),
    Forgery("no tokens", completion(tokens=0), ("evidence",), "tokens is not a number", SECOND),
    Forgery("negative tokens", completion(tokens=-7), ("evidence",), "tokens is not a number", SECOND),
    Forgery("tokens true", completion(tokens=True), ("evidence",), "tokens is not a number", SECOND),
    Forgery("text a list", completion(text=["<answer>U</answer>"]), ("evidence",), "is not text", SECOND),
    Forgery("a verdict of its own", completion(solved=True), ("evidence",), "must have text, tokens", SECOND),
    Forgery(
        "cut off where nothing cuts", completion(finish="length"), ("evidence",), "without having been",
        SECOND,
    ),
    Forgery("ended in another way", completion(finish="eos"), ("evidence",), "neither 'stop' nor", SECOND),
    Forgery("interrupted early", completion(**CUT | {"tokens": 50}), ("evidence",), "50 tokens, not", SECOND),
    Forgery(
        "answer too long", completion(**CUT | {"tokens": 97, "answer_tokens": 17}), ("evidence",),
        "tokens is no", SECOND,
    ),
    Forgery(
        "interruption left out", completion(**CUT | {"text": "<answer>U</answer>"}), ("evidence",),
        "the interruption is not where", SECOND,
    ),
    # ---- how they were asked for ----
    Forgery(
        "another temperature", header("sampling", temperature=0.1), ("evidence",), "sampling is not", SECOND,
    ),
    Forgery("another top-p", header("sampling", top_p=1.0), ("evidence",), "sampling is not", SECOND),
    Forgery(
        "another seed of the sampling", header("sampling", seed=1), ("evidence",), "sampling is not", SECOND,
    ),
    Forgery(
        "another limit of tokens", header("limits", max_tokens=960), ("evidence",), "limits is not", SECOND,
    ),
    Forgery(
        "puzzles to tune on", update(0, puzzles="tiny_valid"), ("evidence",), "puzzles_sha256 is not",
        SECOND,
    ),
    Forgery(
        "puzzles to tune on with their hash",
        update(0, puzzles="tiny_valid", puzzles_sha256=dataset_sha256("tiny_valid")), ("evidence",),
        "more than 512 puzzles", SECOND,
    ),
    Forgery(
        "puzzles to train on", update(0, puzzles="tiny_train"), ("evidence",), "puzzles is neither", SECOND,
    ),
    Forgery("other puzzles", update(0, puzzles_sha256="0" * 64), ("evidence",), "puzzles_sha256", SECOND),
    Forgery("the other class", update(0, **{"class": "8xH100"}), ("evidence",), "puzzles is neither", SECOND),
    Forgery(
        "a hint in the prompt", update(0, prompt="Push boxes left. {question}"), ("evidence",), "'Push'",
        SECOND,
    ),
    Forgery(
        "a prompt that the recipe has not", update(0, prompt="{question} Think."), ("evidence_source",),
        "the recipe's prompt is '{question}'", SECOND,
    ),
    Forgery("header with more", update(0, model="gpt-5"), ("evidence",), "holds more than", SECOND),
    # ---- whose completions they are ----
    Forgery(
        "evidence of another checkpoint", update(0, checkpoint_sha256="0" * 64), ("checkpoint",),
        "expected '000", SECOND,
    ),
    Forgery(
        "another checkpoint in place", write(CHECKPOINT, '{"files":{}}\n'),
        ("checkpoint", "checkpoint_form"), "sha256 is", EITHER,
    ),
    Forgery(
        "the first run's completions again", copy_play(f"*/{EVIDENCE}"), ("evidence_distinct",),
        f"holds the same as {EVIDENCE}", SECOND,
    ),
    Forgery(
        "a checkpoint that is none", then(lambda f: f.save(b"weights\n")), ("checkpoint_form",),
        "checkpoint.json", SECOND,
    ),
    Forgery(
        "a checkpoint without weights", index(lambda files: files.pop("model.safetensors")),
        ("checkpoint_form",), "names no weights", SECOND,
    ),
    Forgery(
        "a checkpoint elsewhere", index(lambda files: files.update({"../model.safetensors": "0" * 64})),
        ("checkpoint_form",), "files.../model.safetensors", SECOND,
    ),
    Forgery(
        "the starting model as the checkpoint", index(starting_model), ("checkpoint_form",),
        "training began with", SECOND,
    ),
    # ---- what training read ----
    Forgery(
        "trained on the held-out puzzles", data("tiny_eval", dataset_sha256("tiny_eval")),
        ("data", "verification/data"), "names 'tiny_eval'",
    ),
    Forgery(
        "held-out puzzles among those to train on", data("tiny_train", "0" * 64),
        ("data", "verification/data"), "tiny_train is '000",
    ),
    fixed("llm/tiny/model.safetensors"),
    fixed("llm/datasets/datasets.sha256"),
    fixed("llm/answers.py"),
    # ---- the packed file ----
    Forgery(
        "a stream that unpacks without bound", packed(bomb()), ("evidence",), "a line of more than", SECOND,
    ),
    Forgery(
        "two streams", lambda f: f.write_evidence(2 * (f / EVIDENCE).read_bytes()), ("evidence",),
        "follows its end", SECOND,
    ),
    Forgery(
        "a stream cut short", lambda f: f.write_evidence((f / EVIDENCE).read_bytes()[:-5]), ("evidence",),
        "not one whole xz stream", SECOND,
    ),
    Forgery("no stream", packed(b"{}\n"), ("evidence",), "not one whole xz stream", SECOND),
    Forgery("a line that is not whole", packed(lzma.compress(b"{}")), ("evidence",), "cut short", SECOND),
    Forgery("NaN in a line", packed(lzma.compress(b'{"puzzle":NaN}\n')), ("evidence",), "NaN is not", SECOND),
    Forgery(
        "a key twice", packed(lzma.compress(b'{"class":"cpu","class":"cpu"}\n')), ("evidence",),
        "repeated key", SECOND,
    ),
]  # fmt: skip
