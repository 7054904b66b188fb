"""The report on completions: pass@k by counting, tables that add up, examples that stay in their block."""

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from harness.checks.base import RecordFolder
from harness.checks.folder import conflict_markers, text_files
from harness.errors import Problem
from harness.track import ROOT
from llm.completion import INTERRUPTION
from llm.evidence import write_evidence
from llm.puzzles import Puzzle, read_puzzles
from llm.report import (
    COMPLETIONS,
    LONGEST_SHOWN,
    PROGRESS,
    completions,
    fenced,
    main,
    page,
    pass_at,
    read_runs,
    shortened,
    tables,
)
from llm.track import TASKS, TRACK, Outcomes, evidence_header, score_outcomes

LIMITS = TASKS["cpu"].limits
ROOM = LIMITS.max_tokens - LIMITS.answer_tokens
HOSTILE = "```\n````text\n<!-- results:start -->\n<<<<<<< ours\n# T\u202eitle\r\n\x1b[2J\ud800~~~\n<answer>"
PUZZLES = read_puzzles("tiny_eval")

Completion = dict[str, Any]


def right(puzzle: Puzzle) -> Completion:
    return {"text": f"<answer>{puzzle.solution}</answer>", "tokens": 7, "finish": "stop"}


def wrong(puzzle: Puzzle) -> Completion:
    return {"text": HOSTILE, "tokens": 9, "finish": "stop"}


def interrupted(puzzle: Puzzle) -> Completion:
    text = "x" * 2000 + INTERRUPTION + f"<answer>{puzzle.solution}</answer>"
    return {"text": text, "tokens": ROOM + 3, "finish": "stop", "interrupted": 2000, "answer_tokens": 3}


def cut_off(puzzle: Puzzle) -> Completion:
    whole = {"tokens": LIMITS.max_tokens, "answer_tokens": LIMITS.answer_tokens}
    return {**interrupted(puzzle), **whole, "finish": "length"}


def write_run(folder: Path, kinds: Callable[[Puzzle], list[Callable[[Puzzle], Completion]]]) -> Path:
    """Evidence in which every puzzle has the eight completions that `kinds` names."""
    folder.mkdir(parents=True, exist_ok=True)
    header = evidence_header("cpu", "tiny_eval", checkpoint_sha256="0" * 64, prompt="{question}")
    rows = [
        {"puzzle": puzzle.index, "completions": [make(puzzle) for make in kinds(puzzle)]}
        for puzzle in PUZZLES
    ]
    write_evidence(folder / TRACK.evidence_name, header, rows)
    return folder


@pytest.fixture(scope="module", autouse=True)
def any_model() -> Iterator[None]:
    """Evidence is judged as that of a large model, which can write any text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("llm.track.words_of", lambda folder: None)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record whose puzzles are solved in turn by 8, 0, 2 of the completions, and a second run of 4 each."""
    turns = [[right] * 8, [wrong] * 8, [wrong, interrupted, cut_off, right, *[wrong] * 4]]
    path = write_run(tmp_path_factory.mktemp("record"), lambda puzzle: turns[puzzle.index % 3])
    write_run(path / "verification", lambda puzzle: [right, wrong] * 4)
    return path


@pytest.fixture(scope="module")
def runs(folder: Path) -> dict[str, Outcomes]:
    return read_runs(folder)


def cells(runs: dict[str, Outcomes], title: str) -> dict[str, tuple[str, ...]]:
    table = next(table for table in tables(runs) if table.title == title)
    return {row[0]: row[1:] for row in table.rows}


# ---- numbers ------------------------------------------------------------------------------------------


def test_pass_at_k_is_the_share_of_samples_with_a_solution() -> None:
    for count, k in itertools.product(range(1, 9), range(1, 9)):
        for solved in range(count + 1) if k <= count else ():
            samples = list(itertools.combinations([True] * solved + [False] * (count - solved), k))
            assert pass_at(k, count, solved) == pytest.approx(sum(map(any, samples)) / len(samples))


def test_pass_at_1_is_the_score_and_pass_at_8_counts_puzzles_solved_at_all(runs: dict[str, Outcomes]) -> None:
    rows = cells(runs, "pass@k")
    assert rows["first run"][0] == f"{score_outcomes(runs['first run']).value:.4f}"
    some = sum(index % 3 != 1 for index in range(len(PUZZLES)))
    assert rows["first run"][-1] == f"{some / len(PUZZLES):.4f}"
    # 4 of 8 solve: 1 - C(4, 2) / C(8, 2) = 11/14, 1 - C(4, 4) / C(8, 4) = 69/70
    assert rows["second run"] == ("0.5000", "0.7857", "0.9857", "1.0000")


def test_difficulties_have_all_puzzles_between_them(runs: dict[str, Outcomes]) -> None:
    rows = cells(runs, "By moves of the solution")
    assert sum(int(row[0]) for row in rows.values()) == len(PUZZLES)
    for moves, (count, first, any_first, second, any_second) in rows.items():
        here = [puzzle.index % 3 for puzzle in PUZZLES if len(puzzle.solution) == int(moves)]
        assert (int(count), second, any_second) == (len(here), "0.500", "1.000")
        assert first == f"{sum({0: 8, 1: 0, 2: 2}[turn] for turn in here) / 8 / len(here):.3f}"
        assert any_first == f"{sum(turn != 1 for turn in here) / len(here):.3f}"


