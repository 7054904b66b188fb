"""What tests of whole runs share: a server, a process to fork runs from, and a run that went through."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_answers import answers
from chat_servers import ChatServer, serving
from forked_experiments import Runs, write_config


@pytest.fixture(scope="session")
def server() -> Iterator[ChatServer]:
    with serving(answers) as server:
        yield server


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    runs = Runs(tmp_path_factory.mktemp("outputs"))
    yield runs
    runs.close()


@pytest.fixture(scope="session")
def config(runs: Runs, server: ChatServer) -> Path:
    return write_config(runs.outputs / "config.yaml", server.url)


@pytest.fixture(scope="session")
def whole(runs: Runs, config: Path) -> Path:
    """A run that went through."""
    status, text = runs.run("--config_file", config, "--name", "whole")
    assert status == 0, text
    return runs.outputs / "whole"
