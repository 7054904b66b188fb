"""OPEN: episodes as text for prompts, within a number of characters."""

from collections import deque
from collections.abc import Sequence

from agents.memory.trajectory import Trajectory, Turn
from agents.prompts.prompts import render

LONGEST = 400  # characters of a thought, an observation or a note
LEAST = 800  # characters of an episode


def describe_episodes(batch: Sequence[Trajectory], most: int) -> list[str]:
    """Texts of episodes, in order, of about `most` characters together; the oldest may be left out."""
    texts: deque[str] = deque()
    for place in reversed(range(len(batch))):
        if most < LEAST and texts:
            break
        text = describe_episode(batch[place], max(LEAST, most // (place + 1)))
        texts.appendleft(text)
        most -= len(text)
    return list(texts)


def describe_episode(trajectory: Trajectory, most: int) -> str:
    """An episode in about `most` characters: as many of its last and first turns as fit."""
    turns = [_describe_turn(number, turn) for number, turn in enumerate(trajectory.turns, 1)]
    first: list[str] = []
    last: deque[str] = deque()
    while turns:
        at_end = len(last) <= 2 * len(first)
        most -= len(turns[-1 if at_end else 0]) + 1
        if most < 0 and last:
            break
        if at_end:
            last.appendleft(turns.pop())
        else:
            first.append(turns.pop(0))
    return render(
        "episode",
        trajectory=trajectory,
        goal=shorten(trajectory.goal),
        observation=shorten(trajectory.first_observation),
        first=first,
        left_out=len(turns),
        last=list(last),
    )


def shorten(text: str, most: int = LONGEST) -> str:
    """A text in one line, without its middle where it is longer than `most` characters."""
    text = " ".join(text.split())
    half = (most - 5) // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def _describe_turn(number: int, turn: Turn) -> str:
    thought = turn.text.split("Action:", 1)[0].strip().removeprefix("Thought:") if turn.action else turn.text
    return render(
        "episode_turn",
        number=number,
        turn=turn,
        thought=shorten(thought),
        taken=shorten("; ".join(step.action for step in turn.steps)),
        note=shorten(turn.note),
        observation=shorten(turn.steps[-1].observation) if turn.steps else "",
        reward=sum(step.reward for step in turn.steps),
    )
