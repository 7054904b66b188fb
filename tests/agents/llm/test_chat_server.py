"""A small model behind our server: its answers are those of transformers, whatever was read before."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from chat_servers import model
from transformers import AutoModelForCausalLM, AutoTokenizer

from agents.llm.chat_app import background
from agents.llm.chat_server import local_app
from agents.llm.local_model import SMOLLM2, LocalModel, find_model
from agents.llm.messages import Message
from harness.errors import Problem
from harness.track import ROOT

TINY = ROOT / "llm" / "tiny"
FIRST = [Message("system", "Play well."), Message("user", "Which way?")]
SECOND = [Message("system", "Play well, and say why."), Message("user", "Which way?")]
OTHER = [Message("user", "Say something else.")]


@pytest.fixture(scope="module")
def tiny() -> Iterator[LocalModel]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield LocalModel(TINY)
    torch.set_num_threads(threads)


def likeliest(messages: list[Message], count: int) -> tuple[str, int]:
    """The likeliest continuation as `generate` of transformers finds it, and the tokens of the prompt."""
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    plain = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32)
    turns = [{"role": role, "content": content} for role, content in messages]
    text = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    ids = tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
    end = tokenizer.eos_token_id
    output = plain.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=count,
        do_sample=False,
        eos_token_id=end,
        pad_token_id=end,
    )
    return tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True), ids.shape[1]


def test_answers_are_those_of_transformers(tiny: LocalModel) -> None:
    for messages in (FIRST, SECOND, OTHER, SECOND, FIRST):
        said = tiny.complete(messages, 12, 0.0, 1.0, None)
        assert (said.text, said.prompt) == likeliest(messages, 12)


def test_what_was_read_before_is_not_read_again(tiny: LocalModel) -> None:
    tiny.complete(OTHER, 2, 0.0, 1.0, None)
    prompt = tiny.complete(FIRST, 2, 0.0, 1.0, None).prompt
    assert tiny.complete(FIRST, 2, 0.0, 1.0, None).cached == prompt - 1
    assert 0 < tiny.complete(SECOND, 2, 0.0, 1.0, None).cached < prompt - 1


def test_a_seed_decides_what_is_drawn(tiny: LocalModel) -> None:
    drawn = [tiny.complete(FIRST, 16, 1.0, 0.95, seed).text for seed in (1, 2, 1, 2)]
    assert drawn[:2] == drawn[2:] and drawn[0] != drawn[1]


def test_it_answers_over_http(tiny: LocalModel) -> None:
    with (
        background(local_app("tiny", tiny)) as url,
        model(url, name="tiny", temperature=0.0, retries=0) as asked,
    ):
        reply = asked.ask(FIRST, label="wake/0", max_tokens=8)
        text, prompt = likeliest(FIRST, 8)
        assert (reply.text, reply.usage.prompt, reply.model) == (text, prompt, "tiny")
        assert reply.usage.completion == 8 and reply.finish == "length"
        long = asked.ask([Message("user", "word " * 5000)], label="wake/1")
        assert (long.text, long.finish) == ("", "context")
    with (
        background(local_app("tiny", tiny)) as url,
        model(url, name="other") as asked,
        pytest.raises(Problem, match=r"has no model 'other'.*it has tiny"),
    ):
        asked.ask(FIRST, label="wake/0")


def test_a_model_is_found_or_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_model(str(TINY)) == (TINY, None)
    monkeypatch.setenv("SMOLLM2", str(tmp_path))
    with pytest.raises(Problem, match="make smollm"):
        find_model("smollm2")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / SMOLLM2).touch()
    assert find_model("smollm2") == (tmp_path / "inner", SMOLLM2)
    for name in (str(tmp_path), "nothing", str(tmp_path / "no.gguf")):
        with pytest.raises(Problem, match="there is no model"):
            find_model(name)
