"""The score of evidence with known outcomes, and every way of forging it."""

import copy
import lzma
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap as scipy_bootstrap

import llm.puzzles
import llm.track
from harness.errors import Problem
from harness.files import sha256_file
from harness.intervals import wilson
from harness.track import ROOT, fixed_file_hashes
from llm.answers import CUT_OFF, NO_BLOCK, REASONS, SOLVED, STRAY, UNSOLVED
from llm.completion import INTERRUPTION
from llm.evidence import write_evidence
from llm.puzzles import Puzzle, dataset_sha256, read_puzzles
from llm.track import TASKS, TRACK, Outcomes, evidence_header, read_outcomes, score, score_outcomes

CPU = TASKS["cpu"]
LIMITS = CPU.limits
HEADER = evidence_header("cpu", CPU.eval, checkpoint_sha256="0" * 64, prompt="{question}")
F1 = [8] * 12 + [7, 7, 6, 6, 4, 3, 1, 0]  # successes of 20 puzzles, with right values worked out elsewhere

Row = dict[str, Any]


def right(puzzle: Puzzle) -> Row:
    text = f"<answer>{puzzle.solution}</answer>"
    return {"text": text, "tokens": len(puzzle.solution) + 3, "finish": "stop"}


def interrupted(puzzle: Puzzle, *, finish: str = "stop", answer: int = 9) -> Row:
    return {
        "text": f"Let me see{INTERRUPTION}<answer>{puzzle.solution}</answer>",
        "tokens": LIMITS.max_tokens - LIMITS.answer_tokens + answer,
        "finish": finish,
        "interrupted": len("Let me see"),
        "answer_tokens": answer,
    }


def failures(puzzle: Puzzle) -> list[tuple[Row, str]]:
    """Completions that fail, each in its own way."""
    return [
        ({"text": "", "tokens": 1, "finish": "stop"}, NO_BLOCK),
        ({"text": f"<answer>{puzzle.solution[:-1]}", "tokens": 9, "finish": "stop"}, NO_BLOCK),
        ({"text": f"<answer>{puzzle.solution.lower()}</answer>", "tokens": 9, "finish": "stop"}, STRAY),
        ({"text": "<answer>" + "UD" * 20 + "</answer>", "tokens": 43, "finish": "stop"}, UNSOLVED),
        (interrupted(puzzle, finish="length", answer=LIMITS.answer_tokens), CUT_OFF),
    ]


def row(puzzle: Puzzle, successes: int) -> Row:
    """One puzzle's line: so many of its eight completions solve, at places that depend on the puzzle."""
    good = [interrupted(puzzle), *[right(puzzle)] * 7][:successes]
    bad = [completion for completion, _ in failures(puzzle) * 2][: 8 - successes]
    completions = [dict(completion) for completion in good + bad]
    random.Random(puzzle.index).shuffle(completions)
    return {"puzzle": puzzle.index, "completions": completions}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evidence") / "evidence.jsonl.xz"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> list[Puzzle]:
    """Only the first 20 puzzles of the held-out set."""
    puzzles = read_puzzles(CPU.eval)[:20]
    monkeypatch.setattr(llm.track, "read_puzzles", lambda name: puzzles)
    return puzzles


# ---- right values -------------------------------------------------------------------------------------


def test_twenty_puzzles_have_the_interval_that_was_worked_out_for_them(
    path: Path, small: list[Puzzle]
) -> None:
    write_evidence(path, HEADER, map(row, small, F1))
    result = score(path)
    assert (result.value, result.count, result.unit) == (0.8125, 20, "puzzles")
    assert result.outcomes == tuple(successes / 8 for successes in F1)
    assert (result.low, result.high) == (0.66875, 0.93125)
    assert (result.successes, result.hardware_class) == (None, "cpu")


