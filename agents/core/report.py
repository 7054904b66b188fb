"""FIXED: report.json: what a run showed, gathered from what it wrote down.

All of it but what stands under `clock` is the same for the same config and answers.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from agents.benchmarks.base import Episode
from agents.core.checkpoint import CALLS
from agents.core.journal import Row
from agents.core.loop import End, Experiment
from agents.core.watch import known_dollars
from agents.llm.ledger import Totals
from harness.intervals import bootstrap

Report = dict[str, Any]


def make_report(experiment: Experiment, end: End) -> Report:
    """The report of a run that has ended as told."""
    config, journal, ledger = experiment.config, experiment.journal, experiment.ledger
    learned = [row for row in journal.rows if row["part"] == "learn"]
    evaluated = [row for row in journal.rows if row["part"] == "eval"]
    asleep = _sleep_tokens(experiment.folder / CALLS)
    phases, total = ledger.phases(), ledger.totals()
    successes = sum(row["success"] for row in journal.rows)
    return {
        "name": experiment.folder.name,
        "benchmark": config.benchmark,
        "title": experiment.benchmark.title,
        "metric": experiment.benchmark.metric,
        "method": config.method,
        "model": {
            "asked": config.model.name,
            "provider": config.model.provider,
            "answered": _names(experiment),
        },
        "status": end.status,
        "reason": end.reason,
        "sandbox": experiment.confinement,
        "planned": {"learn": config.episodes, "eval": config.evaluate.episodes if config.evaluate else 0},
        "learning": _scores(experiment, learned),
        "evaluation": _scores(experiment, evaluated),
        "evaluation_split": config.evaluate and config.evaluate.split,
        "batches": _batches(learned, asleep),
        "sleeps": [_sleep(sleep, asleep) for sleep in journal.sleeps],
        "skills": _skills(journal.rows),
        "calls": {
            name: _calls(totals, experiment.model.priced)
            for name, totals in {**phases, "total": total}.items()
        },
        "tokens_per_success": total.tokens / successes if successes else None,
        "memory": _memory(experiment),
        "clock": {
            "seconds": round(max((row["clock"] for row in (*journal.rows, *journal.sleeps)), default=0.0), 3),
            "model_seconds": round(total.seconds, 3),
            "failed_calls": total.failed,
            "retries": total.retries,
        },
    }


def _scores(experiment: Experiment, rows: Sequence[Row]) -> dict[str, Any] | None:
    """What some episodes came to; None where there are none."""
    if not rows:
        return None
    tasks: dict[str, list[Row]] = {}
    for row in rows:
        tasks.setdefault(row["task"], []).append(row)
    interval = bootstrap([row["score"] for row in rows])
    return {
        **_means(rows),
        "low": interval.low,
        "high": interval.high,
        "summary": experiment.benchmark.summary([row["details"] for row in rows]),
        "endings": dict(sorted(Counter(row["ending"] for row in rows).items())),
        "unread": sum(row["unread"] for row in rows),
        "tasks": {task: _means(some) for task, some in tasks.items()},
    }


def _means(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "episodes": len(rows),
        "score": mean(row["score"] for row in rows),
        "successes": sum(row["success"] for row in rows),
        "steps": mean(row["steps"] for row in rows),
        "answers": mean(row["answers"] for row in rows),
        "tokens": mean(_tokens(row) for row in rows),
    }


def _batches(rows: Sequence[Row], asleep: Mapping[int, int]) -> list[dict[str, Any]]:
    """The course of learning; `asleep` are the tokens of each sleep."""
    batches: dict[int, list[Row]] = {}
    for row in rows:
        batches.setdefault(row["batch"], []).append(row)
    return [
        {
            "batch": batch,
            "phase": some[0]["phase"],
            "first": some[0]["index"],
            "episodes": len(some),
            "score": mean(row["score"] for row in some),
            "successes": sum(row["success"] for row in some),
            "steps": sum(row["steps"] for row in some),
            "wake_tokens": sum(map(_tokens, some)),
            "sleep_tokens": asleep.get(batch, 0),
            "skill_calls": sum(use["calls"] for row in some for use in row["skills"].values()),
            "skill_failures": sum(use["failed"] for row in some for use in row["skills"].values()),
            "skill_steps": sum(use["steps"] for row in some for use in row["skills"].values()),
        }
        for batch, some in batches.items()
    ]


def _sleep(sleep: Mapping[str, Any], asleep: Mapping[int, int]) -> dict[str, Any]:
    return {
        "index": sleep["index"],
        "episodes": sleep["episodes"],
        "changed": sleep["changed"],
        "reason": sleep["reason"],
        "errors": sleep["errors"],
        "answers": len(sleep["exchanges"]),
        "steps": sleep["steps"],
        "tokens": asleep.get(sleep["index"], 0),
    }


def _skills(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """How each skill served, most called first."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        for name, use in row["skills"].items():
            found.setdefault(name, Counter()).update(use)
    return {
        name: dict(use) for name, use in sorted(found.items(), key=lambda one: (-one[1]["calls"], one[0]))
    }


def _calls(totals: Totals, priced: bool) -> dict[str, Any]:
    """Totals without what depends on how often the server failed; null dollars are unknown."""
    kept = ("calls", "prompt", "completion", "reasoning", "cached", "tokens", "unmetered", "unpriced")
    values = totals.to_json()
    return {**{name: values[name] for name in kept}, "dollars": known_dollars(totals, priced=priced)}


def _memory(experiment: Experiment) -> dict[str, Any]:
    """What the memory is at the end, as an episode of the first task meets it."""
    memory = experiment.journal.memory()
    if memory is not None:
        experiment.load(memory)
    task = experiment.config.phases[-1].tasks[0]
    episode = Episode(task, experiment.benchmark.seeds(task, experiment.config.split)[0])
    return {
        "task": task,
        "text": experiment.method.memory_text(episode, ""),
        "skills": experiment.method.skills_source(),
    }


def _tokens(row: Row) -> int:
    return int(row["tokens"]["prompt"] + row["tokens"]["completion"])


def _names(experiment: Experiment) -> list[str]:
    """The models that answered, as the server names them."""
    calls = _answered(experiment.folder / CALLS)
    return sorted({call["reply"]["model"] for call in calls})


def _sleep_tokens(path: Path) -> dict[int, int]:
    """Tokens of each sleep, by its index, as far as servers told."""
    found: Counter[int] = Counter()
    for call in _answered(path):
        phase, _, rest = call["label"].partition("/")
        if phase == "sleep":
            usage = call["reply"]["usage"]
            found[int(rest.partition("/")[0])] += (usage["prompt"] or 0) + (usage["completion"] or 0)
    return found


def _answered(path: Path) -> list[dict[str, Any]]:
    """The calls that were answered."""
    with path.open("rb") as handle:
        calls = (json.loads(line) for line in handle)
        return [
            {"label": call["label"], "reply": call["reply"]} for call in calls if call["reply"] is not None
        ]
