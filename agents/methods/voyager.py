"""OPEN: voyager (arXiv 2305.16291): a curriculum sets tasks, programs do them, and those that do are kept.

Awake it proposes a task, writes a program for it beside skills of the library that fit, sees what came of it,
has a critic judge, and writes a better one if need be. Asleep it asks nothing: it adds what was learned.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agents.benchmarks.base import Episode
from agents.memory.functions import Function
from agents.memory.library import Skill, SkillLibrary
from agents.methods.base import Method, Seat, Sleep, Tools, Trajectory
from agents.methods.voyager_episode import VoyagerEpisode


class Voyager(Method):
    """Learns in programs that it writes while it plays."""

    name: ClassVar[str] = "voyager"
    parallel: ClassVar[bool] = False

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self.library = SkillLibrary()

    def play(self, seat: Seat) -> Trajectory:
        return VoyagerEpisode(self.tools, seat, self.library.copy()).play()

    def memory_text(self, episode: Episode, observation: str) -> str:
        return ""

    def skills_source(self) -> str:
        return self.library.source()

    def sleep(self, batch: Sequence[Trajectory], index: int) -> Sleep:
        diffs, reasons = [], []
        for trajectory in batch:
            for learned in trajectory.learned.get("skills", []):
                function = Function(**learned["function"])
                diff = self.library.add(Skill(function, learned["task"], index))
                if not diff:
                    continue
                diffs.append(diff)
                if function.public:
                    reasons.append(f"episode {trajectory.index}: {function.name} did {learned['task']!r}")
        reason = "\n".join(reasons) or "no program did its task"
        return Sleep(bool(diffs), reason, "\n".join(diffs))

    def dump(self) -> dict[str, Any]:
        return {"library": self.library.to_json()}

    def load(self, state: Mapping[str, Any]) -> None:
        self.library = SkillLibrary.from_json(state["library"])