def test_a_whole_set_has_the_interval_of_scipy(path: Path) -> None:
    puzzles = read_puzzles(CPU.eval)
    successes = np.random.default_rng(5).binomial(8, np.random.default_rng(6).beta(4, 1, len(puzzles)))
    write_evidence(path, HEADER, (row(puzzle, int(n)) for puzzle, n in zip(puzzles, successes, strict=True)))
    result = score(path)
    assert result.outcomes == tuple(successes / 8)
    assert result.value == pytest.approx(successes.sum() / 8 / len(puzzles), abs=1e-12)
    elsewhere = scipy_bootstrap(
        (successes / 8,), np.mean, method="percentile", rng=np.random.default_rng(7), n_resamples=9999
    ).confidence_interval
    noise = 0.05 * (result.high - result.low)  # of a 2.5% quantile of 10,000 resamples
    assert result.low == pytest.approx(elsewhere.low, abs=noise)
    assert result.high == pytest.approx(elsewhere.high, abs=noise)


@pytest.mark.parametrize("successes", [0, 8])
def test_all_right_or_all_wrong_still_has_an_interval(path: Path, successes: int) -> None:
    puzzles = read_puzzles(CPU.eval)
    write_evidence(path, HEADER, (row(puzzle, successes) for puzzle in puzzles))
    result = score(path)
    assert (result.low, result.high) == wilson(successes / 8 * len(puzzles), len(puzzles))


def test_every_completion_has_its_verdict(path: Path, small: list[Puzzle]) -> None:
    rows, wanted = [], []
    for puzzle in small:
        mixed = [
            *failures(puzzle),
            (right(puzzle), SOLVED),
            (interrupted(puzzle), SOLVED),
            (right(puzzle), SOLVED),
        ]
        rows.append({"puzzle": puzzle.index, "completions": [completion for completion, _ in mixed]})
        wanted.append([reason for _, reason in mixed])
    write_evidence(path, HEADER, rows)
    outcomes = read_outcomes(path)
    assert outcomes.header == HEADER and outcomes.puzzles == small
    assert [[verdict.reason for verdict, _ in each] for each in outcomes.completions] == wanted
    assert [[completion for _, completion in each] for each in outcomes.completions] == [
        each["completions"] for each in rows
    ]
    assert score_outcomes(outcomes).value == 3 / 8


def test_evidence_of_the_large_class(path: Path) -> None:
    task = TASKS["8xH100"]
    prompt = "{question}\n\nThink first."
    header = evidence_header("8xH100", task.eval, checkpoint_sha256="ab" * 32, prompt=prompt)
    assert header["limits"] == {"max_tokens": 12288, "answer_tokens": 512}
    assert header["sampling"] == {"temperature": 0.8, "top_p": 0.95, "seed": 12345}
    completion = {"tokens": 5000, "finish": "stop"}
    write_evidence(
        path,
        header,
        (
            {"puzzle": puzzle.index, "completions": [completion | {"text": right(puzzle)["text"]}] * 8}
            for puzzle in read_puzzles(task.eval)
        ),
    )
    result = score(path)
    assert (result.value, result.hardware_class) == (1, "8xH100")


def test_puzzles_to_tune_on_are_read_but_do_not_score(path: Path) -> None:
    header = evidence_header("cpu", CPU.valid, checkpoint_sha256="0" * 64, prompt="{question}")
    write_evidence(path, header, (row(puzzle, 6) for puzzle in read_puzzles(CPU.valid)))
    assert score_outcomes(read_outcomes(path)).value == 0.75
    with pytest.raises(Problem, match=f"on {CPU.valid!r}, not on {CPU.eval!r}") as caught:
        score(path)
    assert (caught.value.file, caught.value.line) == (str(path), 1)


# ---- forgeries ----------------------------------------------------------------------------------------


def head(key: str, value: Any) -> Callable[[list[Row]], object]:
    return lambda lines: lines[0].update({key: value})


def nested(key: str, inner: str, value: Any) -> Callable[[list[Row]], object]:
    return lambda lines: lines[0][key].update({inner: value})


def line(number: int, key: str, value: Any) -> Callable[[list[Row]], object]:
    return lambda lines: lines[number - 1].update({key: value})


def completion(number: int, index: int, **changes: Any) -> Callable[[list[Row]], object]:
    return lambda lines: lines[number - 1]["completions"][index].update(changes)


