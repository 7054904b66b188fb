"""FIXED: the calls of ScienceWorld's simulator, arranged so that looking changes nothing."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from agents.benchmarks.base import Episode
from agents.benchmarks.scienceworld.java import Machine, Value
from agents.benchmarks.scienceworld.tasks import SIMPLIFICATIONS, find_task, variations
from harness.errors import Problem

_SCRAMBLE = 0x5DEECE66D  # what java.util.Random.setSeed combines a seed with
_CHOICE = re.compile(r"^(\d+):\t(.*)$", re.MULTILINE)


class Moment(NamedTuple):
    """What the game shows after a command."""

    text: str
    """The answer to the command."""
    look: str
    """What `look around` would say."""
    inventory: str
    score: int
    """-100 to 100."""
    completed: bool
    moves: int
    """Of the world's clock; `wait` takes eleven."""
    choices: dict[int, str]
    """Where a command fits several things, the game asks which is meant; else empty."""
    error: str
    """The simulator's exception, where it failed; else empty."""


class Simulator:
    """ScienceWorld in a Java process of its own, which starts with the first episode and is kept."""

    def __init__(self) -> None:
        self.machine: Machine | None = None

    def begin(self, episode: Episode) -> Moment:
        """Load a world.

        Raises:
            Problem: no such task or variation, or Java is not to be had.
        """
        known = variations(find_task(episode.task))
        if not 0 <= episode.seed < known:
            raise Problem(
                f"{episode.task} has no variation {episode.seed}", remedy=f"choose one of 0 to {known - 1}"
            )
        self._episode = episode
        if self.machine is None or self.machine.closed:
            self.machine = machine = Machine()
            machine.call(self._find)
        self._sent: list[str | None] = []
        return self._load(gold=False)

    def goal(self) -> str:
        """The task in the game's words."""
        return str(self._run(lambda: self._game.getTaskDescription()))

    def send(self, command: str) -> Moment:
        """Give the game a command."""
        self._sent.append(command)
        return self._run(lambda: self._moment(command))

    def drop_question(self) -> None:
        """Have the game forget that it asked which thing was meant. Its own way takes a move."""
        self._sent.append(None)
        self._run(lambda: self._parser.clearAmbiguousState())

    def commands(self) -> list[str]:
        """Every command that is valid now, in order."""
        return self._aside("getValidActionObjectCombinations")

    def things(self) -> list[str]:
        """Names of what is within reach where the agent is, besides what it carries, in order."""
        return self._aside("getPossibleObjects")

    def gold_path(self) -> list[str]:
        """Commands that solve the task from its beginning. The world is built again for it, and is then as
        it was."""
        self._load(gold=True)
        path = self._run(lambda: self._machine.join(self._game.getGoldActionSequence()))
        for command in self._sent:
            if command is None:
                self._run(lambda: self._parser.clearAmbiguousState())
            else:
                self._run(partial(self._moment, command))
        return path

    def close(self) -> None:
        """End the Java process."""
        if self.machine is not None:
            self.machine.close()

    @property
    def _machine(self) -> Machine:
        assert self.machine is not None
        return self.machine

    def _run(self, work: Callable[[], Value]) -> Value:
        return self._machine.call(work)

    def _find(self) -> None:
        jvm = self._machine.gateway.jvm
        self._game = jvm.scienceworld.runtime.pythonapi.PythonInterface()
        self._held: list[Any] = []
        self._random = getattr(getattr(jvm.scala.util, "Random$"), "MODULE$").self()
        self._state = jvm.java.lang.Class.forName("java.util.Random").getDeclaredField("seed")
        self._state.setAccessible(True)

    def _load(self, gold: bool) -> Moment:
        def work() -> str:
            error = self._game.load(self._episode.task, self._episode.seed, SIMPLIFICATIONS, gold)
            for held in self._held:  # or the worlds of all episodes would stay in memory
                self._machine.gateway.detach(held)
            option = self._game.agentInterface()
            self._agent = option.get()
            self._parser = self._agent.inputParser()
            self._held = [option, self._agent, self._parser]
            return str(error)

        error = self._run(work)
        if error:
            raise Problem(f"ScienceWorld refuses {self._episode.task} {self._episode.seed}: {error}")
        # As the package begins: before a first command, the score is still that of the last episode.
        return self._run(lambda: self._moment("look around"))

    def _moment(self, command: str) -> Moment:
        from py4j.protocol import Py4JJavaError

        game, agent = self._game, self._agent
        try:
            text = str(game.step(command))
        except Py4JJavaError as error:
            agent.setErrorState(str(error.java_exception.toString()))
            text = ""
        failed = str(agent.getErrorStateMessage()) if agent.isInErrorState() else ""
        look, inventory = ("", "") if failed else (game.freeActionLook(), game.freeActionInventory())
        asked = text.startswith("Ambiguous request")
        return Moment(
            text=text.strip(),
            look=look.strip(),
            inventory=inventory.strip(),
            score=round(100 * game.getScore()),
            completed=bool(game.getCompleted()),
            moves=int(game.getNumMoves()),
            choices={int(number): choice for number, choice in _CHOICE.findall(text)} if asked else {},
            error=failed,
        )

    def _aside(self, question: str) -> list[str]:
        """Ask for a list, and put back the world's random state, which naming things draws from."""

        def work() -> list[str]:
            before = int(self._state.get(self._random))
            found = self._machine.join(getattr(self._game, question)())
            self._random.setSeed(before ^ _SCRAMBLE)
            return found

        return sorted(set(self._run(work)))
