"""The state machine of a marathon: turns, budgets, checkpoints, bars, in whatever order."""

import json
from dataclasses import asdict

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pydantic import TypeAdapter

from retro.marathon.machine import (
    TURN,
    Event,
    Gained,
    GoBack,
    Left,
    Mark,
    Marked,
    Note,
    Nothing,
    Order,
    Place,
    Practised,
    Replaced,
    Resumed,
    Rules,
    Search,
    Standing,
    allowed,
    begin,
    step,
)

RULES = Rules(doublings=4, practice=3)
STATES = ("title", "one", "two", "three", "ending")


def after(now: Standing, *events: Event, rules: Rules = RULES) -> tuple[Standing, list[Order]]:
    """How things stand after events, and all orders."""
    orders: list[Order] = []
    for event in events:
        now, more = step(now, event, rules)
        orders += more
    return now, orders


def notes(orders: list[Order]) -> list[tuple[str, str]]:
    return [(order.event, order.state) for order in orders if isinstance(order, Note)]


def doublings(orders: list[Order]) -> list[int]:
    return [order.doubled for order in orders if isinstance(order, Search)]


STUCK = (Nothing(False),) * TURN


def test_a_run_goes_straight_on_as_long_as_it_gets_on() -> None:
    now, orders = after(begin("title", "a"), Left("one", "b", False), Left("two", "c", False))
    assert (now.kind, now.state, now.searches) == ("run", "two", 0)
    assert doublings(orders) == [0, 0]
    assert notes(orders) == [("piece", "title"), ("piece", "one")]
    assert [place.state for place in now.entered] == ["title", "one", "two"]
    assert now.known == ("one", "two")


def test_a_retry_has_twice_the_frames_and_goes_on_with_what_is_known() -> None:
    now, orders = after(begin("title", "a"), Nothing(True), Nothing(True))
    assert doublings(orders) == [1, 2]
    assert (now.again, now.searches, now.begun) == (True, 2, 3)


def test_a_first_turn_without_an_exit_makes_a_checkpoint_and_the_second_goes_back() -> None:
    now, orders = after(begin("title", "a"), Left("one", "b", False), *(Nothing(True),) * TURN)
    assert isinstance(orders[-1], Mark)
    now, orders = after(now, Marked(True))
    assert now.checkpoints == 1
    assert notes(orders) == [("checkpoint", "one")]
    assert (now.kind, now.state) == ("practice", "one")
    now, orders = after(now, *STUCK)
    assert (now.kind, now.state) == ("run", "one")
    assert doublings(orders)[-1] == 3, "the failures of the run's turn before count on"
    now, orders = after(now, *(Nothing(True),) * TURN)
    assert notes(orders) == [("stuck", "one"), ("barred", "one"), ("back", "title")]
    assert [order for order in orders if isinstance(order, GoBack)] == [GoBack(1)]
    assert now.checkpoints == 0
    assert [place.state for place in now.entered] == ["title"]
    assert not allowed(now, "one", "b")
    assert allowed(now, "one", "c")


def test_a_checkpoint_that_does_not_replay_is_none() -> None:
    now, _ = after(begin("title", "a"), Left("one", "b", False), *(Nothing(True),) * TURN)
    now, orders = after(now, Marked(False))
    assert notes(orders)[0] == ("stuck", "one")
    assert now.checkpoints == 0


def test_at_the_first_state_there_is_nothing_to_go_back_to() -> None:
    now, orders = after(begin("title", "a"), *STUCK)
    assert notes(orders) == [("stuck", "title")]
    assert not any(isinstance(order, GoBack) for order in orders)
    assert (now.kind, now.state, now.searches) == ("run", "title", 0)


def test_a_barred_state_is_freed_when_a_piece_leaves_it_in_practice() -> None:
    now, _ = after(begin("title", "a"), Left("one", "b", False), *STUCK)
    assert not allowed(now, "one", "b")
    assert (now.kind, now.state) == ("practice", "one")
    now, orders = after(now, Practised("one"), Gained())
    assert notes(orders) == [("practised", "one"), ("unbarred", "one")]
    assert allowed(now, "one", "b")


