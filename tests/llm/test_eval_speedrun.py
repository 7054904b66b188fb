"""An evaluation goes on where it stopped, to the same evidence, and draws from no other weights."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase, Qwen3ForCausalLM

from harness.errors import Problem
from harness.files import canonical_json, sha256_bytes
from harness.log import read_log
from harness.manifest import read_manifest
from harness.track import ROOT
from llm.checkpoint import index_files
from llm.completion import INTERRUPTION, completion_seed
from llm.engines.local import LocalEngine
from llm.eval_speedrun import PARTIAL, Job, Partial, draw_rows, main
from llm.evidence import completion_fault, read_evidence
from llm.puzzles import read_puzzles
from llm.track import TASKS, evidence_header, read_outcomes, score_outcomes

CPU = TASKS["cpu"]
HEADER = evidence_header("cpu", CPU.valid, checkpoint_sha256="0" * 64, prompt="{question}")
ROWS = [{"puzzle": index, "completions": [{"text": "é\n", "tokens": 3}] * 8} for index in (4, 0, 2)]

Evaluate = Callable[..., str]


@pytest.fixture
def run(smoke_run: tuple[Path, str], tmp_path: Path) -> Path:
    """A copy of an evaluated run."""
    return Path(shutil.copytree(smoke_run[0], tmp_path / "run"))


@pytest.fixture
def evaluate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Evaluate:
    """`python -m llm.eval_speedrun --eval-checkpoint ...` in this process: what it printed."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: object) -> str:
        monkeypatch.setattr("sys.argv", ["eval_speedrun", "--eval-checkpoint", *map(str, arguments)])
        main()
        return capsys.readouterr().out

    return command


# ---- what an interrupted evaluation leaves ------------------------------------------------------------


def test_what_was_drawn_is_kept(tmp_path: Path) -> None:
    path = tmp_path / PARTIAL
    first = Partial(path, HEADER)
    assert first.rows == {}
    first.add(ROWS[:2])
    first.add(ROWS[2:])
    assert Partial(path, HEADER).rows == first.rows == {row["puzzle"]: row for row in ROWS}


@given(kept=st.integers(0, 3), cut=st.integers(0, 10**6))
def test_a_line_that_a_crash_cut_short_is_drawn_again(
    tmp_path_factory: pytest.TempPathFactory, kept: int, cut: int
) -> None:
    path = tmp_path_factory.mktemp("partial") / PARTIAL
    lines = [canonical_json(value).encode() for value in (HEADER, *ROWS)]
    torn = lines[kept + 1][: cut % len(lines[kept + 1])] if kept < 3 else b""
    path.write_bytes(b"".join(line + b"\n" for line in lines[: kept + 1]) + torn)
    again = Partial(path, HEADER)
    assert list(again.rows.values()) == ROWS[:kept]
    again.add(ROWS[kept:])
    assert list(Partial(path, HEADER).rows.values()) == ROWS


