"""Episodes side by side: in order whoever is quick, and what fails hides nothing that came before it."""

import threading
import time
from collections.abc import Sequence

import pytest
from corridor import Corridor

from agents.benchmarks.base import Episode
from agents.core.crew import Crew, Line, Stopped, Terms
from agents.llm.messages import Message
from agents.llm.reply import Reply
from agents.memory.trajectory import Trajectory
from agents.methods.base import MethodSettings, Seat, Tools
from agents.methods.react import React
from agents.sandbox.host import Sandbox

EPISODES = [Episode("short", 3 + place % 3) for place in range(9)]


class Silent:
    def ask(self, messages: Sequence[Message], *, label: str, max_tokens: int | None = None) -> Reply:
        raise AssertionError("nothing is asked")


class Timed(React):
    """Plays without a model, the first episodes slowest; fails where it is told."""

    failing: frozenset[int] = frozenset()
    broken = 0
    together = 0
    most = 0
    meeting: threading.Barrier | None = None
    """Where as many episodes as play at a time wait for each other."""
    seats: list[Seat]

    def play(self, seat: Seat) -> Trajectory:
        with LOCK:
            self.seats.append(seat)
            self.together += 1
            self.most = max(self.most, self.together)
        if self.meeting is not None:
            self.meeting.wait(60)
        time.sleep(0.01 * (10 - seat.index % 10))
        with LOCK:
            self.together -= 1
        if seat.index in self.failing:
            raise ValueError(f"episode {seat.index}")
        seat.environment.reset(seat.episode)
        return Trajectory(
            seat.episode,
            seat.index,
            "",
            "",
            (),
            0.0,
            0.0,
            False,
            0,
            {},
            "failure",
            {"prompt": 0, "completion": 0},
        )


LOCK = threading.Lock()


def crew(parallel: int) -> tuple[Crew, Corridor, Timed]:
    benchmark = Corridor()
    terms = Terms(turn_limit=5, history=2, token_limit=99, parallel=parallel)
    tools = Tools(benchmark, Silent(), Sandbox, MethodSettings.model_validate({}), 0, print)
    method = Timed(tools)
    method.seats = []
    return Crew(benchmark, Sandbox, terms), benchmark, method


@pytest.mark.parametrize("parallel", [1, 3, 20])
def test_trajectories_come_in_order(parallel: int) -> None:
    playing, benchmark, method = crew(parallel)
    together = min(parallel, len(EPISODES))
    method.meeting = threading.Barrier(together)
    played = list(playing.play(method, EPISODES, 10, learning=True))
    assert [trajectory.index for trajectory, _ in played] == list(range(10, 19))
    assert [trajectory.episode for trajectory, _ in played] == EPISODES
    assert all(seconds > 0 for _, seconds in played)
    assert method.most == together
    assert len(benchmark.made) <= parallel
    method.meeting = None
    list(playing.play(method, EPISODES[:2], learning=False))
    assert len(benchmark.made) <= parallel


def test_seats_say_what_is_played_and_how() -> None:
    playing, _, method = crew(2)
    list(playing.play(method, EPISODES[:2], 4, learning=True))
    list(playing.play(method, EPISODES[:1], learning=False))
    assert sorted(seat.label for seat in method.seats) == ["eval/000000", "wake/000004", "wake/000005"]
    assert {(seat.turn_limit, seat.history, seat.token_limit) for seat in method.seats} == {(5, 2, 99)}
    assert len({id(seat.sandbox) for seat in method.seats}) == 3
    assert [seat.learning for seat in method.seats].count(False) == 1


@pytest.mark.parametrize(
    ("failing", "parallel", "left"), [({4, 6}, 3, 4), ({0}, 1, 0), ({8}, 9, 8), ({1, 2}, 9, 1)]
)
def test_those_before_a_failure_still_come(failing: set[int], parallel: int, left: int) -> None:
    playing, _, method = crew(parallel)
    method.failing = frozenset(failing)
    played = []
    with pytest.raises(ValueError, match=f"episode {min(failing)}"):
        for trajectory, _ in playing.play(method, EPISODES, learning=True):
            played.append(trajectory.index)
    assert played == list(range(left))
    assert len(method.seats) <= left + 2 * parallel


def test_an_environment_that_cannot_be_made_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    playing, benchmark, method = crew(3)

    def fail() -> None:
        raise OSError("no Java")

    monkeypatch.setattr(benchmark, "make", fail)
    with pytest.raises(OSError, match="no Java"):
        list(playing.play(method, EPISODES, learning=True))


def test_nothing_begins_once_it_is_stopped() -> None:
    playing, _, method = crew(2)
    play = playing.play(method, EPISODES, learning=True)
    next(play)
    playing.stop()
    assert len(method.seats) < 9
    assert len(list(play)) < 8


def test_a_line_that_is_cut_asks_nothing() -> None:
    line = Line(Silent())  # type: ignore[arg-type]
    line.cut()
    with pytest.raises(Stopped):
        line.ask([], label="wake/0/0")
