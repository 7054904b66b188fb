"""A small random model that every test may use, and one smoke run from the command line."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.track import ROOT

if TYPE_CHECKING:  # what is slow to import is imported where it is used
    from transformers import PreTrainedTokenizerBase, Qwen3ForCausalLM


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Sums this small are slower with more."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tokenizer() -> "PreTrainedTokenizerBase":
    """That of the cpu class."""
    from llm.make_tiny import make_tokenizer

    return make_tokenizer()


@pytest.fixture(scope="session")
def small_model(tokenizer: "PreTrainedTokenizerBase") -> "Qwen3ForCausalLM":
    """Random, with distributions that are far from even; copy it to change it."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        tie_word_embeddings=True,
        initializer_range=0.3,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config).eval()


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """What commands of the llm track are started with: no GPU in sight, and the modules of this checkout."""
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> tuple[Path, str]:
    """`python -m llm.speedrun --smoke`: the run folder and what was printed. Copy the folder to change it."""
    folder = tmp_path_factory.mktemp("smoke")
    done = subprocess.run(
        [sys.executable, "-m", "llm.speedrun", "--smoke"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (folder / "outputs").iterdir()
    return run, done.stdout + done.stderr
