"""FIXED: the models that runs start from, and how a puzzle is put to them."""

from collections.abc import Sequence
from pathlib import Path

import torch
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
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(task.model, revision=task.revision, local_files_only=True))
    except LocalEntryNotFoundError as error:
        raise Problem(
            f"{task.model} is not on this machine",
            remedy=f"hf download {task.model} --revision {task.revision}",
        ) from error


def load_model(folder: Path, device: torch.device, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """A causal language model from its folder, in evaluation mode."""
    model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation="sdpa", device_map=device
    )
    return model.eval()


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


def model_sources(task: Task) -> list[tuple[str, str]]:
    """(name, SHA-256) of every file of weights that a run starts from."""
    folder = model_folder(task)
    return [(f"{task.model}/{path.name}", sha256_file(path)) for path in sorted(folder.glob("*.safetensors"))]
