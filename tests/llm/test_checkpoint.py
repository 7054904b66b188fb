"""A checkpoint is loaded as it was saved, or refused by the name of the file that differs."""

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import PreTrainedTokenizerBase, Qwen3ForCausalLM

from harness.errors import Problem
from llm.checkpoint import FOLDER, INDEX, open_checkpoint, save_checkpoint
from llm.models import end_token, load_model, load_tokenizer


@pytest.fixture(scope="module")
def saved(
    tmp_path_factory: pytest.TempPathFactory,
    small_model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerBase,
) -> Path:
    """A run folder with a checkpoint whose weights are not those of the model that names its shape."""
    run = tmp_path_factory.mktemp("run")
    weights = {name: tensor + 0.25 for name, tensor in small_model.state_dict().items()}
    del weights["lm_head.weight"]  # it is the embeddings
    (run / INDEX).write_bytes(save_checkpoint(run, small_model, weights, tokenizer))
    return run


@pytest.fixture
def run(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "run"))


def test_the_index_names_every_file_with_its_hash(saved: Path) -> None:
    files = json.loads((saved / INDEX).read_text())["files"]
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in (saved / FOLDER).iterdir()}
    assert files == found
    assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"} <= files.keys()


def test_what_is_loaded_is_what_was_saved(saved: Path, small_model: Qwen3ForCausalLM) -> None:
    folder = open_checkpoint(saved)
    model = load_model(folder, torch.device("cpu"))
    assert not model.training
    for name, tensor in small_model.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], tensor + 0.25, msg=name)
    assert "lm_head.weight" not in load_file(folder / "model.safetensors")
    assert model.lm_head.weight is model.model.embed_tokens.weight
    tokenizer = load_tokenizer(folder)
    text = "+*@X+\n<answer>R</answer>"
    assert tokenizer.decode(tokenizer.encode(text)) == text and end_token(tokenizer) == 1


def cut_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def turn_a_bit(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (cut_weights, "model.safetensors: is not the file that training saved"),
        (turn_a_bit, "model.safetensors: is not the file that training saved"),
        (lambda folder: (folder / "config.json").unlink(), "config.json: is missing"),
        (
            lambda folder: (folder / "chat_template.jinja").write_text("{{ 1 }}"),
            "chat_template.jinja: is not",
        ),
        (lambda folder: (folder / "adapter_config.json").write_text("{}"), "adapter_config.json: is not"),
        (shutil.rmtree, "is missing"),
    ],
)
def test_a_folder_that_differs_is_refused(run: Path, damage: Callable[[Path], object], reason: str) -> None:
    damage(run / FOLDER)
    with pytest.raises(Problem, match=rf"{reason}.*copy the folder again"):
        open_checkpoint(run)


@pytest.mark.parametrize("index", ["", "[]", '{"files":{"config.json":"x"}}', '{"files":{},"more":1}'])
def test_an_index_that_is_none_is_refused(run: Path, index: str) -> None:
    (run / INDEX).write_text(index)
    with pytest.raises(Problem, match=INDEX):
        open_checkpoint(run)


def test_an_unwritable_place_is_a_problem(
    tmp_path: Path, small_model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase
) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "model.safetensors").mkdir()
    with pytest.raises(Problem, match=FOLDER):
        save_checkpoint(tmp_path, small_model, dict(small_model.state_dict()), tokenizer)
