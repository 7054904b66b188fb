"""OPEN: opo: after every few episodes the model writes the strategy guide anew that the agent reads awake."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agents.benchmarks.base import Episode
from agents.memory.describe import describe_episodes
from agents.memory.experience import Experience
from agents.memory.guide import StrategyGuide
from agents.methods.answers import Unusable, between
from agents.methods.base import Method, Sleep, Tools, Trajectory
from agents.methods.conversation import Allowance, Conversation, SleepSpent, settle
from agents.prompts.prompts import render, say


class Opo(Method):
    """Learns in prose."""

    name: ClassVar[str] = "opo"

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self.guide = StrategyGuide()
        self.experience = Experience(tools.settings.experience)

    def memory_text(self, episode: Episode, observation: str) -> str:
        return render("guide", guide=self.guide.text) if self.guide.text else ""

    def skills_source(self) -> str:
        return ""

    def sleep(self, batch: Sequence[Trajectory], index: int) -> Sleep:
        settings, benchmark = self.tools.settings, self.tools.benchmark
        system = render(
            "opo_system",
            benchmark=benchmark.name,
            title=benchmark.title,
            rules=benchmark.rules(),
            longest=settings.guide_chars,
        )
        experience = self.experience.extended(batch)
        episodes = describe_episodes(batch, settings.experience_chars)
        content = render(
            "opo",
            guide=self.guide.text,
            tasks=experience.tasks(),
            episodes=episodes,
            left_out=len(batch) - len(episodes),
        )
        conversation = Conversation(self.tools, f"sleep/{index}", system, Allowance(settings.sleep_tokens))
        errors: list[str] = []
        written, kept = None, "both answers were unusable, so the guide stays as it was"
        try:
            written = settle(conversation, content, self._read, errors)
        except SleepSpent as spent:
            kept = f"{spent}, so the guide stays as it was"
        self.experience = experience
        if written is None:
            return Sleep(False, kept, "", tuple(errors), tuple(conversation.exchanges))
        reason, text = written
        diff = self.guide.rewrite(text, reason, index)
        return Sleep(bool(diff), reason, diff, tuple(errors), tuple(conversation.exchanges))

    def dump(self) -> dict[str, Any]:
        return {"guide": self.guide.to_json(), "experience": self.experience.to_json()}

    def load(self, state: Mapping[str, Any]) -> None:
        guide = StrategyGuide.from_json(state["guide"])
        self.experience = Experience.from_json(state["experience"], self.tools.settings.experience)
        self.guide = guide

    def _read(self, text: str) -> tuple[str, str]:
        """(reason, guide) of an answer."""
        guide, longest = between(text, "guide"), self.tools.settings.guide_chars
        if len(guide) > longest:
            raise Unusable(say("long_guide", characters=len(guide), most=longest))
        return between(text, "reason"), guide
