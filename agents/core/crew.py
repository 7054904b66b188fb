"""FIXED: episodes side by side in threads, each with an environment and a sandbox; results come in order."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agents.benchmarks.base import Benchmark, Environment, Episode
from agents.llm.messages import Message
from agents.llm.model import Model
from agents.llm.reply import Reply
from agents.memory.trajectory import Trajectory
from agents.methods.base import Method, Seat
from agents.sandbox.host import Sandbox


@dataclass(frozen=True)
class Terms:
    """How episodes are played."""

    turn_limit: int
    """Answers in an episode."""
    history: int
    """Latest turns that prompts repeat word for word."""
    token_limit: int | None
    """Tokens of an episode, after which no further answer is asked for; None = no limit."""
    parallel: int
    """Episodes at a time."""


class Stopped(Exception):
    """The run ends, so nothing more is asked."""


class Line:
    """The line to a model, which can be cut: whoever asks afterwards is stopped."""

    def __init__(self, model: Model, answered: Callable[[], None] = lambda: None) -> None:
        self.model, self._answered = model, answered
        self._cut = threading.Event()

    def ask(self, messages: Sequence[Message], *, label: str, max_tokens: int | None = None) -> Reply:
        """See `Model.ask`. Raises Stopped once the line is cut."""
        if self._cut.is_set():
            raise Stopped
        reply = self.model.ask(messages, label=label, max_tokens=max_tokens)
        self._answered()
        return reply

    def cut(self) -> None:
        self._cut.set()


class Crew:
    """Plays episodes. Environments are made as they are needed, and used again."""

    def __init__(self, benchmark: Benchmark, sandbox: Callable[[], Sandbox], terms: Terms) -> None:
        self._benchmark, self._sandbox, self.terms = benchmark, sandbox, terms
        self._idle: list[Environment] = []
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()

    def play(
        self, method: Method, episodes: Sequence[Episode], first: int = 0, *, learning: bool
    ) -> Iterator[tuple[Trajectory, float]]:
        """Trajectories in order, each with its seconds, as soon as those before it are there.

        `first` is the index of the first episode. Where one fails no further one begins; those before it
        still come, then its exception is raised: what counts as played never depends on who was quick.
        """
        todo = iter(list(enumerate(episodes)))
        lock = threading.Lock()
        news: queue.SimpleQueue[tuple[int, tuple[Trajectory, float] | BaseException] | None] = (
            queue.SimpleQueue()
        )
        self._stopping.clear()

        def work() -> None:
            environment: Environment | None = None
            while not self._stopping.is_set():
                with lock:
                    place, episode = next(todo, (-1, None))
                if episode is None:
                    break
                try:
                    environment = environment or self._environment(lock)
                    news.put((place, self._one(method, environment, episode, first + place, learning)))
                except BaseException as error:
                    self._stopping.set()
                    news.put((place, error))
            if environment is not None:
                with lock:
                    self._idle.append(environment)
            news.put(None)

        count = min(self.terms.parallel, len(episodes))
        self._threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()
        played: dict[int, tuple[Trajectory, float] | BaseException] = {}
        wanted = 0
        while count or wanted in played:
            while (result := played.pop(wanted, None)) is not None:
                if isinstance(result, BaseException):
                    self.stop()
                    raise result
                yield result
                wanted += 1
            if count:
                message = news.get()
                if message is None:
                    count -= 1
                else:
                    played[message[0]] = message[1]

    def stop(self) -> None:
        """Wait until the episodes under way have ended; no further one begins."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        """Give back the environments that are not in use."""
        for environment in self._idle:
            with contextlib.suppress(Exception):
                environment.close()
        self._idle.clear()

    def _environment(self, lock: threading.Lock) -> Environment:
        with lock:
            return self._idle.pop() if self._idle else self._benchmark.make()

    def _one(
        self, method: Method, environment: Environment, episode: Episode, index: int, learning: bool
    ) -> tuple[Trajectory, float]:
        start = time.monotonic()
        with self._sandbox() as sandbox:
            seat = Seat(
                environment=environment,
                sandbox=sandbox,
                episode=episode,
                index=index,
                label=f"{'wake' if learning else 'eval'}/{index:06d}",
                turn_limit=self.terms.turn_limit,
                history=self.terms.history,
                learning=learning,
                token_limit=self.terms.token_limit,
            )
            return method.play(seat), time.monotonic() - start
