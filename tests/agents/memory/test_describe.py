"""Episodes as text: what is said, and within how many characters."""

from hypothesis import given
from hypothesis import strategies as st

from agents.benchmarks.base import Episode
from agents.memory.describe import LEAST, describe_episode, describe_episodes, shorten
from agents.memory.trajectory import Taken, Trajectory, Turn


def episode(turns: int, length: int = 5) -> Trajectory:
    told = tuple(
        Turn(
            f"Thought: {'t' * length}\nAction: go {number}",
            f"go {number}",
            (Taken(f"go {number}", "seen" * length, 0.0),),
        )
        for number in range(1, turns + 1)
    )
    return Trajectory(
        Episode("goto", 1), 12, "find\nit", "a wall", told, 0.5, 0.5, False, turns, {}, "turn limit", {}
    )


def test_an_episode_in_full() -> None:
    turns = (
        Turn("Thought: left, then\nAction: turn left", "turn left", (Taken("turn left", "a ball", 0.0),)),
        Turn("I will not.", "", note="Your answer could not be read.", error="no action"),
        Turn(
            "Thought: go\nAction: skill go(2)",
            "skill go(2)",
            (Taken("go forward", "b", 0.25), Taken("go forward", "c", 0.5)),
            "It returned True",
            "go",
        ),
        Turn("Action: skill x()", "skill x()", (), "It failed: missing", "x", "missing"),
    )
    trajectory = Trajectory(
        Episode("goto", 1), 12, "find\nit", "a  wall", turns, 0.5, 0.75, False, 3, {}, "failure", {}
    )
    assert describe_episode(trajectory, 5_000) == (
        "Episode 12 (goto): failure, score 0.50, 3 steps, 4 answers\n"
        "Goal: find it\n"
        "At the start: a wall\n"
        "1. left, then => turn left -> a ball\n"
        "2. I will not. => (no action) FAILED (Your answer could not be read.)\n"
        "3. go => skill go(2) [2 steps: go forward; go forward] (It returned True) -> c (reward 0.75)\n"
        "4. => skill x() [0 steps] FAILED (It failed: missing)"
    )


def test_the_middle_of_a_long_episode_is_left_out() -> None:
    text = describe_episode(episode(100), 900)
    numbers = [int(line.split(".")[0]) for line in text.splitlines() if line[0].isdigit()]
    gap = next(place for place in range(len(numbers)) if numbers[place] != place + 1)
    assert gap >= 3
    assert numbers[gap:] == list(range(numbers[gap], 101))
    assert f"({100 - len(numbers)} answers left out)" in text
    assert len(text) < 1_200


def test_the_last_turn_is_always_told() -> None:
    text = describe_episode(episode(3, 300), 1)
    assert "3. " in text
    assert "(2 answers left out)" in text


def test_the_oldest_episodes_are_left_out() -> None:
    batch = [episode(50) for _ in range(20)]
    texts = describe_episodes(batch, 4_000)
    assert 2 <= len(texts) < 20
    assert sum(map(len, texts)) < 4_000 + 2 * LEAST
    assert len(describe_episodes(batch, 100_000)) == 20
    assert describe_episodes([], 4_000) == []
    assert len(describe_episodes(batch, 1)) == 1


def test_shortening() -> None:
    assert shorten(" a\n\nb ") == "a b"
    assert shorten("x" * 400) == "x" * 400
    assert shorten("x" * 200 + "y" * 201) == "x" * 197 + " ... " + "y" * 197


@given(st.integers(0, 60), st.integers(1, 400), st.integers(1, 5_000))
def test_an_episode_keeps_to_its_characters(turns: int, length: int, most: int) -> None:
    text = describe_episode(episode(turns, length), most)
    longest = max([0, *map(len, text.splitlines())])
    assert len(text) <= most + longest + 200
