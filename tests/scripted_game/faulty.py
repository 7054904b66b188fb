"""Packages of the scripted game whose functions fail once the runner has come some way."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from retro.packages import Ram, State
from scripted_game import Hopper

WAY = 8


class Raises(Hopper):
    """`cell` divides by 0."""

    def cell(self, ram: Ram) -> tuple[int, ...]:
        return (1 // (ram.x < WAY), *super().cell(ram))  # here


class Leaves(Hopper):
    """`cell` ends the process, in order."""

    def cell(self, ram: Ram) -> tuple[int, ...]:
        return super().cell(ram) if ram.x < WAY else exit(0)


class Halves(Hopper):
    """A cell holds what is no whole number."""

    def cell(self, ram: Ram) -> Any:
        return (ram.x / 2 if ram.x >= WAY else ram.x, ram.y)


class Widens(Hopper):
    """Cells have different lengths."""

    def cell(self, ram: Ram) -> tuple[int, ...]:
        return (ram.x,) * (2 if ram.x < WAY else 3)


def _states(reward: float) -> list[State]:
    return [
        replace(state, reward=lambda ram: float(ram.x) if ram.x < WAY else reward) for state in Hopper.states
    ]


class NoNumber(Hopper):
    """A reward is no number."""

    states: ClassVar[Sequence[State]] = _states(float("nan"))


class TooLarge(Hopper):
    """A reward is larger than any floating-point number."""

    states: ClassVar[Sequence[State]] = _states(10**400)
