"""A key is in no file, no message and no log, even where the server repeats it in everything that it says."""

import logging
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from chat_servers import CANARY, HELLO, completion, model, serving
from starlette.responses import JSONResponse, PlainTextResponse, Response

from agents.llm.cache import Cache
from agents.llm.messages import Message
from harness.errors import Problem

ECHO = f"the key is {CANARY}, I repeat {CANARY}"
SAID = completion(
    ECHO,
    finish=f"stop {CANARY}",
    message={"reasoning": ECHO, "refusal": ECHO},
    model=f"model {CANARY}",
)
FAILURES = [
    JSONResponse({"error": {"message": ECHO, "code": CANARY}}, 400),
    JSONResponse({"error": {"message": ECHO}}, 401),
    JSONResponse({"error": {"message": ECHO}}, 403),
    JSONResponse({"error": {"message": ECHO}}, 404),
    JSONResponse({"error": {"message": ECHO, "code": "content_filter"}}, 400),
    JSONResponse({"error": {"message": f"context length {ECHO}"}}, 400),
    JSONResponse({"error": {"message": ECHO, "code": "insufficient_quota"}}, 429),
    JSONResponse({"error": {"message": ECHO}}, 429, {"retry-after": "86400"}),
    PlainTextResponse(ECHO, 500),
    PlainTextResponse(ECHO, 200),
    JSONResponse({"error": {"message": ECHO}}, 200),
    JSONResponse({"choices": [{"message": ECHO}]}, 200),
]


def leaks(folder: Path) -> list[str]:
    """Files of a folder whose bytes hold the key, plain or as UTF-16 or hex, and those whose names do."""
    forms = [CANARY.encode(), CANARY.encode("utf-16-le"), CANARY.encode().hex().encode()]
    found = []
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        if CANARY in path.name or any(form in content for form in forms):
            found.append(path.name)
    return found


def test_the_search_finds_a_key(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.json").write_text(f'{{"key": "{CANARY}"}}')
    (tmp_path / "c").write_text("nothing")
    assert leaks(tmp_path) == ["b.json"]


def test_a_run_leaves_its_key_nowhere(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SOME_KEY", CANARY)
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []

    def script(body: dict[str, Any], count: int) -> Response:
        return JSONResponse(SAID) if count == 0 else FAILURES[count - 1]

    cache = Cache(tmp_path / "cache.sqlite")
    with serving(script) as server:
        url = server.url
        with model(url, tmp_path, cache=cache, api_key_env="SOME_KEY", retries=0) as asked:
            for place in range(1 + len(FAILURES)):
                messages = [*HELLO, Message("user", ECHO)]
                try:
                    reply = asked.ask(messages, label=f"wake/{place}")
                    shown.append(repr(reply))
                except Problem as problem:
                    lines = traceback.TracebackException.from_exception(problem).format()
                    shown += [str(problem), repr(problem), *lines]
            shown += [repr(asked), repr(asked.settings), asked.settings.model_dump_json()]
        assert len(server.bodies) == 1 + len(FAILURES)
        assert all(headers["authorization"] == f"Bearer {CANARY}" for headers in server.headers)
    with model(url, tmp_path, cache=cache, api_key_env="SOME_KEY", retries=1) as asked:
        with pytest.raises(Problem) as caught:
            asked.ask(HELLO, label="wake/nobody")
        shown.append(str(caught.value))
    cache.close()
    shown += [record.getMessage() for record in caplog.records]
    shown += [*capfd.readouterr()]
    assert [text for text in shown if CANARY in text] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache.sqlite", "calls.jsonl"]
    assert (tmp_path / "calls.jsonl").read_text().count("[key]") > 20
    assert leaks(tmp_path) == []


def test_a_key_that_a_setting_holds_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOME_KEY", CANARY)
    for change in ({"extra_body": {"user": [CANARY]}}, {"name": f"m-{CANARY}"}):
        with (
            pytest.raises(Problem, match="the key itself is in the model's settings") as caught,
            model("http://127.0.0.1:9/v1", tmp_path, api_key_env="SOME_KEY", **change),
        ):
            pass
        assert CANARY not in str(caught.value)
    assert leaks(tmp_path) == []


def test_a_key_on_the_command_line_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The manifest of a run repeats it."""
    monkeypatch.setenv("SOME_KEY", CANARY)
    monkeypatch.setattr(sys, "argv", ["train", "--name", f"run-{CANARY}"])
    with (
        pytest.raises(Problem, match="the key itself is in the command line") as caught,
        model("http://127.0.0.1:9/v1", tmp_path, api_key_env="SOME_KEY"),
    ):
        pass
    assert CANARY not in str(caught.value)
