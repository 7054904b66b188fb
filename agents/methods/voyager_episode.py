"""OPEN: an episode as voyager plays it: task after task, each with a few programs and a critic's word."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, Field

from agents.core.literals import write_literal
from agents.llm.messages import Message
from agents.llm.reply import Reply
from agents.memory.functions import Function, NoFunction, module_source, read_functions
from agents.memory.library import Skill, SkillLibrary
from agents.memory.trajectory import Ending, Taken, Trajectory, Turn
from agents.methods.answers import Unusable, blocks, read_answer, read_json
from agents.methods.base import Seat, Tools
from agents.methods.serving import Served, view
from agents.methods.trial import load_faults
from agents.prompts.prompts import render, say
from agents.sandbox.allowed import MODULES
from agents.sandbox.host import SkillError
from agents.sandbox.protocol import cut
from harness.files import STRICT, canonical_json

STATE_CHARS = 4_000
"""Of a state's JSON in prompts."""
OUTPUT_CHARS = 2_000
"""Of what a program printed and returned."""

Value = TypeVar("Value")


class Proposal(BaseModel):
    """The curriculum's JSON."""

    model_config = STRICT

    reasoning: str = ""
    task: str = Field(min_length=1, max_length=500)


class Verdict(BaseModel):
    """The critic's JSON."""

    model_config = STRICT

    reasoning: str = ""
    success: bool
    critique: str = ""


class Attempt(NamedTuple):
    """A program and what came of it, as the next prompt tells it."""

    source: str
    """"" where none could be read."""
    feedback: str
    critique: str = ""