def test_beaten_states_take_turns_of_three_searches_once_the_ending_is_reached() -> None:
    now, _ = after(begin("title", "a"), Left("one", "b", False), Left("ending", "c", True))
    worked = []
    for _ in range(12 * TURN):
        worked.append((now.kind, now.state))
        now, _ = after(now, Nothing(True))
    turns = worked[::TURN]
    assert worked == [turn for turn in turns for _ in range(TURN)]
    assert [state for _, state in turns] == ["title", "one"] * 6
    assert [kind for kind, state in turns if state == "one"] == ["improve", "improve", "practice"] * 2
    assert {kind for kind, state in turns if state == "title"} == {"improve"}, "no route entered it"


def test_a_state_that_an_improvement_leads_through_is_practised_from_then_on() -> None:
    now, _ = after(begin("title", "a"), Left("two", "b", False), Left("ending", "c", True))
    now, _ = after(now, Replaced((("title", "a"), ("one", "d"), ("two", "e"), ("ending", "f"))), Gained())
    assert now.known == ("two", "one")
    worked = set()
    for _ in range(12 * TURN):
        now, _ = after(now, Nothing(False))
        worked.add((now.kind, now.state))
    assert {("practice", "one"), ("improve", "one"), ("practice", "two")} <= worked


def test_a_barred_state_is_freed_when_an_improvement_leads_through_it() -> None:
    now, _ = after(begin("title", "a"), Left("one", "b", False), *STUCK, *STUCK, Left("ending", "c", True))
    assert now.barred == {"one": ("b",)}
    now, orders = after(now, Replaced((("title", "a"), ("one", "b"), ("ending", "d"))))
    assert (now.barred, notes(orders)) == ({}, [("unbarred", "one")])


def test_a_gain_makes_budgets_small_again() -> None:
    _, orders = after(
        begin("title", "a"), Left("ending", "b", True), Nothing(True), Nothing(True), Gained(), Nothing(True)
    )
    assert doublings(orders) == [0, 1, 2, 0, 1]


def test_without_practice_there_is_none() -> None:
    now, _ = after(begin("title", "a"), Left("one", "b", False), *STUCK, rules=Rules(doublings=1, practice=0))
    assert (now.kind, now.state) == ("run", "title")


@given(st.integers(0, 6), st.integers(0, 40))
def test_budgets_double_no_further_than_told(limit: int, failures: int) -> None:
    rules = Rules(limit, 0)
    _, orders = after(begin("title", "a"), *(Nothing(False),) * failures, rules=rules)
    assert doublings(orders) == [min(count, limit) for count in range(1, failures + 1)]


