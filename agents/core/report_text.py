"""FIXED: report.md: a report for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.core.markdown import block, cell, table
from agents.core.watch import dollars_text

Report = Mapping[str, Any]

CLOCK = "## Clock"
"""From this heading on, reports of equal runs differ."""

_SKILL_ROWS = 25
_TITLES = {
    "learning_curve": "Score of each batch",
    "cost": "Tokens so far",
    "skill_reuse": "What skills do",
    "wake_sleep_split": "Tokens awake and asleep",
}
_ENDED = {
    "budget": "The run ended before its last episode, within its budget",
    "interrupted": "The run was interrupted",
    "failed": "The run broke off",
}


def report_text(report: Report, figures: Sequence[str]) -> str:
    """The report as Markdown; `figures` names those that lie in figures/."""
    parts = [f"# {report['method']} on {report['title']}", *_first(report), _head(report)]
    parts += [f"![{title}](figures/{name}.svg)" for name, title in _TITLES.items() if name in figures]
    parts += [*_learning(report), *_tasks(report), *_cost(report), *_skills(report), *_memory(report)]
    parts += [*_sleeps(report), *_clock(report)]
    return "\n\n".join(parts) + "\n"


def _first(report: Report) -> list[str]:
    """What a reader must know before any number."""
    parts = []
    if report["status"] != "complete":
        played = sum(part["episodes"] for part in (report["learning"], report["evaluation"]) if part)
        planned = report["planned"]["learn"] + report["planned"]["eval"]
        parts.append(
            f"**{_ENDED[report['status']]}: {report['reason'].rstrip('.')}.** {played} of {planned} episodes "
            "were played to their end; only these count below, while tokens are those of all calls."
        )
    if report["sandbox"] == "unsafe":
        parts.append(
            "> **WARNING: nothing confined the code that the model wrote (`sandbox: unsafe`).** It could "
            "read and change files, use the network, and reach the environments and scores of this run. Do "
            "not trust these numbers where nobody has read that code."
        )
    return parts


def _head(report: Report) -> str:
    model, metric = report["model"], report["metric"]
    answered = [name for name in model["answered"] if name != model["asked"]]
    total, learning = report["calls"]["total"], report["learning"]
    rows = [
        ("run", f"`{report['name']}`"),
        (
            "model",
            cell(model["asked"]) + (f", which answered as {cell(', '.join(answered))}" if answered else ""),
        ),
        ("episodes", _episodes(report)),
    ]
    if learning is not None:
        first, last = report["batches"][0]["score"], report["batches"][-1]["score"]
        course = f"; first batch {first:.3f}, last {last:.3f}" if len(report["batches"]) > 1 else ""
        rows.append((f"{metric} while learning", _score(learning) + course))
    if report["evaluation"] is not None:
        where = f"{metric} in the evaluation, on {report['evaluation_split']}"
        rows.append((where, _score(report["evaluation"])))
    rows += [
        ("steps", _steps(report)),
        ("tokens", _tokens(total)),
        ("tokens a success", _tokens_per_success(report)),
        ("cost", dollars_text(total["dollars"], total["unpriced"])),
        ("sandbox", "**unsafe: none**" if report["sandbox"] == "unsafe" else report["sandbox"]),
    ]
    return table(("", ""), rows)


def _episodes(report: Report) -> str:
    parts = []
    for part, planned, verb in (("learning", "learn", "learning"), ("evaluation", "eval", "evaluation")):
        if report["planned"][planned]:
            count = report[part]["episodes"] if report[part] else 0
            parts.append(f"{count} of {report['planned'][planned]} of the {verb}")
    return ", ".join(parts) + f"; {len(report['sleeps'])} sleeps"


def _steps(report: Report) -> str:
    awake = sum(
        round(part["episodes"] * part["steps"]) for part in (report["learning"], report["evaluation"]) if part
    )
    asleep = sum(sleep["steps"] for sleep in report["sleeps"])
    return f"{awake + asleep:,}" + (f", of them {asleep:,} asleep" if asleep else "")


def _learning(report: Report) -> list[str]:
    batches = report["batches"]
    if not batches:
        return []
    several = len({batch["phase"] for batch in batches}) > 1
    header = [
        "batch",
        *(["phase"] if several else []),
        "episodes, from 0",
        "score",
        "successes",
        "steps",
        "by skills",
    ]
    rows = [
        [
            batch["batch"] + 1,
            *([batch["phase"] + 1] if several else []),
            _span(batch["first"], batch["episodes"]),
            f"{batch['score']:.3f}",
            batch["successes"],
            batch["steps"],
            f"{batch['skill_steps'] / max(1, batch['steps']):.0%}",
            f"{batch['wake_tokens']:,}",
            f"{batch['sleep_tokens']:,}",
        ]
        for batch in batches
    ]
    return ["## Learning", table([*header, "tokens awake", "tokens asleep"], rows), *_endings(report)]


def _span(first: int, count: int) -> str:
    """The episodes of a batch, numbered as in all files."""
    return f"{first} to {first + count - 1}" if count > 1 else str(first)


def _endings(report: Report) -> list[str]:
    parts = []
    for name in ("learning", "evaluation"):
        if report[name]:
            endings = ", ".join(f"{ending} {count}" for ending, count in report[name]["endings"].items())
            unread = report[name]["unread"]
            more = f"; {unread} answers held no action that could be read" if unread else ""
            parts.append(f"How the episodes of the {name} ended: {endings}{more}.")
    return parts


def _tasks(report: Report) -> list[str]:
    parts = []
    for name in ("learning", "evaluation"):
        if report[name]:
            rows = [
                [
                    task,
                    values["episodes"],
                    f"{values['score']:.3f}",
                    values["successes"],
                    f"{values['steps']:.1f}",
                    f"{values['answers']:.1f}",
                    f"{values['tokens']:,.0f}",
                ]
                for task, values in report[name]["tasks"].items()
            ]
            header = ("task", "episodes", "score", "successes", "steps", "answers", "tokens")
            parts += [
                f"## Tasks: {name}",
                "Steps, answers and tokens are those of a mean episode.",
                table(header, rows),
            ]
            if report[name]["summary"]:
                summary = "; ".join(f"{key} {value:.4g}" for key, value in report[name]["summary"].items())
                parts.append(f"{report['title']} reports: {summary}.")
    return parts


def _cost(report: Report) -> list[str]:
    names = {"wake": "awake", "sleep": "asleep", "eval": "evaluation", "total": "**all**"}
    order = list(names)
    rows = [
        [
            names[phase],
            calls["calls"],
            f"{calls['prompt']:,}",
            f"{calls['cached']:,}",
            f"{calls['completion']:,}",
            f"{calls['reasoning']:,}",
            dollars_text(calls["dollars"], calls["unpriced"]),
        ]
        for phase, calls in sorted(report["calls"].items(), key=lambda one: order.index(one[0]))
    ]
    header = ("", "calls", "prompt", "of it cached", "completion", "of it reasoning", "cost")
    parts = ["## Cost", table(header, rows)]
    unmetered = report["calls"]["total"]["unmetered"]
    if unmetered:
        parts.append(
            f"**Of {unmetered} calls the server did not tell the tokens: the numbers are lower bounds.**"
        )
    return parts


def _skills(report: Report) -> list[str]:
    if not report["skills"]:
        return []
    rows = [
        [f"`{name[:60]}`", use["calls"], use["failed"], use["steps"], use["episodes"], use["successes"]]
        for name, use in report["skills"].items()
    ]
    header = ("skill", "calls", "failed", "steps", "episodes", "of them successful")
    return ["## Skills", table(header, rows, _SKILL_ROWS)]


def _memory(report: Report) -> list[str]:
    memory = report["memory"]
    if not memory["text"] and not memory["skills"]:
        return ["## Memory", "The memory is empty."]
    parts = ["## Memory"]
    if memory["text"]:
        parts += [
            f"What it adds to the prompt of an episode of {memory['task']}:",
            block(memory["text"], "text"),
        ]
    if memory["skills"]:
        lines = memory["skills"].count("\n") + 1
        parts += [
            f"<details><summary>The skills in full, {lines} lines</summary>",
            block(memory["skills"], "python"),
            "</details>",
        ]
    return parts


def _sleeps(report: Report) -> list[str]:
    if not any(sleep["answers"] for sleep in report["sleeps"]):
        return []
    rows = [
        [
            sleep["index"] + 1,
            sleep["episodes"],
            "changed" if sleep["changed"] else "kept",
            cell("; ".join(sleep["reason"].splitlines())),
            len(sleep["errors"]),
            sleep["answers"],
            f"{sleep['tokens']:,}",
        ]
        for sleep in report["sleeps"]
    ]
    header = ("sleep", "episodes so far", "memory", "why", "faults in answers", "answers", "tokens")
    return ["## Sleeps", table(header, rows)]


def _clock(report: Report) -> list[str]:
    clock = report["clock"]
    return [
        CLOCK,
        f"{clock['seconds']:,.0f} s in all; {clock['model_seconds']:,.0f} s of answers, those side by side "
        f"added up. Requests tried again: {clock['retries']}. Calls without an answer: "
        f"{clock['failed_calls']}.",
    ]


def _score(scores: Mapping[str, Any]) -> str:
    return f"{scores['score']:.3f} (95% interval {scores['low']:.3f} to {scores['high']:.3f})"


def _tokens(calls: Mapping[str, Any]) -> str:
    return f"{calls['tokens']:,}" + (" or more" if calls["unmetered"] else "")


def _tokens_per_success(report: Report) -> str:
    if report["tokens_per_success"] is None:
        return "no success"
    more = " or more" if report["calls"]["total"]["unmetered"] else ""
    return f"{report['tokens_per_success']:,.0f}{more}"