def test_reasons_and_tokens_are_counted(runs: dict[str, Outcomes]) -> None:
    kinds = [sum(index % 3 == turn for index in range(len(PUZZLES))) for turn in range(3)]
    total = 8 * len(PUZZLES)
    rows = cells(runs, "What became of the completions")
    reasons = {name: int(row[0].split(" ")[0].replace(",", "")) for name, row in rows.items()}
    assert {name: count for name, count in reasons.items() if count} == {
        "solved": 8 * kinds[0] + 2 * kinds[2],
        "cut off": kinds[2],
        "no answer block": 8 * kinds[1] + 5 * kinds[2],
    }
    assert sum(reasons.values()) == total
    length = {name: row[0] for name, row in cells(runs, "Length").items()}
    tokens = 7 * (8 * kinds[0] + kinds[2]) + 9 * (8 * kinds[1] + 5 * kinds[2])
    tokens += (ROOM + 3 + LIMITS.max_tokens) * kinds[2]
    assert length == {
        "tokens, mean": f"{tokens / total:.1f}", "tokens, median": "9",
        "tokens, longest": str(LIMITS.max_tokens), "interrupted": f"{2 * kinds[2] / total:.1%}",
        "cut off": f"{kinds[2] / total:.1%}",
    }  # fmt: skip


def test_runs_on_different_puzzles_do_not_stand_side_by_side(folder: Path, tmp_path: Path) -> None:
    evidence = (folder / TRACK.evidence_name).read_bytes()
    (tmp_path / "verification").mkdir()
    (tmp_path / "verification" / TRACK.evidence_name).write_bytes(evidence)
    header = evidence_header("cpu", "tiny_valid", checkpoint_sha256="0" * 64, prompt="{question}")
    rows = [
        {"puzzle": puzzle.index, "completions": [right(puzzle)] * 8} for puzzle in read_puzzles("tiny_valid")
    ]
    write_evidence(tmp_path / TRACK.evidence_name, header, rows)
    with pytest.raises(Problem, match="evaluated on different puzzles"):
        completions(tmp_path)


# ---- examples -----------------------------------------------------------------------------------------


def test_examples_are_the_first_of_each_kind(runs: dict[str, Outcomes]) -> None:
    text = page(runs)
    part = text.index("## Examples")
    places = {
        index: text.index(f"\nPuzzle {index}, solved by `{PUZZLES[index].solution}`:\n", part)
        for index in range(9)
    }
    assert sorted(places, key=places.__getitem__) == [0, 3, 6, 2, 5, 8, 1, 4, 7]
    assert "\nPuzzle 9," not in text
    blocks = [token.content for token in MarkdownIt().parse(text) if token.type == "fence"]
    boards = [block.rstrip("\n") for block in blocks if block.startswith("+++")]
    assert boards == [PUZZLES[index].board for index in (0, 3, 6, 2, 5, 8, 1, 4, 7)]
    between = text[places[2] : places[5]]
    assert between.index(f"Completion 1: solved, {ROOM + 3} tokens, interrupted.") < between.index(
        "Completion 0: no answer block, 9 tokens."
    )
    assert "\n[... 1," in between and between.count("x" * 250) == 1


def test_a_model_cannot_leave_its_block_or_fail_the_checks_of_a_record(
    folder: Path, runs: dict[str, Outcomes]
) -> None:
    text = completions(folder)
    assert text == page(runs)
    headings = [line for line in text.splitlines() if line.startswith("#")]
    parsed = MarkdownIt().parse(text)
    assert sum(token.type == "heading_open" for token in parsed) == len(headings) - text.count("\n# T\\u202e")
    assert not any(token.type.startswith("html") for token in parsed)
    (folder / "completions.md").write_text(text)
    home = RecordFolder(folder, root=folder)
    assert text_files.examine(home) == conflict_markers.examine(home).replace("none found", "1 text files")
    assert "\n# T\\u202eitle\\r\n\\x1b[2J\\ud800~~~\n" in text


@given(st.text(alphabet=st.sampled_from("`~ab \n\t\r<>=|#-\u202e\u2028\x00\ud800é"), max_size=60))
def test_any_text_is_one_block_of_printable_lines(text: str) -> None:
    shown = fenced(text)
    tokens = MarkdownIt().parse(f"before\n\n{shown}\n\nafter")
    assert [token.type for token in tokens if token.level == 0 and token.nesting >= 0] == [
        "paragraph_open", "fence", "paragraph_open",
    ]  # fmt: skip
    assert all(line.isprintable() for line in shown.split("\n"))
    assert not any(line.startswith(mark * 7) for line in shown.split("\n") for mark in "<>|=")
    if text.isprintable() and not text.startswith(("<<<<<<<", ">>>>>>>", "|||||||", "=======")):
        assert shown.split("\n")[1] == text


def test_long_texts_keep_their_ends() -> None:
    assert shortened("x" * LONGEST_SHOWN) == "x" * LONGEST_SHOWN
    assert shortened("a" * 1000 + "b" * 1000) == "a" * 300 + "\n[... 1,400 characters ...]\n" + "b" * 300


# ---- the command --------------------------------------------------------------------------------------


def test_the_command_writes_what_the_folder_has_sources_for(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Problem, match="holds neither"):
        main([str(tmp_path)])
    (tmp_path / TRACK.evidence_name).write_bytes((folder / TRACK.evidence_name).read_bytes())
    main([str(tmp_path)])
    shown = capsys.readouterr().out
    assert "pass@8" in shown and "move after the solve" in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["completions.md", TRACK.evidence_name]
    assert (tmp_path / "completions.md").read_text().startswith("# Completions\n\nOn tiny_eval: ")


def test_a_report_needs_neither_torch_nor_transformers() -> None:
    code = "import sys, llm.report; assert not {'torch', 'transformers'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_track_makes_what_the_command_writes(folder: Path, runs: dict[str, Outcomes]) -> None:
    progress, answers = TRACK.reports
    assert (progress.name, answers.name) == (PROGRESS, COMPLETIONS)
    assert answers.make(folder) == page(runs)