@pytest.mark.parametrize(
    ("forge", "number", "reason"),
    [
        # the header
        (lambda lines: lines.clear(), 1, "does not name its class"),
        (lambda lines: lines.pop(0), 1, "does not name its class"),
        (lambda lines: lines[0].pop("puzzles"), 1, "does not name its puzzles"),
        (lambda lines: lines[0].pop("sampling"), 1, "sampling is not"),
        (head("class", "gpu"), 1, "class is none of 8xH100, cpu"),
        (head("class", ["cpu"]), 1, "does not name its class"),
        (head("class", "8xH100"), 1, "puzzles is neither sokoban_eval nor sokoban_valid"),
        (head("puzzles", "tiny_train"), 1, "puzzles is neither tiny_eval nor tiny_valid"),
        (head("puzzles", "../tiny_eval"), 1, "puzzles is neither tiny_eval nor tiny_valid"),
        (head("puzzles_sha256", "0" * 64), 1, "puzzles_sha256 is not"),
        (head("checkpoint_sha256", "0" * 63), 1, "checkpoint_sha256 is not a SHA-256"),
        (head("checkpoint_sha256", "A" * 64), 1, "checkpoint_sha256 is not a SHA-256"),
        (head("checkpoint_sha256", None), 1, "does not name its checkpoint_sha256"),
        (head("prompt", "Never push two boxes at once. {question}"), 1, "the prompt holds the word 'push'"),
        (head("prompt", "{question} <answer>RRU</answer>"), 1, "the prompt holds a character outside"),
        (head("prompt", "solve it"), 1, "exactly once"),
        (head("prompt", None), 1, "does not name its prompt"),
        (nested("sampling", "temperature", 0.1), 1, "sampling is not"),
        (nested("sampling", "temperature", "0.8"), 1, "sampling is not"),
        (nested("sampling", "top_p", 1.0), 1, "sampling is not"),
        (nested("sampling", "top_p", True), 1, "sampling is not"),
        (nested("sampling", "top_k", 1), 1, "sampling is not"),
        (nested("sampling", "seed", 12346), 1, "sampling is not"),
        (nested("sampling", "seed", 12345.0), 1, "sampling is not"),
        (nested("limits", "max_tokens", LIMITS.max_tokens + 1), 1, "limits is not"),
        (nested("limits", "answer_tokens", LIMITS.max_tokens), 1, "limits is not"),
        (head("limits", [LIMITS.max_tokens, LIMITS.answer_tokens]), 1, "limits is not"),
        (head("score", 1), 1, "holds more than"),
        # rows
        (lambda lines: lines.pop(5), 6, "must be puzzle 4 "),
        (lambda lines: lines.insert(5, lines[5]), 7, "must be puzzle 5 "),
        (lambda lines: lines.__setitem__(slice(5, 7), lines[6:4:-1]), 6, "must be puzzle 4 "),
        (lambda lines: lines.pop(), None, "19 of 20 puzzles"),
        (lambda lines: lines.__delitem__(slice(1, None)), None, "0 of 20 puzzles"),
        (lambda lines: lines.append({"puzzle": 20, "completions": []}), 22, "more than 20 puzzles"),
        (line(2, "puzzle", False), 2, "must be puzzle 0 "),
        (line(2, "puzzle", 0.0), 2, "must be puzzle 0 "),
        (line(2, "puzzle", "0"), 2, "must be puzzle 0 "),
        (line(2, "board", "+"), 2, "must be puzzle 0 "),
        (lambda lines: lines[1].pop("puzzle"), 2, "must be puzzle 0 "),
        (lambda lines: lines[1].pop("completions"), 2, "must be puzzle 0 "),
        (line(3, "completions", None), 3, "puzzle 1 has no list of 8 completions"),
        (line(3, "completions", {str(index): "" for index in range(8)}), 3, "no list of 8 completions"),
        (lambda lines: lines[2]["completions"].pop(), 3, "no list of 8 completions"),
        (lambda lines: lines[2]["completions"].append(lines[2]["completions"][0]), 3, "no list of 8"),
        # completions
        (line(3, "completions", [None] * 8), 3, "puzzle 1, completion 0: it is not an object"),
        (completion(9, 7, text=None), 9, "puzzle 7, completion 7: text is not text"),
        (completion(9, 7, tokens=10**6), 9, "puzzle 7, completion 7: tokens is not a number"),
        (completion(9, 7, tokens=LIMITS.max_tokens + 1), 9, "completion 7: tokens is not a number"),
        (completion(9, 7, finish="interrupted"), 9, "puzzle 7, completion 7: finish is neither"),
        (completion(9, 7, solved=True), 9, "puzzle 7, completion 7: it must have"),
        (completion(9, 7, interrupted=0), 9, "puzzle 7, completion 7: it must have"),
        (completion(9, 7, interrupted=0, answer_tokens=1), 9, "completion 7: .* tokens, not the"),
        (
            completion(
                9, 7, interrupted=0, answer_tokens=1, tokens=LIMITS.max_tokens - LIMITS.answer_tokens + 1
            ),
            9,
            "puzzle 7, completion 7: the interruption is not where",
        ),
    ],
)
def test_forged_evidence_is_named_by_line(
    path: Path, small: list[Puzzle], forge: Callable[[list[Row]], object], number: int | None, reason: str
) -> None:
    lines = [
        copy.deepcopy(HEADER),
        *({"puzzle": puzzle.index, "completions": [right(puzzle) for _ in range(8)]} for puzzle in small),
    ]
    forge(lines)
    if lines:
        write_evidence(path, lines[0], lines[1:])
    else:
        path.write_bytes(lzma.compress(b""))
    with pytest.raises(Problem, match=reason) as caught:
        score(path)
    assert (caught.value.file, caught.value.line) == (str(path), number)


