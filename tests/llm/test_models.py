"""Where models come from, and how a puzzle is put to them."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerBase, Qwen3ForCausalLM

from harness.errors import Problem
from harness.track import ROOT
from llm.make_tiny import make_tokenizer
from llm.models import check_model, end_token, load_model, model_folder, prompt_tokens
from llm.prompt import question
from llm.puzzles import read_puzzles
from llm.track import TASKS

LARGE = TASKS["8xH100"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    return tmp_path


def fill_cache(cache: Path, weights: bytes) -> Path:
    """Put a model of one file into the cache, as the hub's client lays it out; returns its blob."""
    assert LARGE.revision is not None
    folder = cache / f"models--{LARGE.model.replace('/', '--')}"
    blob = folder / "blobs" / sha256(weights).hexdigest()
    blob.parent.mkdir(parents=True)
    blob.write_bytes(weights)
    snapshot = folder / "snapshots" / LARGE.revision
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").symlink_to(blob)
    return blob


def test_the_tiny_model_lies_in_the_repository() -> None:
    assert model_folder(TASKS["cpu"]) == ROOT / "llm/tiny"
    check_model(TASKS["cpu"])


def test_a_model_that_is_not_here_comes_with_the_command_to_get_it(cache: Path) -> None:
    command = f"hf download {LARGE.model} --revision {LARGE.revision}"
    for use in (model_folder, check_model):
        with pytest.raises(Problem, match=f"is not on this machine.*{command}"):
            use(LARGE)


def test_a_model_of_the_hub_is_checked_by_its_hash(cache: Path) -> None:
    blob = fill_cache(cache, b"weights")
    assert (model_folder(LARGE) / "model.safetensors").read_bytes() == b"weights"
    check_model(LARGE)
    blob.write_bytes(b"weighty")
    with pytest.raises(Problem, match=r"model\.safetensors: is damaged"):
        check_model(LARGE)
    with pytest.raises(Problem, match="is not on this machine"):
        model_folder(replace(LARGE, revision="0" * 40))


def test_a_loaded_model_computes_as_before(tmp_path: Path, small_model: Qwen3ForCausalLM) -> None:
    small_model.save_pretrained(tmp_path)
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        expected = small_model(input_ids=ids).logits
        model = load_model(tmp_path, torch.device("cpu"))
        torch.testing.assert_close(model(input_ids=ids).logits, expected)
        half = load_model(tmp_path, torch.device("cpu"), torch.bfloat16)
        assert {weight.dtype for weight in half.parameters()} == {torch.bfloat16}
    assert not model.training and model.dtype == torch.float32


def test_a_puzzle_is_the_users_turn_of_a_chat(tokenizer: PreTrainedTokenizerBase) -> None:
    puzzles = read_puzzles("tiny_valid")[:3]
    plain = prompt_tokens(tokenizer, "{question}", TASKS["cpu"], puzzles)
    assert [tokenizer.decode(prompt) for prompt in plain] == [puzzle.board + "\n" for puzzle in puzzles]
    longer = prompt_tokens(tokenizer, "Well: {question} Think!", LARGE, puzzles[:1])
    assert tokenizer.decode(longer[0]) == f"Well: {question('8xH100', puzzles[0])} Think!\n"
    chat = make_tokenizer()
    chat.chat_template = (
        "{% for turn in messages %}<{{ turn.role }}>{{ turn.content }}{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    (prompt,) = prompt_tokens(chat, "{question}", TASKS["cpu"], puzzles[:1])
    assert chat.decode(prompt) == f"<user>{puzzles[0].board}<assistant>"


def test_a_tokenizer_without_an_end_is_refused() -> None:
    tokenizer = make_tokenizer()
    assert end_token(tokenizer) == 1
    tokenizer.eos_token = None
    with pytest.raises(Problem, match="has no end token"):
        end_token(tokenizer)
