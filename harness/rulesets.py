"""What a new ruleset changed, as far as code has to know: docs/rules.md says it in words.

A ruleset is a number, and a number means the same in every track. A track is written as its current ruleset
has it, and `Track.earlier` makes of it what an earlier one had.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import date

from harness.track import Track

_HARNESS_SINCE_2 = {
    "harness/__init__.py",
    "harness/errors.py",
    "harness/folder.py",
    "harness/lock.py",
    "harness/progress.py",
    "harness/resume.py",
    "harness/rulesets.py",
    "harness/silent.py",
    "harness/state.py",
}


def before_2(*since_2: str) -> Callable[[Track], Track]:
    """Ruleset 1 of a track: it left to recipes what of the harness, and of `since_2`, is fixed since."""
    left = _HARNESS_SINCE_2 | set(since_2)

    def earlier(track: Track) -> Track:
        kept = tuple(pattern for pattern in track.fixed_files if pattern not in left)
        return replace(track, fixed_files=kept, closes=date(2026, 11, 30))

    return earlier
