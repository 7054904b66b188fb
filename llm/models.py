"""FIXED: the models that runs start from, and how a puzzle is put to them."""

from collections.abc import Sequence
from pathlib import Path

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from harness.errors import Problem
from harness.files import sha256_file
from harness.track import ROOT
from llm.prompt import fill
from llm.puzzles import Puzzle
from llm.track import Task

logging.disable_progress_bar()  # ours say more


def model_folder(task: Task) -> Path:
    """The folder of the task's starting model; a Problem that says how to get it where it is not here."""
    if task.revision is None:
        return ROOT / task.model
    try:
        return Path(snapshot_download(task.model, revision=task.revision, local_files_only=True))
    except LocalEntryNotFoundError as error:
        remedy = f"hf download {task.model} --revision {task.revision}"
        raise Problem(f"{task.model} is not on this machine", remedy=remedy) from error


def check_model(task: Task) -> None:
    """Hash the weights of a model from the hub, whose cache names each file by its SHA-256.

    Raises:
        Problem: the model is not here, or a file of it is not what the pinned revision names.
    """
    if task.revision is None:
        return  # its files are fixed files of the track
    for path in sorted(model_folder(task).glob("*.safetensors")):
        if sha256_file(path, links=True) != path.resolve().name:
            raise Problem("is damaged", file=path, remedy="delete it and download the model again")


def load_model(folder: Path, device: torch.device, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """A causal language model from its folder, in evaluation mode."""
    model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation="sdpa"
    )
    nn.Module.to(model, device)
    model.eval()
    return model


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The tokenizer that lies beside a model."""
    return AutoTokenizer.from_pretrained(folder)


def end_token(tokenizer: PreTrainedTokenizerBase) -> int:
    """The token that ends a completion."""
    if not isinstance(tokenizer.eos_token_id, int):
        raise Problem(f"the tokenizer of {tokenizer.name_or_path} has no end token")
    return tokenizer.eos_token_id


def prompt_tokens(
    tokenizer: PreTrainedTokenizerBase, template: str, task: Task, puzzles: Sequence[Puzzle]
) -> list[list[int]]:
    """Each puzzle as the model reads it: the template filled in, as the user's turn of a chat."""
    prompts = []
    for puzzle in puzzles:
        turn = [{"role": "user", "content": fill(template, task.hardware_class, puzzle)}]
        text = tokenizer.apply_chat_template(turn, add_generation_prompt=True, tokenize=False)
        prompts.append(tokenizer.encode(text, add_special_tokens=False))
    return prompts