def test_an_edited_answer_is_worth_what_it_plays(path: Path, small: list[Puzzle]) -> None:
    rows = [row(puzzle, successes) for puzzle, successes in zip(small, F1, strict=True)]
    rows[0]["completions"][:] = [right(small[0])] * 8
    rows[0]["completions"][3] = {
        "text": "<answer>UUUU</answer> solved: true",
        "tokens": 20,
        "finish": "stop",
    }
    write_evidence(path, HEADER, rows)
    assert score(path).outcomes == (7 / 8, *(successes / 8 for successes in F1[1:]))


def test_the_answers_of_one_puzzle_are_not_those_of_another(path: Path) -> None:
    puzzles = read_puzzles(CPU.eval)
    shifted = [*puzzles[1:], puzzles[0]]
    rows = [
        {"puzzle": puzzle.index, "completions": [right(other)] * 8}
        for puzzle, other in zip(puzzles, shifted, strict=True)
    ]
    write_evidence(path, HEADER, rows)
    assert score(path).value < 0.1


def test_a_changed_eval_row_is_refused_and_named(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    puzzles = read_puzzles(CPU.eval)
    write_evidence(path, HEADER, (row(puzzle, 8) for puzzle in puzzles))
    for file in llm.puzzles.DATASETS.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    changed = tmp_path / f"{CPU.eval}.jsonl"
    changed.write_text(changed.read_text().replace("-", "+", 1))
    monkeypatch.setattr(llm.puzzles, "DATASETS", tmp_path)
    with pytest.raises(Problem, match="not the pinned") as caught:
        score(path)
    assert caught.value.file == str(changed)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[: len(data) // 2], "cut short"),
        (lambda data: data + b"\0", "something follows its end"),
        (lambda data: lzma.compress(lzma.decompress(data)[:-1]), "the last line is cut short"),
        (
            lambda data: lzma.compress(
                lzma.decompress(data).replace(b'"puzzle":0}', b'"puzzle":0,"puzzle":0}')
            ),
            "repeated key",
        ),
        (
            lambda data: lzma.compress(lzma.decompress(data).replace(b"Let me see", b"Let me \xff")),
            "not UTF-8",
        ),
    ],
)
def test_a_damaged_file_is_named(
    path: Path, small: list[Puzzle], damage: Callable[[bytes], bytes], reason: str
) -> None:
    write_evidence(path, HEADER, map(row, small, F1))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(Problem, match=reason) as caught:
        score(path)
    assert caught.value.file == str(path) and caught.value.line is not None


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-1, 300),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
        st.sampled_from(["stop", "length", "cpu", INTERRUPTION, "{question}", 10**30]),
    ),
    lambda inner: (
        st.lists(inner, max_size=9) | st.dictionaries(st.sampled_from(["text", "tokens", "a"]), inner)
    ),
    max_leaves=5,
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value, as a container and a key."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(inside):
        yield value, key
        yield from places(inner)


