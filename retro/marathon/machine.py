"""The state machine of a marathon: what is searched next, and what becomes of what was found.

`step` takes how things stand and an event, and gives how they stand then, and orders. It reads no file and
runs no emulator. docs/retro_marathon.md draws it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from harness.files import STRICT

TURN = 3
"""Searches in a turn."""

Kind = Literal["run", "practice", "improve"]
"""On from where the run ends; a state on its own, from where it was first entered; a state within the run."""


@dataclass(frozen=True)
class Place:
    """A state as the run enters it."""

    __pydantic_config__ = STRICT
    state: str
    how: str
    """Hash of work RAM in its first frame."""
    turns: int = 0
    """That it has had from here."""


@dataclass(frozen=True)
class Standing:
    """How things stand."""

    __pydantic_config__ = STRICT
    entered: tuple[Place, ...]
    """The states that the run enters, in order; at the last of them it goes on."""
    kind: Kind = "run"
    state: str = ""
    """In work."""
    searches: int = 0
    """Of the turn that are done."""
    begun: int = 0
    """Searches that were begun in all; the number of the one in work."""
    again: bool = False
    """Whether it goes on with what the one before it knows."""
    checkpoints: int = 0
    """Pieces after the last place that end within its state."""
    ended: bool = False
    """Whether the run reaches the ending."""
    known: tuple[str, ...] = ()
    """States that a run has entered by a change of levels, in that order; all of them are practised."""
    barred: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """State -> the ways in which it must not be entered."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Kind and state -> searches in a row that found nothing."""
    turns: Mapping[str, int] = field(default_factory=dict)
    """State -> its turns of practice and improvement."""


@dataclass(frozen=True)
class Rules:
    """What the configuration says."""

    doublings: int
    """How often a budget is doubled at most."""
    practice: int
    """Of the turns of a beaten state one in so many is practice; 0 = none ever is."""


# ---- events ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Resumed:
    """The engine has started."""


@dataclass(frozen=True)
class Nothing:
    """The search in work has ended and found nothing."""

    place: bool
    """Whether it came to a place within the state that a checkpoint could be made of."""


@dataclass(frozen=True)
class Gained:
    """The search in work, of practice or improvement, has ended and found something."""


@dataclass(frozen=True)
class Left:
    """A verified piece leads from where the run ended into another state."""

    state: str
    how: str
    last: bool
    """Whether it is the ending."""


@dataclass(frozen=True)
class Marked:
    """The checkpoint that was ordered is verified and set; or it does not replay."""

    verified: bool


@dataclass(frozen=True)
class Practised:
    """A piece leaves the state, in practice."""

    state: str


@dataclass(frozen=True)
class Replaced:
    """A faster way took the place of a part of the run."""

    entered: tuple[tuple[str, str], ...]
    """(state, how) of all its places."""


Event = Resumed | Nothing | Gained | Left | Marked | Practised | Replaced

# ---- orders ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Search:
    """Search `Standing.state`, as `Standing.kind` says."""

    doubled: int
    """How often the budget is doubled."""


@dataclass(frozen=True)
class Mark:
    """Make a checkpoint of the best place that the last search came to."""


@dataclass(frozen=True)
class GoBack:
    """Drop the checkpoints, and so many pieces."""

    pieces: int


@dataclass(frozen=True)
class Note:
    """A milestone for the journal."""

    event: Literal["piece", "ending", "checkpoint", "stuck", "back", "barred", "unbarred", "practised"]
    state: str
    text: str


Order = Search | Mark | GoBack | Note
Orders = tuple[Order, ...]

# ---- the machine -------------------------------------------------------------------------------------------


def begin(state: str, how: str) -> Standing:
    """How things stand when the first state of a run was reached from power-on."""
    return Standing((Place(state, how),), state=state, begun=1)


def step(now: Standing, event: Event, rules: Rules) -> tuple[Standing, Orders]:
    """How things stand after an event, and what is to be done.

    Raises:
        ValueError: the event cannot happen as things stand.
    """
    match event:
        case Resumed():
            return now, (_search(now, rules),)
        case Nothing():
            return _nothing(now, event, rules)
        case Gained():
            if now.kind == "run":
                raise ValueError("a search of the run gains by leaving a state")
            counted = replace(now, failures={**now.failures, _key(now): 0}, searches=now.searches + 1)
            over = counted.searches >= TURN or (now.kind == "improve" and not _beaten(now, now.state))
            return _turn(counted, rules) if over else _retry(counted, rules, again=False)
        case Left():
            return _left(now, event, rules)
        case Marked():
            return _marked(now, event, rules)
        case Practised():
            freed, notes = _unbarred(now, event.state)
            return freed, (Note("practised", event.state, "a way out was found in practice"), *notes)
        case Replaced():
            turns = {(place.state, place.how): place.turns for place in now.entered}
            entered = tuple(Place(*place, turns.get(place, 1)) for place in event.entered)
            if not now.ended:
                raise ValueError("a run that has not reached the ending is not improved")
            new = (place.state for place in entered[1:-1] if place.state not in now.known)
            after, notes = replace(now, entered=entered, known=(*now.known, *new)), tuple[Order, ...]()
            for state, _ in event.entered[:-1]:  # a piece leaves each of them
                after, more = _unbarred(after, state)
                notes += more
            return after, notes


