"""The report says what the run's own files say, and says the important things first."""

import copy
import json
import re
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from chat_servers import ChatServer
from forked_experiments import Runs, write_config

from agents.core.figures import draw_figures
from agents.core.report_text import CLOCK, report_text


@pytest.fixture(scope="module")
def report(whole: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((whole / "report.json").read_text())
    return value


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def changed(report: dict[str, Any], **changes: Any) -> str:
    return report_text({**copy.deepcopy(report), **changes}, ["cost"])


def head(text: str) -> dict[str, str]:
    """The first table."""
    rows = re.findall(r"^\| ([^|]+) \| (.+) \|$", text, re.MULTILINE)
    return dict(rows[: text[: text.find("\n![")].count("\n| ")])


def test_tokens_are_those_of_the_calls(report: dict[str, Any], whole: Path) -> None:
    calls = lines(whole / "calls.jsonl")
    for phase in ("wake", "sleep", "eval", "total"):
        usages = [
            call["reply"]["usage"]
            for call in calls
            if phase == "total" or call["label"].startswith(phase + "/")
        ]
        found = report["calls"][phase]
        assert found["calls"] == len(usages) > 0
        assert found["prompt"] == sum(usage["prompt"] for usage in usages)
        assert found["tokens"] == sum(usage["prompt"] + usage["completion"] for usage in usages)
        assert found["dollars"] is None
    batches = report["batches"]
    assert sum(batch["wake_tokens"] for batch in batches) == report["calls"]["wake"]["tokens"]
    assert sum(batch["sleep_tokens"] for batch in batches) == report["calls"]["sleep"]["tokens"]
    assert sum(sleep["tokens"] for sleep in report["sleeps"]) == report["calls"]["sleep"]["tokens"]


def test_scores_are_those_of_the_episodes(report: dict[str, Any], whole: Path) -> None:
    rows = lines(whole / "episodes.jsonl")
    assert [row["part"] for row in rows] == ["learn"] * 7 + ["eval"] * 2
    for part, name in (("learn", "learning"), ("eval", "evaluation")):
        some = [row for row in rows if row["part"] == part]
        found = report[name]
        assert found["episodes"] == len(some)
        assert found["score"] == mean(row["score"] for row in some)
        assert found["low"] <= found["score"] <= found["high"]
        assert sum(found["endings"].values()) == len(some)
        assert sum(task["episodes"] for task in found["tasks"].values()) == len(some)
        assert found["steps"] == mean(row["steps"] for row in some)
    assert [batch["episodes"] for batch in report["batches"]] == [3, 1, 3]
    assert [batch["phase"] for batch in report["batches"]] == [0, 0, 1]
    assert report["planned"] == {"learn": 7, "eval": 2}


def test_rows_agree_with_trajectories(whole: Path) -> None:
    for row, full in zip(lines(whole / "episodes.jsonl"), lines(whole / "trajectories.jsonl"), strict=True):
        turns = full["trajectory"]["turns"]
        assert row["answers"] == len(turns)
        assert row["steps"] == sum(len(turn["steps"]) for turn in turns)
        assert row["unread"] == sum(turn["action"] == "" for turn in turns)
        assert sum(use["calls"] for use in row["skills"].values()) == sum(
            bool(turn["skill"]) for turn in turns
        )


def test_the_memory_at_the_end_is_shown(report: dict[str, Any], whole: Path) -> None:
    memory = json.loads(sorted((whole / "memory").glob("*.json"))[-1].read_text())
    assert len(report["sleeps"]) == 3
    source = memory["codebook"]["functions"][0]["source"]
    assert "def wander(env, steps=4):" in source
    assert report["memory"]["skills"].strip().endswith(source.strip())
    text = (whole / "report.md").read_text()
    assert source.strip() in text
    assert "skill wander(steps=4)" in text
    assert report["skills"]["wander"]["calls"] > 0
    assert "| `wander` |" in text


def test_every_sleep_left_its_memory_and_its_words(whole: Path) -> None:
    sleeps = lines(whole / "sleeps.jsonl")
    names = sorted(path.name for path in (whole / "memory").iterdir())
    assert names == ["000.json", "001.diff", "001.json", "002.diff", "002.json", "003.diff", "003.json"]
    for number, sleep in enumerate(sleeps, 1):
        diff = (whole / "memory" / f"{number:03d}.diff").read_text()
        assert diff.strip() == sleep["diff"].strip()
        assert len(sleep["exchanges"]) == 2
        assert "[kind: sleep.speedrunner" in sleep["exchanges"][0]["asked"][0]["content"]


def test_what_is_first_in_the_report(report: dict[str, Any], whole: Path) -> None:
    text = (whole / "report.md").read_text()
    assert text.startswith("# speedrunner on BabyAI\n\n| ")
    found = head(text)
    assert found["model"] == "served-model"
    assert found["episodes"] == "7 of 7 of the learning, 2 of 2 of the evaluation; 3 sleeps"
    assert found["cost"] == "unknown"
    assert found["tokens"] == f"{report['calls']['total']['tokens']:,}"
    assert found["sandbox"].startswith("landlock+seccomp")
    assert "WARNING" not in text
    for name in re.findall(r"\]\((figures/\w+\.svg)\)", text):
        assert (whole / name).is_file()


def test_an_unsafe_run_says_so_loudly(runs: Runs, server: ChatServer, tmp_path: Path) -> None:
    path = write_config(
        tmp_path / "unsafe.yaml",
        server.url,
        sandbox="unsafe",
        evaluate=None,
        phases=[{"tasks": ["goto"], "episodes": 1}],
    )
    status, text = runs.run("--config_file", path)
    assert status == 0, text
    assert "WARNING: nothing confined" in text
    folder = runs.outputs / "unsafe"
    written = (folder / "report.md").read_text()
    assert written.index("> **WARNING: nothing confined") < written.index("| run |")
    assert head(written)["sandbox"] == "**unsafe: none**"
    assert json.loads((folder / "manifest.json").read_text())["sandbox"] == "unsafe"


def test_keys_are_in_no_file_of_a_run(runs: Runs, server: ChatServer, tmp_path: Path) -> None:
    model = {
        "name": "served-model",
        "provider": "local",
        "base_url": server.url,
        "api_key_env": "AGENTS_TEST_KEY",
    }
    path = write_config(tmp_path / "keys.yaml", server.url, model=model)
    status, text = runs.run("--config_file", path)
    assert status == 0, text
    assert server.headers[-1]["authorization"] == "Bearer sk-canary-0123456789"
    assert "canary" not in text
    files = [found for found in (runs.outputs / "keys").rglob("*") if found.is_file()]
    assert len(files) > 12
    for found in files:
        assert b"canary" not in found.read_bytes(), found


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        ("budget", "the budget of $1 does not cover the next call", "within its budget: the budget of $1"),
        ("interrupted", "stopped by Ctrl-C", "The run was interrupted: stopped by Ctrl-C."),
        ("failed", "127.0.0.1:9 did not answer.", "The run broke off: 127.0.0.1:9 did not answer."),
    ],
)
def test_how_a_run_ended_comes_first(report: dict[str, Any], status: str, reason: str, words: str) -> None:
    text = changed(report, status=status, reason=reason)
    assert words in text[: text.index("| run |")]
    assert "9 of 9 episodes" in text


