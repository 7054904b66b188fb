"""BabyAI's server in a thread of the tests' process."""

import threading

import uvicorn

from agents.benchmarks.babyai import server
from agents.benchmarks.babyai.sessions import Sessions


class Running(uvicorn.Server):
    """A server in a thread, which knows its address."""

    def __init__(self, sessions: Sessions) -> None:
        super().__init__(uvicorn.Config(server.application(sessions), log_level="critical", lifespan="off"))
        self.listening = server.listen("127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.thread = threading.Thread(target=self.run, kwargs={"sockets": [self.listening]})

    def __enter__(self) -> "Running":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.should_exit = True
        self.thread.join()
        self.listening.close()