class _Over(Exception):
    """No further answer is asked for."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending)
        self.ending: Ending = ending


class VoyagerEpisode:
    """An episode under way. Skills are added to the library it is given, which is its own."""

    def __init__(self, tools: Tools, seat: Seat, library: SkillLibrary) -> None:
        self.tools, self.seat, self.library = tools, seat, library
        self.environment = seat.environment
        self.first = self.environment.reset(seat.episode)
        self.step_limit = tools.benchmark.step_limit(seat.episode.task)
        self.turns: list[Turn] = []
        self.completed: list[str] = []
        self.failed: list[str] = []
        self.learned: list[dict[str, Any]] = []
        self.tokens = {"prompt": 0, "completion": 0}

    def play(self) -> Trajectory:
        """Play from the reset to the end, and close nothing.

        Raises:
            agents.llm.ledger.BudgetSpent: the run cannot afford the next answer.
        """
        environment = self.environment
        try:
            while not environment.done:
                task = self._propose()
                done = self._try(task)
                (self.completed if done else self.failed).append(task)
            ending = self._ending()
        except _Over as over:
            ending = self._ending() if environment.done else over.ending
        learned = {"skills": self.learned, "completed": self.completed, "failed": self.failed}
        return Trajectory(
            episode=self.seat.episode,
            index=self.seat.index,
            goal=environment.goal,
            first_observation=self.first,
            turns=tuple(self.turns),
            score=environment.score,
            total=environment.total,
            success=environment.success,
            steps=environment.steps,
            details=dict(environment.details()),
            ending=ending,
            tokens=self.tokens,
            learned=learned if self.seat.learning else {},
        )

    def _propose(self) -> str:
        """The next task; the episode is over where none can be had."""
        benchmark = self.tools.benchmark
        system = render(
            "voyager_curriculum_system",
            benchmark=benchmark.name,
            title=benchmark.title,
            rules=benchmark.rules(),
        )
        content = render(
            "voyager_curriculum",
            goal=self.environment.goal,
            observation=self.environment.observation,
            state=self._state(),
            completed=self.completed,
            failed=self.failed,
            skills=self.library.public,
            steps_left=self._steps_left(),
        )
        proposal = self._settle(system, content, partial(read_json, model=Proposal))
        if proposal is None:
            raise _Over("gave up")
        return " ".join(proposal.task.split())

    def _try(self, task: str) -> bool:
        """Write programs for a task until one has done it; False where none does."""
        attempt: Attempt | None = None
        for _ in range(self.tools.settings.refinements):
            before = self._state()
            reply = self._ask(self._program_prompt(task, attempt))
            try:
                program = read_answer(reply, self._read_program)
            except Unusable as fault:
                feedback = "\n".join(fault.faults)
                self.turns.append(Turn(reply.text, "", note=feedback, error=str(fault)))
                attempt = Attempt("", feedback)
                continue
            source = module_source(program).partition("\n\n\n")[2].strip()
            turn = self._run(reply, program)
            self.turns.append(turn)
            attempt = Attempt(source, turn.note)
            if turn.error is not None:
                continue
            verdict = self._judge(task, before, turn.note)
            if verdict is not None and verdict.success:
                self._keep(program, task)
                return True
            attempt = Attempt(source, turn.note, verdict.critique if verdict is not None else "")
        return False

    def _read_program(self, text: str) -> list[Function]:
        """The functions of an answer, the one to be run last, once they are loaded."""
        found = blocks(text, "python", "py") or blocks(text, "")
        if not found:
            raise Unusable(say("no_block", language="python"))
        try:
            program = read_functions("\n\n".join(found))
        except NoFunction as fault:
            raise Unusable(str(fault)) from fault
        if not program[-1].public:
            raise Unusable(say("helper_last", name=program[-1].name))
        longest = self.tools.settings.function_chars
        if long := [one.name for one in program if len(one.source) > longest]:
            raise Unusable(say("long_functions", names=long, most=longest))
        known = {name: skill.function for name, skill in self.library.skills.items()}
        together = {**known, **{function.name: function for function in program}}
        if faults := load_faults(program, module_source(together.values()), self.seat.sandbox):
            raise Unusable(*faults)
        return program

    def _run(self, reply: Reply, program: Sequence[Function]) -> Turn:
        name = program[-1].name
        served = Served(self.environment)
        output, error, trace = "", None, ""
        try:
            outcome = self.seat.sandbox.call(name, (), {}, served, view(self.environment))
            output = outcome.output
            if outcome.value is not None:
                output = f"{output}\n{write_literal(outcome.value)}"
        except SkillError as failure:
            output, error, trace = failure.output, f"{failure.kind}: {failure.message}", failure.trace
        feedback = render(
            "voyager_feedback",
            name=name,
            steps=served.taken,
            output=cut(output.strip(), OUTPUT_CHARS),
            error=error or "",
            trace=trace,
            over=self.environment.done,
        )
        taken: tuple[Taken, ...] = tuple(served.taken)
        return Turn(reply.text, f"skill {name}()", taken, feedback, name, error)

    def _judge(self, task: str, before: str, feedback: str) -> Verdict | None:
        """The critic's word; None where it cannot be read. An episode that is over is judged too."""
        benchmark = self.tools.benchmark
        system = render(
            "voyager_critic_system",
            benchmark=benchmark.name,
            title=benchmark.title,
            rules=benchmark.rules(),
        )
        content = render(
            "voyager_critic",
            task=task,
            before=before,
            after=self._state(),
            observation=self.environment.observation,
            feedback=feedback,
        )
        return self._settle(system, content, partial(read_json, model=Verdict), at_end=True)

    def _keep(self, program: Sequence[Function], task: str) -> None:
        """Add a program that did its task to the library, unless the memory is frozen or the library full."""
        names = {*self.library.public, *(function.name for function in program if function.public)}
        if not self.seat.learning or len(names) > self.tools.settings.functions:
            return
        for function in program:
            if self.library.add(Skill(function, task, 0)):
                self.learned.append({"function": function._asdict(), "task": task})

    def _settle(
        self, system: str, content: str, read: Callable[[str], Value], at_end: bool = False
    ) -> Value | None:
        """Ask for something, and once more where the answer cannot be used; each answer is a turn."""
        messages = [Message("system", system), Message("user", content)]
        for _ in range(2):
            reply = self._ask(messages, at_end)
            try:
                value = read_answer(reply, read)
            except Unusable as fault:
                self.turns.append(Turn(reply.text, "", note="\n".join(fault.faults), error=str(fault)))
                told = render("faulty", faults=fault.faults)
                messages += [Message("assistant", reply.text or say("no_answer")), Message("user", told)]
            else:
                self.turns.append(Turn(reply.text, ""))
                return value
        return None

    def _ask(self, messages: Sequence[Message], at_end: bool = False) -> Reply:
        """Ask the model, if the episode has room for it; `at_end`: though the environment may be done."""
        seat = self.seat
        if self.environment.done and not at_end:
            raise _Over(self._ending())
        if len(self.turns) >= seat.turn_limit:
            raise _Over("turn limit")
        if seat.token_limit is not None and sum(self.tokens.values()) >= seat.token_limit:
            raise _Over("tokens")
        label = f"{seat.label}/{len(self.turns):03d}"
        reply = self.tools.model.ask(messages, label=label, max_tokens=self.tools.settings.answer_tokens)
        self.tokens["prompt"] += reply.usage.prompt or 0
        self.tokens["completion"] += reply.usage.completion or 0
        return reply

    def _program_prompt(self, task: str, attempt: Attempt | None) -> list[Message]:
        benchmark, settings = self.tools.benchmark, self.tools.settings
        environment = self.environment
        skills = self.library.retrieve(f"{task} {environment.observation}", settings.retrieve)
        values: Mapping[str, Any] = {
            "task": task,
            "skills": [skill.function for skill in skills],
            "goal": environment.goal,
            "observation": environment.observation,
            "state": self._state(),
            "attempt": attempt,
            "steps_left": self._steps_left(),
        }
        system = render(
            "voyager_code_system",
            benchmark=benchmark.name,
            title=benchmark.title,
            rules=benchmark.rules(),
            state_help=benchmark.state_help(),
            modules=MODULES,
            longest=settings.function_chars,
            steps=self.seat.sandbox.limits.steps,
        )
        return [Message("system", system), Message("user", render("voyager_code", **values))]

    def _state(self) -> str:
        return cut(canonical_json(self.environment.state()), STATE_CHARS)

    def _ending(self) -> Ending:
        """How the environment ended the episode."""
        if self.environment.success:
            return "success"
        return "step limit" if self.environment.steps >= self.step_limit else "failure"

    def _steps_left(self) -> int:
        return max(0, self.step_limit - self.environment.steps)
