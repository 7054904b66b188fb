"""A real pretrained model, SmolLM2-135M-Instruct, behind our server and asked like any other."""

import os
from pathlib import Path

import pytest
from chat_servers import model

from agents.llm.chat_app import background
from agents.llm.chat_server import local_app
from agents.llm.local_model import SMOLLM2, LocalModel
from agents.llm.messages import Message
from harness.track import ROOT

FOLDER = Path(os.environ.get("SMOLLM2", ROOT / ".cache/smollm2"))
FILE = next(iter(sorted(FOLDER.glob(f"**/{SMOLLM2}"))), None)

pytestmark = [
    pytest.mark.smollm,
    pytest.mark.skipif(FILE is None, reason=f"{SMOLLM2} is not in {FOLDER}: make smollm"),
]


def test_it_answers_a_question_in_a_conversation() -> None:
    assert FILE is not None
    app = local_app("smollm2", LocalModel(FILE.parent, FILE.name))
    with background(app) as url, model(url, name="smollm2", temperature=0.0, timeout_s=60.0) as asked:
        first = [Message("user", "What is the capital of France?")]
        reply = asked.ask(first, label="wake/0", max_tokens=24)
        assert "Paris" in reply.text and reply.finish == "stop"
        more = [*first, Message("assistant", reply.text), Message("user", "And of Italy?")]
        again = asked.ask(more, label="wake/1", max_tokens=24)
        assert "Rome" in again.text
        assert again.usage.cached is not None and reply.usage.prompt is not None
        assert again.usage.cached >= reply.usage.prompt - 1