def test_a_run_that_played_nothing_has_a_report(report: dict[str, Any]) -> None:
    nothing = {"learning": None, "evaluation": None, "batches": [], "sleeps": [], "skills": {}}
    memory = {"task": "goto", "text": "", "skills": ""}
    text = changed(
        report, **nothing, memory=memory, status="failed", reason="no server", tokens_per_success=None
    )
    assert "0 of 9 episodes" in text
    assert "0 of 7 of the learning" in text
    assert "The memory is empty." in text
    assert draw_figures({**report, **nothing}) == {}


def test_unknown_tokens_and_costs_are_not_zero(report: dict[str, Any]) -> None:
    calls = copy.deepcopy(report["calls"])
    calls["total"].update(unmetered=3, unpriced=3, dollars=0.25)
    text = changed(report, calls=calls)
    assert head(text)["tokens"].endswith(" or more")
    assert head(text)["cost"] == "$0.2500 and 3 calls of unknown cost"
    assert "Of 3 calls the server did not tell the tokens" in text


def test_a_models_words_stay_in_their_place(report: dict[str, Any]) -> None:
    sleep = {**report["sleeps"][0], "reason": "a | b\n| c `d` <script> **e** [x](y)"}
    memory = {"task": "goto", "text": "```\n# Not a heading\n````\n", "skills": ""}
    text = changed(report, sleeps=[sleep], memory=memory)
    row = next(line for line in text.splitlines() if line.startswith("| 1 | 3 | changed"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 8
    assert "<script>" not in text.replace("\\<script\\>", "")
    assert "`````text\n```\n# Not a heading\n````\n`````" in text


def test_long_tables_are_shortened(report: dict[str, Any]) -> None:
    batches = [{**report["batches"][0], "batch": number, "first": 3 * number} for number in range(100)]
    text = changed(report, batches=batches)
    assert "| 20 | 57 to 59 |" in text
    assert "| 81 | 240 to 242 |" in text
    assert "| 21 | 60 to" not in text
    assert "| ... |" in text


def test_episodes_are_numbered_as_in_the_files_and_reasons_are_told_apart(report: dict[str, Any]) -> None:
    one = {**report["batches"][0], "first": 7, "episodes": 1}
    sleep = {**report["sleeps"][0], "reason": "episode 0: found\nepisodes 1, 2: nothing new"}
    text = changed(report, batches=[one], sleeps=[sleep])
    assert "| batch | episodes, from 0 |" in text and "| 1 | 7 |" in text
    assert "| sleep | episodes so far | memory | why | faults in answers |" in text
    assert "| episode 0: found; episodes 1, 2: nothing new |" in text


def test_times_stand_in_one_place(report: dict[str, Any]) -> None:
    before = report_text(report, ["cost"])
    after = changed(report, clock={key: value + 1e6 for key, value in report["clock"].items()})
    assert before != after
    assert before.partition(CLOCK)[0] == after.partition(CLOCK)[0]


def test_figures_are_the_same_for_the_same_report(report: dict[str, Any], whole: Path) -> None:
    figures = draw_figures(report)
    assert figures.keys() == {"learning_curve", "cost", "wake_sleep_split", "skill_reuse"}
    for name, content in figures.items():
        assert content == (whole / "figures" / f"{name}.svg").read_text()
    assert "skill_reuse" not in draw_figures({**report, "skills": {}})