class Marathons(RuleBasedStateMachine):
    """Searches end in any way that a search can end; after each the machine is restarted from its JSON."""

    @initialize(practice=st.integers(0, 4), doublings=st.integers(0, 5))
    def begins(self, practice: int, doublings: int) -> None:
        self.told = Rules(doublings, practice)
        self.now = begin("title", "0")
        self.asked = False
        self.ways = 0
        self.places = [("title", "0")]
        """What the orders make of the run, beside the machine's own account."""
        self.marks = 0
        self.barred: dict[str, list[str]] = {}
        """State -> ways in which it was barred since a piece last left it."""
        self.send(Resumed())

    def send(self, *events: Event) -> None:
        for event in events:
            self.now, orders = step(self.now, event, self.told)
            if isinstance(event, Practised):
                self.barred.pop(event.state, None)
            if isinstance(event, Left):
                self.barred.pop(self.places[-1][0], None)
                self.places.append((event.state, event.how))
                self.marks = 0
            if isinstance(event, Marked) and event.verified:
                self.marks += 1
            if isinstance(event, Replaced):
                self.places = list(event.entered)
                for state, _ in event.entered[:-1]:
                    self.barred.pop(state, None)
            self.asked = any(isinstance(order, Mark) for order in orders)
            for order in orders:
                if isinstance(order, GoBack):
                    assert self.marks or order.pieces == 1, "back to the last piece, then before it"
                    self.marks = 0
                    del self.places[len(self.places) - order.pieces :]
                if isinstance(order, Note) and order.event == "barred":
                    state, how = self.places[-1]
                    assert order.state == state
                    self.barred.setdefault(state, []).append(how)
            searches = [order for order in orders if isinstance(order, Search)]
            assert len(searches) <= 1
            assert not searches or orders[-1] is searches[0], "a search is the last of the orders"

    @precondition(lambda self: not self.asked)
    @rule(place=st.booleans())
    def nothing(self, place: bool) -> None:
        first = self.now.entered[-1].turns == 0
        run = self.now.kind == "run"
        self.send(Nothing(place))
        if self.asked:
            assert first and run and place, "a checkpoint only within a state's first turn"

    @precondition(lambda self: self.asked)
    @rule(verified=st.booleans())
    def marked(self, verified: bool) -> None:
        self.send(Marked(verified))

    @precondition(lambda self: not self.asked and self.now.kind == "run")
    @rule(known=st.booleans(), skip=st.booleans())
    def leaves(self, known: bool, skip: bool) -> None:
        self.onward(known, skip)

    def onward(self, known: bool, skip: bool) -> None:
        place = STATES.index(self.now.entered[-1].state) + 1
        state = STATES[min(place + skip, len(STATES) - 1)]
        how = "0" if known else str(self.ways)
        self.ways += 1
        if allowed(self.now, state, how):
            self.send(Left(state, how, state == STATES[-1]))
        else:
            before = self.now
            try:
                step(self.now, Left(state, how, state == STATES[-1]), self.told)
            except ValueError:
                assert self.now == before
            else:
                raise AssertionError("a barred state was entered")

    @precondition(lambda self: self.now.kind == "practice" and not self.asked)
    @rule(onward=st.booleans())
    def practised(self, onward: bool) -> None:
        self.send(Practised(self.now.state))
        if onward and not self.now.ended and self.now.entered[-1].state == self.now.state:
            self.onward(False, False)
        self.send(Gained())

    @precondition(lambda self: self.now.kind == "improve")
    @rule(skip=st.booleans())
    def improved(self, skip: bool) -> None:
        self.ways += 1
        entered = [(place.state, place.how) for place in self.now.entered]
        if skip and len(entered) > 2:
            del entered[1]
        entered[-1] = (STATES[-1], str(self.ways))
        self.send(Replaced(tuple(entered)), Gained())

    @rule()
    def restarted(self) -> None:
        text = json.dumps(asdict(self.now))
        self.now = TypeAdapter(Standing).validate_json(text)
        if not self.asked:
            self.send(Resumed())

    @invariant()
    def the_account_is_true(self) -> None:
        if not hasattr(self, "now"):
            return
        now = self.now
        assert [(place.state, place.how) for place in now.entered] == self.places
        assert {state: list(ways) for state, ways in now.barred.items()} == self.barred
        assert now.checkpoints == self.marks <= 1
        assert now.searches < TURN or self.asked
        assert now.ended == (now.entered[-1].state == STATES[-1])
        assert all(allowed(now, place.state, place.how) for place in now.entered[-1:])
        if now.kind == "practice":
            assert now.state in now.known and self.told.practice
        if now.kind == "improve":
            assert now.ended and now.state in [place.state for place in now.entered[:-1]]
        if now.kind == "run":
            assert not now.ended and now.state == now.entered[-1].state
        if now.checkpoints:
            assert now.entered[-1].turns >= 1


TestMarathons = Marathons.TestCase
TestMarathons.settings = settings(max_examples=40, stateful_step_count=40)


def test_a_place_is_kept_with_its_turns_as_json() -> None:
    now = Standing((Place("title", "a", 2),), barred={"one": ("b",)}, failures={"run title": 3})
    assert TypeAdapter(Standing).validate_json(json.dumps(asdict(now))) == now