@given(st.data())
def test_whatever_is_changed_evidence_scores_or_is_a_problem(path: Path, data: st.DataObject) -> None:
    few = read_puzzles(CPU.eval)[:3]
    lines = [copy.deepcopy(HEADER), *(row(puzzle, 5) for puzzle in few)]
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(list(places(lines))))
        if data.draw(st.booleans()):
            container[key] = data.draw(JSON)
        else:
            del container[key]
        lines = [each if isinstance(each, dict) else {"lost": True} for each in lines]
        lines = lines or [{}]
    write_evidence(path, lines[0], lines[1:])
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(llm.track, "read_puzzles", lambda name: few)
            outcomes = read_outcomes(path)
    except Problem as problem:
        assert problem.file == str(path)
    else:
        assert isinstance(outcomes, Outcomes)
        assert all(verdict.reason in REASONS for each in outcomes.completions for verdict, _ in each)
        assert 0 <= score_outcomes(outcomes).value <= 1


# ---- the track ----------------------------------------------------------------------------------------


def test_scoring_is_fast(path: Path) -> None:
    write_evidence(path, HEADER, (row(puzzle, 6) for puzzle in read_puzzles(CPU.eval)))
    start = time.process_time()
    score(path)
    assert time.process_time() - start < 2


def test_scoring_needs_no_library_of_models() -> None:
    names = "'torch', 'transformers', 'tokenizers', 'datasets'"
    code = f"import sys, llm.track; assert not [name for name in ({names}) if name in sys.modules]"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_tasks_are_those_of_the_classes() -> None:
    assert [hardware.name for hardware in TRACK.classes] == list(TASKS) == ["8xH100", "cpu"]
    for name, task in TASKS.items():
        assert task.hardware_class == name and task.completions == 8
        assert task.sampling == (0.8, 0.95) and task.seed == 12345
        assert len({task.train, task.valid, task.eval}) == 3
    assert TRACK.target == 0.8


def test_training_reads_pinned_data_and_never_what_is_held_out() -> None:
    data = TRACK.data_files()
    for task in TASKS.values():
        assert data[task.train] == dataset_sha256(task.train)
        assert task.valid not in data and task.eval not in data


def test_reward_evaluation_and_rules_are_fixed_and_the_recipe_is_not() -> None:
    fixed = fixed_file_hashes(TRACK)
    for name in ("answers", "prompt", "completion", "evidence", "puzzles", "track", "eval_speedrun"):
        assert fixed[f"llm/{name}.py"] == sha256_file(ROOT / f"llm/{name}.py")
    assert {"sokoban/reference.py", "llm/datasets/datasets.sha256", "llm/engines/local.py"} < fixed.keys()
    assert "llm/speedrun.py" not in fixed


def test_ready_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm.track, "find_spec", lambda name: None if name in ("vllm", "torch") else object())
    for gpus, missing in (((), ["torch"]), (("NVIDIA H100 80GB HBM3",), ["torch", "vllm"])):
        monkeypatch.setattr(llm.track, "inspect", lambda gpus=gpus: SimpleNamespace(gpus=gpus))
        assert TRACK.ready() == [f"the {name} library" for name in missing]


def test_the_set_piece_takes_time_and_leaves_the_threads_as_they_were() -> None:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert 0.01 < TRACK.calibrate() < 600
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(threads)
