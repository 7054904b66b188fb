"""OPEN: ReAct (arXiv 2210.03629): the agent reasons and acts, and learns nothing from episode to episode."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agents.benchmarks.base import Episode
from agents.methods.base import Method, Sleep, Trajectory


class React(Method):
    """No memory and no sleep."""

    name: ClassVar[str] = "react"

    def memory_text(self, episode: Episode, observation: str) -> str:
        return ""

    def skills_source(self) -> str:
        return ""

    def sleep(self, batch: Sequence[Trajectory], index: int) -> Sleep:
        return Sleep(changed=False, reason="react keeps no memory")

    def dump(self) -> dict[str, Any]:
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        if state:
            raise ValueError(f"react keeps no memory, but {', '.join(state)} was saved")
