"""OPEN: an episode as voyager plays it: task after task, each with a few programs and a critic's word."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from agents.core.literals import write_literal
from agents.llm.messages import Message
from agents.llm.reply import Reply
from agents.memory.functions import Function, NoFunction, module_source, read_functions
from agents.memory.library import Skill, SkillLibrary
from agents.memory.trajectory import Ending, Trajectory, Turn
from agents.methods.answers import Unusable, blocks, read_answer, read_json
from agents.methods.base import Seat, Tools
from agents.methods.serving import Served, ending_of, trajectory_of, view
from agents.methods.trial import load_faults
from agents.methods.voyager_prompts import (
    Attempt,
    Proposal,
    Verdict,
    ask_for_program,
    ask_for_task,
    ask_for_verdict,
    state_text,
)
from agents.prompts.prompts import render, say
from agents.sandbox.host import SkillError
from agents.sandbox.protocol import cut

OUTPUT_CHARS = 2_000
"""Of what a program printed and returned."""

Value = TypeVar("Value")


class _Over(Exception):
    """No further answer is asked for."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending)
        self.ending: Ending = ending


class VoyagerEpisode:
    """An episode under way. Skills are added to the library it is given, which is its own."""

    def __init__(self, tools: Tools, seat: Seat, library: SkillLibrary) -> None:
        self.tools, self.seat, self.library = tools, seat, library
        self.benchmark, self.environment = tools.benchmark, seat.environment
        self.first = self.environment.reset(seat.episode)
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
        try:
            while True:
                task = self._propose()
                done = self._try(task)
                (self.completed if done else self.failed).append(task)
        except _Over as over:
            ending = over.ending
        learned = {"skills": self.learned, "completed": self.completed, "failed": self.failed}
        return trajectory_of(
            self.seat, self.first, self.turns, ending, self.tokens, learned if self.seat.learning else {}
        )

    # ---- a task ----------------------------------------------------------------------------------------

    def _propose(self) -> str:
        """The next task; the episode is over where none can be had."""
        messages = ask_for_task(
            self.benchmark,
            self.environment,
            completed=self.completed,
            failed=self.failed,
            skills=self.library.public,
        )
        proposal = self._settle(messages, partial(read_json, model=Proposal))
        if proposal is None:
            raise _Over("gave up")
        return " ".join(proposal.task.split())

    def _try(self, task: str) -> bool:
        """Write programs for a task until one has done it; False where none does."""
        attempt: Attempt | None = None
        for _ in range(self.tools.settings.refinements):
            before = state_text(self.environment)
            program, attempt, ran = self._attempt(task, attempt)
            if not ran:
                continue
            verdict = self._judge(task, before, attempt.feedback)
            if verdict is not None and verdict.success:
                self._keep(program, task)
                return True
            attempt = attempt._replace(critique=verdict.critique if verdict is not None else "")
        return False

    def _attempt(self, task: str, last: Attempt | None) -> tuple[list[Function], Attempt, bool]:
        """Have a program written, and run it. Returns it, what came of it, and whether it ran to its end."""
        settings, environment = self.tools.settings, self.environment
        messages = ask_for_program(
            self.benchmark,
            environment,
            task=task,
            skills=self.library.retrieve(f"{task} {environment.observation}", settings.retrieve),
            attempt=last,
            longest=settings.function_chars,
            steps=self.seat.sandbox.limits.steps,
        )
        reply = self._ask(messages)
        try:
            program = read_answer(reply, self._read_program)
        except Unusable as fault:
            feedback = "\n".join(fault.faults)
            self.turns.append(Turn(reply.text, "", note=feedback, error=str(fault)))
            return [], Attempt("", feedback), False
        turn = self._run(reply, program)
        self.turns.append(turn)
        source = "\n\n\n".join(function.source for function in program)
        return program, Attempt(source, turn.note), turn.error is None

    def _keep(self, program: Sequence[Function], task: str) -> None:
        """Add a program that did its task to the library, unless the memory is frozen or the library full."""
        names = {*self.library.public, *(function.name for function in program if function.public)}
        if not self.seat.learning or len(names) > self.tools.settings.functions:
            return
        for function in program:
            if self.library.add(Skill(function, task, 0)):
                self.learned.append({"function": function._asdict(), "task": task})

    # ---- a program -------------------------------------------------------------------------------------

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
        error, trace = None, ""
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
        return Turn(reply.text, f"skill {name}()", tuple(served.taken), feedback, name, error)

    def _judge(self, task: str, before: str, feedback: str) -> Verdict | None:
        """The critic's word; None where it cannot be read. An episode that is over is judged too."""
        messages = ask_for_verdict(
            self.benchmark, self.environment, task=task, before=before, feedback=feedback
        )
        return self._settle(messages, partial(read_json, model=Verdict), at_end=True)

    # ---- answers ---------------------------------------------------------------------------------------

    def _settle(
        self, messages: list[Message], read: Callable[[str], Value], at_end: bool = False
    ) -> Value | None:
        """Ask for something, and once more where the answer cannot be used; each answer is a turn."""
        for _ in range(2):
            reply = self._ask(messages, at_end)
            try:
                value = read_answer(reply, read)
            except Unusable as fault:
                self.turns.append(Turn(reply.text, "", note="\n".join(fault.faults), error=str(fault)))
                told = render("faulty", faults=fault.faults)
                answered = Message("assistant", reply.text or say("no_answer"))
                messages = [*messages, answered, Message("user", told)]
            else:
                self.turns.append(Turn(reply.text, ""))
                return value
        return None

    def _ask(self, messages: Sequence[Message], at_end: bool = False) -> Reply:
        """Ask the model, if the episode has room for it; `at_end`: though the environment may be done."""
        seat, done = self.seat, ending_of(self.benchmark, self.environment)
        if done is not None and not at_end:
            raise _Over(done)
        if len(self.turns) >= seat.turn_limit:
            raise _Over(done or "turn limit")
        if seat.token_limit is not None and sum(self.tokens.values()) >= seat.token_limit:
            raise _Over(done or "tokens")
        label = f"{seat.label}/{len(self.turns):03d}"
        reply = self.tools.model.ask(messages, label=label, max_tokens=self.tools.settings.answer_tokens)
        self.tokens["prompt"] += reply.usage.prompt or 0
        self.tokens["completion"] += reply.usage.completion or 0
        return reply
