"""A backend, and relays that are closed when a test is done."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from live_views import UPLOAD_KEY, backend, free_port

from retro.live import relay as relay_module
from retro.live.relay import Relay


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a backend."""
    port = free_port()
    with backend(tmp_path_factory.mktemp("data"), port):
        yield port


@pytest.fixture
def relays() -> Iterator[Callable[..., Relay]]:
    """Makes relays, with the right key where none is given, and closes them."""
    with ExitStack() as stack:
        yield lambda folder, url, say=lambda text: None: stack.enter_context(
            Relay(folder, url, UPLOAD_KEY, say)
        )


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "CHUNK", 4096)
