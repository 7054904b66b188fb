"""Every rule of a record, in order, and the one way to hold a record to them.

A rule that crashes has failed; a rule that needs another that did not pass is not tried, and ends like it. So
the list of checks is the same for every record, and nothing in a record can cut it short.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from harness.checks import folder, log, pair, recipe, run, score, standing, text
from harness.checks.base import Check, Pending, RecordFolder, Rule, RunFiles
from harness.errors import Problem, Unavailable
from harness.record import SECOND

__all__ = ["CHECKS", "Check", "RecordFolder", "check_all", "explain", "printable"]

_RUN: tuple[Rule[RunFiles], ...] = (
    *run.MANIFEST_RULES,
    *log.ORDER_RULES,
    *run.RULES,
    *recipe.RULES,
    *log.RULES,
    *score.RULES,
)
_RUN_NAMES = {rule.name for rule in _RUN}


LONGEST_REASON = 2000


class _Step(NamedTuple):
    name: str
    needs: tuple[str, ...]
    examine: Callable[[RecordFolder], str]


def check_all(home: RecordFolder) -> list[Check]:
    """Hold a record to every rule; one check a rule, in the order of CHECKS."""
    done: dict[str, Check] = {}
    for step in _STEPS:
        failed = next((done[need] for need in step.needs if not done[need].passed), None)
        if failed is not None:
            reason = f"not checked: needs {failed.name}"
            done[step.name] = Check(step.name, False, reason, failed.pending, failed.unavailable)
        else:
            done[step.name] = _try(step, home)
    return list(done.values())


def explain() -> Iterator[tuple[str, str, str]]:
    """Of every rule, in order: its name, "record" or "each run", and in a sentence what must be so."""
    record = (*run.DATE_RULES, *pair.BEFORE, *pair.RULES, *text.RULES, *standing.RULES)
    for rules, subject in ((folder.RULES, "record"), (_RUN, "each run"), (record, "record")):
        for rule in rules:
            yield rule.name, subject, " ".join((rule.examine.__doc__ or "").split())


def _try(step: _Step, home: RecordFolder) -> Check:
    try:
        return Check(step.name, True, printable(step.examine(home)))
    except Problem as problem:
        reason = str(problem).replace(f"{home.path}/", "")
        if isinstance(problem, Unavailable):
            return Check(step.name, False, printable(f"cannot be checked here: {reason}"), unavailable=True)
        return Check(step.name, False, printable(reason), isinstance(problem, Pending))
    except ImportError as error:
        reason = f"cannot be checked here: {error}. Remedy: install the extras of this track"
        return Check(step.name, False, printable(reason), unavailable=True)
    except Exception as error:  # whatever a record holds, the other rules are still tried
        return Check(step.name, False, printable(f"cannot be checked: {type(error).__name__}: {error}"))


def printable(text: str) -> str:
    """The text, bounded, with all escaped that could move a terminal's cursor or turn its writing round."""
    text = text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}... ({len(text):,} characters)"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _plan() -> Iterator[_Step]:
    yield from (_Step(*rule) for rule in folder.RULES)
    yield from (_of_run(rule, "") for rule in _RUN)
    yield from (_Step(*rule) for rule in (*run.DATE_RULES, *pair.BEFORE))
    yield from (_of_run(rule, f"{SECOND}/") for rule in _RUN)
    yield from (_Step(*rule) for rule in (*pair.RULES, *text.RULES, *standing.RULES))


def _of_run(rule: Rule[RunFiles], prefix: str) -> _Step:
    """The rule for one of the two runs; those of the second wait until the record has one."""
    needs = tuple(prefix + need if need in _RUN_NAMES else need for need in rule.needs)

    def examine(home: RecordFolder) -> str:
        return rule.examine(home.second if prefix else home.first)

    return _Step(prefix + rule.name, (SECOND, *needs) if prefix else needs, examine)


_STEPS = tuple(_plan())
CHECKS = tuple(step.name for step in _STEPS)
