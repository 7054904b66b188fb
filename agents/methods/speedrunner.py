"""OPEN: speedrunner: after every few episodes the model edits a codebook of functions that the agent calls.

Before it edits, it may run programs over what was lived through and beside the functions of the codebook.
speedrunner_no_cl does the same without running programs; the name alone makes the difference.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from agents.benchmarks.base import Episode
from agents.core.literals import write_literal
from agents.memory.codebook import Codebook, Draft, Edit
from agents.memory.describe import describe_episodes
from agents.memory.experience import Experience, uses
from agents.methods.answers import Unusable, blocks, read_answer, read_json
from agents.methods.base import Method, Sleep, Tools, Trajectory
from agents.methods.conversation import Allowance, Conversation, SleepSpent
from agents.methods.trial import load_faults
from agents.prompts.prompts import render, say
from agents.sandbox.allowed import MODULES
from agents.sandbox.host import Sandbox, SkillError
from agents.sandbox.protocol import cut
from harness.files import STRICT

DATA_CHARS = 150_000
"""Of the JSON text of the episodes that programs see."""
OUTPUT_CHARS = 6_000
"""Of a program's output that the model is shown."""
VALUE_CHARS = 2_000


class Edits(BaseModel):
    """The JSON that ends a sleep."""

    model_config = STRICT

    reason: str = Field(min_length=1)
    edits: list[Edit]


class SpeedRunner(Method):
    """Learns in functions, and runs programs asleep."""

    name: ClassVar[str] = "speedrunner"

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self.codebook = Codebook()
        self.experience = Experience(tools.settings.experience)

    @property
    def runs_programs(self) -> bool:
        """Whether programs are run asleep."""
        return self.name == "speedrunner"

    def memory_text(self, episode: Episode, observation: str) -> str:
        functions = list(self.codebook.functions.values())
        return render("skills", functions=functions) if functions else ""

    def skills_source(self) -> str:
        return self.codebook.source()

    def sleep(self, batch: Sequence[Trajectory], index: int) -> Sleep:
        experience = self.experience.extended(batch)
        allowance = Allowance(self.tools.settings.sleep_tokens)
        errors: list[str] = []
        with self.tools.sandbox() as sandbox:
            system = self._system(sandbox.limits.steps)
            conversation = Conversation(self.tools, f"sleep/{index}", system, allowance)
            found = self._work(conversation, sandbox, experience, batch, errors)
        self.experience = experience
        if isinstance(found, str):
            reason, diff = f"{found}, so the codebook stays as it was", ""
        else:
            reason, draft = found
            diff = self.codebook.commit(draft, reason, index)
        return Sleep(bool(diff), reason, diff, tuple(errors), tuple(conversation.exchanges))

    def dump(self) -> dict[str, Any]:
        return {"codebook": self.codebook.to_json(), "experience": self.experience.to_json()}

    def load(self, state: Mapping[str, Any]) -> None:
        codebook = Codebook.from_json(state["codebook"])
        self.experience = Experience.from_json(state["experience"], self.tools.settings.experience)
        self.codebook = codebook

    # ---- a sleep ---------------------------------------------------------------------------------------

    def _work(
        self,
        conversation: Conversation,
        sandbox: Sandbox,
        experience: Experience,
        batch: Sequence[Trajectory],
        errors: list[str],
    ) -> tuple[str, Draft] | str:
        """The reason for edits, and what they lead to; or why there are none."""
        data = {"episodes": experience.data(DATA_CHARS)}
        self._load(sandbox)
        programs = self.tools.settings.sleep_turns - 1 if self.runs_programs else 0
        faulty = False
        content = self._user(experience, batch, programs > 0)
        while True:
            may_run = programs > 0 and conversation.fits(2, len(content))
            if programs and not may_run:
                content = f"{content}\n\n{render('only_edits')}"
                programs = 0
            try:
                reply = conversation.ask(content)
                answer = read_answer(reply, partial(self._read, may_run=may_run, sandbox=sandbox))
            except SleepSpent as spent:
                return str(spent)
            except Unusable as fault:
                errors += fault.faults
                if faulty:
                    return "a second answer was unusable"
                faulty = True
                content = render("faulty", faults=fault.faults)
                continue
            if not isinstance(answer, str):
                return answer
            programs -= 1
            content = self._run(answer, sandbox, data, programs == 0)

    def _load(self, sandbox: Sandbox) -> None:
        if source := self.codebook.source():
            sandbox.load(source)

    def _read(self, text: str, may_run: bool, sandbox: Sandbox) -> tuple[str, Draft] | str:
        """What an answer holds: the reason for edits and what they lead to, or a program."""
        programs = blocks(text, "python", "py")
        if programs and not blocks(text, "json"):
            if not may_run:
                raise Unusable(say("no_program", any_more=self.runs_programs))
            return "\n".join(programs)
        written = read_json(text, Edits)
        settings = self.tools.settings
        draft = self.codebook.draft(written.edits, settings.functions, settings.function_chars)
        if draft.faults:
            raise Unusable(*draft.faults)
        known = self.codebook.functions
        changed = [one for name, one in draft.functions.items() if known.get(name) != one]
        if faults := load_faults(changed, draft.source, sandbox):
            self._load(sandbox)
            raise Unusable(*faults)
        return written.reason, draft

    def _run(self, program: str, sandbox: Sandbox, data: Mapping[str, Any], last: bool) -> str:
        """Run a program; returns what the model is told of it."""
        told = {"output": "", "value": "", "error": "", "trace": ""}
        try:
            outcome = sandbox.run(program, data)
            told["output"] = outcome.output
            told["value"] = "" if outcome.value is None else cut(write_literal(outcome.value), VALUE_CHARS)
        except SkillError as error:
            told |= {"output": error.output, "error": f"{error.kind}: {error.message}", "trace": error.trace}
        told["output"] = cut(told["output"].strip(), OUTPUT_CHARS)
        return render("code_output", **told, last=last)

    def _system(self, steps: int) -> str:
        settings, benchmark = self.tools.settings, self.tools.benchmark
        return render(
            "speedrunner_system",
            method=self.name,
            code=self.runs_programs,
            benchmark=benchmark.name,
            title=benchmark.title,
            rules=benchmark.rules(),
            state_help=benchmark.state_help(),
            modules=MODULES,
            turns=settings.sleep_turns,
            functions=settings.functions,
            longest=settings.function_chars,
            steps=steps,
        )

    def _user(self, experience: Experience, batch: Sequence[Trajectory], code: bool) -> str:
        episodes = describe_episodes(batch, self.tools.settings.experience_chars)
        return render(
            "speedrunner",
            functions=list(self.codebook.functions.values()),
            uses=uses(experience.episodes),
            tasks=experience.tasks(),
            episodes=episodes,
            left_out=len(batch) - len(episodes),
            code=code,
        )


class SpeedRunnerNoCL(SpeedRunner):
    """Learns in functions, and runs nothing asleep."""

    name: ClassVar[str] = "speedrunner_no_cl"
