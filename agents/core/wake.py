"""FIXED: an episode, played in thoughts and actions (ReAct, arXiv 2210.03629); actions may call skills."""

from collections.abc import Sequence

from agents.core.actions import Action, Primitive, SkillCall, Unparsed, parse_action, spoken
from agents.core.literals import write_literal
from agents.llm.messages import Message
from agents.llm.reply import Reply
from agents.memory.trajectory import Ending, Taken, Trajectory, Turn
from agents.methods.base import Method, Seat
from agents.methods.serving import Served, ending_of, trajectory_of, view
from agents.prompts.prompts import render, say
from agents.sandbox.host import SkillError
from agents.sandbox.protocol import cut

PATIENCE = 3
"""Answers in a row that hold no action, after which the agent has given up."""
MOST_LISTED = 60
"""Actions; longer lists are not repeated in prompts."""

_THOUGHT_CHARS = 1_500  # of an earlier answer, as prompts repeat it
_NOTE_CHARS = 1_500  # of what a skill returned, and of what it printed


def play_episode(method: Method, seat: Seat) -> Trajectory:
    """Play the episode of a seat from its reset to its end, and close nothing.

    The environment's steps alone decide score and success; an answer that cannot be read takes no step.

    Raises:
        agents.llm.ledger.BudgetSpent: the run cannot afford the next answer.
        Problem: the model cannot be asked.
    """
    return _Play(method, seat).play()


class _Play:
    """An episode under way."""

    def __init__(self, method: Method, seat: Seat) -> None:
        self.seat, self.environment = seat, seat.environment
        self.ask = method.tools.model.ask
        self.benchmark = benchmark = method.tools.benchmark
        self.first = self.environment.reset(seat.episode)
        self.step_limit = benchmark.step_limit(seat.episode.task)
        self.skills = _load(method, seat)
        self.listed = self._actions()
        self.first_listed = self.listed
        self.system = render(
            "system",
            benchmark=benchmark.name,
            title=benchmark.title,
            rules=benchmark.rules(),
            memory=method.memory_text(seat.episode, self.first),
            skills=bool(self.skills),
            turn_limit=seat.turn_limit,
        )
        self.history = seat.history
        self.turns: list[Turn] = []
        self.told: list[tuple[Message, Message]] = []
        """For each turn, the answer as prompts repeat it and what the model was told of it."""
        self.unread = 0
        self.tokens = {"prompt": 0, "completion": 0}

    def play(self) -> Trajectory:
        while (ending := self._ending()) is None:
            label = f"{self.seat.label}/{len(self.turns):03d}"
            reply = self.ask(self._conversation(), label=label)
            self.tokens["prompt"] += reply.usage.prompt or 0
            self.tokens["completion"] += reply.usage.completion or 0
            action = _read(reply, self.skills)
            if reply.finish == "context":
                self.history = max(1, self.history // 2)
            self.unread = self.unread + 1 if isinstance(action, Unparsed) else 0
            turn = self._act(reply, action)
            self.turns.append(turn)
            self.told.append((_repeated(reply, action), self._tell(turn)))
        return trajectory_of(self.seat, self.first, self.turns, ending, self.tokens)

    def _ending(self) -> Ending | None:
        """Why no further answer is asked for; None = one is."""
        if self.environment.done:
            return ending_of(self.benchmark, self.environment)
        if self.unread == PATIENCE:
            return "gave up"
        if len(self.turns) >= self.seat.turn_limit:
            return "turn limit"
        limit = self.seat.token_limit
        return "tokens" if limit is not None and sum(self.tokens.values()) >= limit else None

    def _conversation(self) -> list[Message]:
        """What the model is shown: the latest turns word for word, of earlier ones only the actions.

        Turns are left out several at a time, so that most prompts begin like the one before: servers answer
        those faster and bill less for them.
        """
        beyond, several = len(self.turns) - self.history, max(1, self.history // 2)
        start = 0 if beyond <= 0 else -(-beyond // several) * several
        begin = render(
            "wake",
            goal=self.environment.goal,
            observation=self.first,
            actions=self.first_listed,
            earlier=[turn.action for turn in self.turns[:start]],
        )
        messages = [Message("system", self.system), Message("user", begin)]
        for answer, told in self.told[start:]:
            messages += [answer, told]
        return messages

    def _act(self, reply: Reply, action: Action) -> Turn:
        if isinstance(action, Unparsed):
            note = render("unreadable", reason=action.reason, skills=bool(self.skills))
            return Turn(reply.text, "", note=note, error=action.reason)
        if isinstance(action, Primitive):
            step = self.environment.step(action.text)
            return Turn(reply.text, action.text, (Taken(action.text, step.observation, step.reward),))
        return self._call(reply, action)

    def _call(self, reply: Reply, call: SkillCall) -> Turn:
        served = Served(self.environment)
        value, error = None, None
        try:
            outcome = self.seat.sandbox.call(
                call.name, call.args, call.kwargs, served, view(self.environment)
            )
            value, output = outcome.value, outcome.output
        except SkillError as failure:
            output, error = failure.output, str(failure)
        note = render(
            "skill_note",
            value="" if value is None else cut(write_literal(value), _NOTE_CHARS),
            output=cut(output.strip(), _NOTE_CHARS),
            error=error or "",
        )
        return Turn(reply.text, call.text, tuple(served.taken), note, call.name, error)

    def _tell(self, turn: Turn) -> Message:
        """What the model is told after a turn."""
        before, self.listed = self.listed, self._actions()
        text = render(
            "wake_next",
            skill=turn.skill,
            steps=turn.steps,
            note=turn.note,
            observation=self.environment.observation,
            actions=[] if self.listed == before else self.listed,
            steps_left=max(0, self.step_limit - self.environment.steps),
            turns_left=self.seat.turn_limit - len(self.turns),
        )
        return Message("user", text)

    def _actions(self) -> list[str]:
        """The actions as prompts list them; [] = too many."""
        actions = [] if self.environment.done else list(self.environment.actions())
        return actions if len(actions) <= MOST_LISTED else []


def _load(method: Method, seat: Seat) -> tuple[str, ...]:
    """Load the method's skills into the seat's sandbox; their names, none where they fail to load."""
    source = method.skills_source()
    try:
        return tuple(function.name for function in seat.sandbox.load(source)) if source else ()
    except SkillError as error:
        method.tools.log(f"{seat.label}: no skill could be loaded, so it is played without: {error}")
        return ()


def _read(reply: Reply, skills: Sequence[str]) -> Action:
    """What an answer does; where it says nothing, why the server thinks so."""
    action = parse_action(reply.text, skills)
    if isinstance(action, Unparsed):
        return action._replace(reason=say("withheld", finish=reply.finish) or action.reason)
    return action


def _repeated(reply: Reply, action: Action) -> Message:
    """An answer as later prompts repeat it: without what was imagined after its action."""
    if isinstance(action, Unparsed):
        return Message("assistant", cut(spoken(reply.text), _THOUGHT_CHARS) or say("no_answer"))
    return Message("assistant", f"Thought: {cut(action.thought, _THOUGHT_CHARS)}\nAction: {action.text}")