def allowed(now: Standing, state: str, how: str) -> bool:
    """Whether a state may be entered in this way."""
    return how not in now.barred.get(state, ())


def _nothing(now: Standing, event: Nothing, rules: Rules) -> tuple[Standing, Orders]:
    failures = {**now.failures, _key(now): now.failures.get(_key(now), 0) + 1}
    now = replace(now, failures=failures, searches=now.searches + 1)
    if now.searches < TURN:
        return _retry(now, rules, again=True)
    if now.kind != "run":
        return _turn(now, rules)
    first = now.entered[-1].turns == 0
    *before, head = now.entered
    now = replace(now, entered=(*before, replace(head, turns=head.turns + 1)))
    return (now, (Mark(),)) if first and event.place else _stuck(now, rules)


def _marked(now: Standing, event: Marked, rules: Rules) -> tuple[Standing, Orders]:
    if now.kind != "run" or now.searches < TURN or now.entered[-1].turns != 1 or now.checkpoints:
        raise ValueError("a checkpoint is made when a state's first turn found no exit")
    if not event.verified:
        return _stuck(now, rules)
    after, orders = _turn(replace(now, checkpoints=1), rules)
    return after, (Note("checkpoint", now.state, "its first turn found no exit"), *orders)


def _stuck(now: Standing, rules: Rules) -> tuple[Standing, Orders]:
    """Go back: to the last piece, and before it if there is a state before."""
    *before, head = now.entered
    notes: list[Order] = [Note("stuck", head.state, f"no exit in {head.turns} turns")]
    if not before:
        notes += [GoBack(0)] if now.checkpoints else []
        after, orders = _turn(replace(now, checkpoints=0), rules)
        return after, (*notes, *orders)
    ways = (*now.barred.get(head.state, ()), head.how)
    after = replace(now, entered=tuple(before), checkpoints=0, barred={**now.barred, head.state: ways})
    notes += [
        Note("barred", head.state, "it must not be entered in this way until a piece leaves it"),
        Note("back", before[-1].state, f"from {head.state}"),
        GoBack(1),
    ]
    after, orders = _turn(after, rules)
    return after, (*notes, *orders)


def _left(now: Standing, event: Left, rules: Rules) -> tuple[Standing, Orders]:
    *before, head = now.entered
    if now.ended or not allowed(now, event.state, event.how):
        raise ValueError(f"the run cannot go on to {event.state} in this way")
    place = Place(event.state, event.how)
    freed, notes = _unbarred(now, head.state)
    after = replace(
        freed,
        entered=(*before, replace(head, turns=head.turns + 1), place),
        checkpoints=0,
        ended=event.last,
        failures={key: count for key, count in now.failures.items() if key != f"run {head.state}"},
        known=now.known if event.last or event.state in now.known else (*now.known, event.state),
    )
    name: Literal["ending", "piece"] = "ending" if event.last else "piece"
    notes = (Note(name, head.state, f"to {event.state}"), *notes)
    if now.kind != "run":
        return after, notes
    after, orders = _turn(after, rules, onward=True)
    return after, (*notes, *orders)


def _unbarred(now: Standing, state: str) -> tuple[Standing, Orders]:
    if state not in now.barred:
        return now, ()
    barred = {name: ways for name, ways in now.barred.items() if name != state}
    return replace(now, barred=barred), (Note("unbarred", state, "a piece leaves it"),)


# ---- turns -------------------------------------------------------------------------------------------------


def _turn(now: Standing, rules: Rules, onward: bool = False) -> tuple[Standing, Orders]:
    """Begin the next turn; `onward` = the run goes on, and is not held up by practice."""
    kind: Kind = "run"
    state = now.entered[-1].state
    practised = now.known if rules.practice else ()
    if now.ended:
        state = _least(now, tuple(place.state for place in now.entered[:-1]))
        turn = now.turns.get(state, 0)
        due = state in practised and turn % rules.practice == rules.practice - 1
        kind = "practice" if due else "improve"
    elif now.kind == "run" and practised and not onward:
        kind, state = "practice", _least(now, practised)
    turns = now.turns if kind == "run" else {**now.turns, state: now.turns.get(state, 0) + 1}
    return _retry(replace(now, kind=kind, state=state, searches=0, turns=turns), rules, again=False)


def _beaten(now: Standing, state: str) -> bool:
    """Whether the run still goes through a state; a way past it may have been found."""
    return any(place.state == state for place in now.entered[:-1])


def _least(now: Standing, states: tuple[str, ...]) -> str:
    """The state with the fewest turns, the first of them in order."""
    return min(states, key=lambda state: now.turns.get(state, 0))


def _retry(now: Standing, rules: Rules, again: bool) -> tuple[Standing, Orders]:
    after = replace(now, begun=now.begun + 1, again=again)
    return after, (_search(after, rules),)


def _search(now: Standing, rules: Rules) -> Search:
    return Search(min(now.failures.get(_key(now), 0), rules.doublings))


def _key(now: Standing) -> str:
    return f"{now.kind} {now.state}"