@pytest.mark.parametrize(
    "changes",
    [
        {"run_id": "1" * 32},
        {"checkpoint_sha256": "1" * 64},
        {"prompt": "{question} Think."},
        {"puzzles": CPU.eval},
        {"sampling": {**HEADER["sampling"], "seed": 1}},
    ],
)
def test_what_another_checkpoint_or_prompt_drew_is_not_used(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / PARTIAL
    Partial(path, HEADER).add(ROWS)
    other = Partial(path, {**HEADER, **changes})
    assert other.rows == {}
    other.add(ROWS[:1])
    assert Partial(path, {**HEADER, **changes}).rows == {4: ROWS[0]}
    assert Partial(path, HEADER).rows == {}


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"puzzle":"first"}', b'{"completions":[]}', b"\xff\xfe", b""]
)
def test_a_damaged_file_is_a_problem_that_says_what_to_do(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / PARTIAL
    Partial(path, HEADER).add(ROWS[:1])
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(Problem, match=f"{PARTIAL}: is damaged.*delete it"):
        Partial(path, HEADER)


def about(header: dict[str, Any], run: Path) -> dict[str, Any]:
    """The first line of what an evaluation of this run keeps."""
    return {**header, "run_id": read_manifest(run / "manifest.json").run_id}


def test_an_interrupted_evaluation_ends_with_the_same_evidence(run: Path, evaluate: Evaluate) -> None:
    """All but 20 puzzles are drawn and a line is cut short: the command draws the rest."""
    evidence = run / "evidence.jsonl.xz"
    whole = evidence.read_bytes()
    header, *rows = [value for _, value in read_evidence(evidence)]
    kept = [row for row in rows if not 100 <= row["puzzle"] < 120]
    lines = [canonical_json(value) + "\n" for value in (about(header, run), *kept)]
    (run / PARTIAL).write_text("".join(lines) + canonical_json(rows[100])[:300])
    evidence.unlink()
    output = evaluate(run / "checkpoint")
    assert f"{len(kept)} puzzles are drawn already" in output and "pass@1" in output
    assert evidence.read_bytes() == whole
    assert not (run / PARTIAL).exists()
    assert read_log(run / "log.jsonl").status == "complete"


# ---- what is evaluated --------------------------------------------------------------------------------


def test_a_checkpoint_that_was_changed_is_not_evaluated(run: Path, evaluate: Evaluate) -> None:
    before = (run / "evidence.jsonl.xz").read_bytes()
    weights = run / "checkpoint" / "model.safetensors"
    weights.write_bytes(weights.read_bytes() + b"\0")
    with pytest.raises(Problem, match=r"model\.safetensors: is not the file that training saved"):
        evaluate(run)
    assert (run / "evidence.jsonl.xz").read_bytes() == before
    assert read_log(run / "log.jsonl").status == "complete"


def test_an_index_that_was_changed_with_the_weights_is_not_evaluated(run: Path, evaluate: Evaluate) -> None:
    config = run / "checkpoint" / "config.json"
    config.write_text(config.read_text() + "\n")
    (run / "checkpoint.json").write_text(canonical_json({"files": index_files(run / "checkpoint")}) + "\n")
    with pytest.raises(Problem, match=r"checkpoint\.json: is not the checkpoint that the log names"):
        evaluate(run)


def test_rows_are_of_the_seeds_and_limits_of_the_task(
    small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase, one_thread: None
) -> None:
    """Rows do not depend on which puzzles are drawn together, and evidence admits them."""
    engine, job = LocalEngine(small_model, 1), Job(CPU, ROOT, "{question}", HEADER)
    puzzles = read_puzzles(CPU.valid)[5:8]
    rows = draw_rows(engine, tokenizer, job, puzzles)
    assert [row["puzzle"] for row in rows] == [5, 6, 7]
    assert draw_rows(engine, tokenizer, job, puzzles[1:2]) == rows[1:2]
    assert all(len(row["completions"]) == 8 for row in rows)
    assert not any(completion_fault(one, CPU.limits) for row in rows for one in row["completions"])
    sentence = tokenizer.encode(INTERRUPTION, add_special_tokens=False)
    thinking = CPU.limits.max_tokens - CPU.limits.answer_tokens - len(sentence)
    prompt = tokenizer.encode(puzzles[0].board + "\n", add_special_tokens=False)
    seed = completion_seed(12345, 5, 3)
    (thought,) = engine.generate([prompt], [seed], [thinking], CPU.sampling)
    text = tokenizer.decode(thought.tokens, skip_special_tokens=True)
    assert rows[0]["completions"][3]["text"].startswith(text)


def test_the_baseline_is_the_untrained_model_under_the_same_protocol(
    evaluate: Evaluate, tmp_path: Path
) -> None:
    """All but four puzzles are drawn already, by someone who knows every solution."""
    folder = tmp_path / "outputs/llm_cpu_base"
    folder.mkdir(parents=True)
    index = canonical_json({"files": index_files(ROOT / "llm/tiny")}) + "\n"
    prompt = "{question}\n"
    header = evidence_header("cpu", CPU.valid, checkpoint_sha256=sha256_bytes(index.encode()), prompt=prompt)
    puzzles = read_puzzles(CPU.valid)
    rows = [
        {
            "puzzle": puzzle.index,
            "completions": [{"text": f"<answer>{puzzle.solution}</answer>", "tokens": 9, "finish": "stop"}]
            * 8,
        }
        for puzzle in puzzles[4:]
    ]
    (folder / PARTIAL).write_text(
        "".join(canonical_json(value) + "\n" for value in ({**header, "run_id": "base"}, *rows))
    )
    output = evaluate("base", "--class", "cpu", "--prompt", prompt, "--valid")
    assert (folder / "checkpoint.json").read_text() == index
    outcomes = read_outcomes(folder / "evidence.jsonl.xz")
    score = score_outcomes(outcomes)
    assert outcomes.header == header and score.outcomes[4:] == (1.0,) * (len(puzzles) - 4)
    assert f"pass@1 {score.value:.4f}" in output and str(Path("outputs/llm_cpu_base")) in output
    assert not (folder / PARTIAL).exists()
    assert json.loads(index)["files"].keys() >= {"model.safetensors", "tokenizer.json"}


def test_a_prompt_about_the_task_and_a_model_that_is_not_here_are_problems(
    evaluate: Evaluate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Problem, match="Sokoban"):
        evaluate("base", "--class", "cpu", "--prompt", "Sokoban: {question}")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(Problem, match="hf download"):
        evaluate("base", "--class", "8xH100")
    with pytest.raises(Problem, match="nowhere"):
        evaluate("nowhere")


def test_help_and_wrong_usage_exit(evaluate: Evaluate, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, status in (
        (["base", "--help"], 0),
        (["base", "--nonsense"], 2),
        (["base", "--class", "x"], 2),
    ):
        with pytest.raises(SystemExit) as caught:
            evaluate(*arguments)
        assert caught.value.code == status
    output = capsys.readouterr().out
    assert "--eval-checkpoint" in output and "'base', the untrained model" in " ".join(output.split())


def test_a_run_is_named_as_on_the_other_tracks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["eval_speedrun", "nowhere"])
    with pytest.raises(Problem, match="nowhere: is not a run folder"):
        main()
