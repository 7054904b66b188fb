"""OPEN: asi, after agent skill induction (arXiv 2504.06821): skills are found in episodes that went well.

A skill is added for ever. With `verify`, the episode is first played again with it, in a new environment.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from agents.benchmarks.base import Environment, Episode
from agents.memory.describe import describe_episode
from agents.memory.functions import Function, NoFunction, module_source, read_functions
from agents.memory.library import Skill, SkillLibrary
from agents.methods.answers import Unusable, read_json
from agents.methods.base import Exchange, Method, Sleep, Tools, Trajectory
from agents.methods.conversation import Allowance, Conversation, SleepSpent, settle
from agents.methods.trial import load_faults, practise
from agents.prompts.prompts import render, say
from agents.sandbox.allowed import MODULES
from agents.sandbox.host import Sandbox
from harness.files import STRICT


class Induced(BaseModel):
    """A skill, as the model writes it in JSON."""

    model_config = STRICT

    name: str
    source: str | list[str]


class Induction(BaseModel):
    """The JSON that is answered of an episode."""

    model_config = STRICT

    reason: str = Field(min_length=1)
    skills: list[Induced]
    replay: list[str] = []


class Asi(Method):
    """Learns in functions that it never changes."""

    name: ClassVar[str] = "asi"

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self.library = SkillLibrary()

    def memory_text(self, episode: Episode, observation: str) -> str:
        functions = [skill.function for skill in self.library.skills.values()]
        return render("skills", functions=functions) if functions else ""

    def skills_source(self) -> str:
        return self.library.source()

    def sleep(self, batch: Sequence[Trajectory], index: int) -> Sleep:
        with ExitStack() as stack:
            return _Induction(self, index, stack).sleep(batch)

    def dump(self) -> dict[str, Any]:
        return {"library": self.library.to_json()}

    def load(self, state: Mapping[str, Any]) -> None:
        self.library = SkillLibrary.from_json(state["library"])


class _Induction:
    """One sleep: successful episodes in turn, each with the skills that the one before left."""

    def __init__(self, method: Asi, index: int, stack: ExitStack) -> None:
        self.method, self.tools, self.index = method, method.tools, index
        self.library = method.library.copy()
        self.allowance = Allowance(self.tools.settings.sleep_tokens)
        self.stack = stack
        self.sandbox: Sandbox = stack.enter_context(self.tools.sandbox())
        self.environment: Environment | None = None
        self.errors: list[str] = []
        self.exchanges: list[Exchange] = []
        self.reasons: dict[str, list[int]] = {}
        """Why skills were added or not -> the episodes of which this was said."""
        self.diffs: list[str] = []
        self.steps = 0

    def sleep(self, batch: Sequence[Trajectory]) -> Sleep:
        successful = [trajectory for trajectory in batch if trajectory.success]
        if not successful:
            return Sleep(False, "no episode reached its goal, so there was nothing to find skills in")
        for trajectory in successful:
            try:
                self._induce(trajectory)
            except SleepSpent as spent:
                self.reasons[f"{spent}, so later ones were not looked at"] = []
                break
        self.method.library = self.library
        errors, exchanges = tuple(self.errors), tuple(self.exchanges)
        reason = "\n".join(_of_episodes(text, indices) for text, indices in self.reasons.items())
        diff = "\n".join(self.diffs)
        return Sleep(bool(self.diffs), reason, diff, errors, exchanges, self.steps)

    def _induce(self, trajectory: Trajectory) -> None:
        """Find skills in one episode."""
        label = f"sleep/{self.index}/{trajectory.index:06d}"
        conversation = Conversation(self.tools, label, self._system(), self.allowance)
        content = render(
            "asi",
            functions=[skill.function for skill in self.library.skills.values()],
            episode=describe_episode(trajectory, self.tools.settings.experience_chars),
            actions=trajectory.actions,
        )
        read = partial(self._read, trajectory=trajectory)
        try:
            found = settle(conversation, content, read, self.errors)
        finally:
            self.exchanges += conversation.exchanges
        unusable = "both answers were unusable, so no skill was added"
        reason, functions = (unusable, []) if found is None else found
        self.reasons.setdefault(reason, []).append(trajectory.index)
        for function in functions:
            self.diffs.append(self.library.add(Skill(function, trajectory.goal, self.index)))

    def _read(self, text: str, trajectory: Trajectory) -> tuple[str, list[Function]]:
        """The reason and the skills of an answer, once nothing speaks against them."""
        answer = read_json(text, Induction)
        functions = [function for induced in answer.skills for function in self._functions(induced)]
        names = [function.name for function in functions]
        if twice := {name for name in names if names.count(name) > 1}:
            raise Unusable(say("twice", names=sorted(twice)))
        most, known = self.tools.settings.functions, len(self.library.public)
        if known + sum(function.public for function in functions) > most:
            raise Unusable(say("full_library", count=known, most=most))
        if functions:
            self._try(functions, answer.replay, trajectory)
        return answer.reason, functions

    def _functions(self, induced: Induced) -> list[Function]:
        """The function of a skill, after its helpers if it has any."""
        source = "\n".join(induced.source) if isinstance(induced.source, list) else induced.source
        name, longest = induced.name[:60], self.tools.settings.function_chars
        if len(source) > longest:
            fault = say("long_source", characters=len(source), most=longest)
            raise Unusable(say("faulty_skill", name=name, fault=fault))
        try:
            functions = read_functions(source)
        except NoFunction as error:
            raise Unusable(say("faulty_skill", name=name, fault=str(error))) from error
        public = [function.name for function in functions if function.public]
        if public != [induced.name]:
            fault = say("other_functions", names=public, expected=name)
            raise Unusable(say("faulty_skill", name=name, fault=fault))
        if known := [function.name for function in functions if function.name in self.library.skills]:
            raise Unusable(say("known_skills", names=known))
        return functions

    def _try(self, functions: Sequence[Function], replay: Sequence[str], trajectory: Trajectory) -> None:
        """Raises Unusable where the functions do not load, or fail the replay that `verify` asks for."""
        known = [skill.function for skill in self.library.skills.values()]
        if faults := load_faults(functions, module_source([*known, *functions]), self.sandbox):
            raise Unusable(*faults)
        if not self.tools.settings.verify:
            return
        if self.environment is None:
            self.environment = self.tools.benchmark.make()
            self.stack.callback(self.environment.close)
        names = [function.name for function in [*known, *functions] if function.public]
        practice = practise(self.environment, self.sandbox, trajectory.episode, replay, names)
        self.steps += practice.steps
        faults = list(practice.faults)
        if not faults and not practice.success:
            faults.append(say("no_goal", observation=self.environment.observation))
        new = [function.name for function in functions if function.public]
        if not faults and (idle := [name for name in new if name not in practice.called]):
            faults.append(say("not_called", names=idle))
        if faults:
            raise Unusable(*faults)

    def _system(self) -> str:
        settings, benchmark = self.tools.settings, self.tools.benchmark
        return render(
            "asi_system",
            benchmark=benchmark.name,
            title=benchmark.title,
            rules=benchmark.rules(),
            state_help=benchmark.state_help(),
            modules=MODULES,
            longest=settings.function_chars,
            steps=self.sandbox.limits.steps,
            verify=settings.verify,
        )


def _of_episodes(text: str, indices: Sequence[int]) -> str:
    """A reason after the episodes that it was given for."""
    if not indices:
        return text
    return f"episode{'s' if len(indices) > 1 else ''} {', '.join(map(str, indices))}: {text}"
