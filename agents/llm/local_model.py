"""FIXED: a small model of this machine, on its CPU, one conversation at a time."""

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache
from transformers.utils import logging

from agents.llm.messages import Message
from harness.errors import Problem
from harness.track import ROOT

logging.disable_progress_bar()  # type: ignore[no-untyped-call]

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


class Said(NamedTuple):
    """A completion, and its tokens."""

    text: str
    finish: str
    prompt: int
    completion: int
    cached: int
    """Tokens of the prompt that were read in the conversation before."""


class TooLong(Exception):
    """The prompt and its answer do not fit into the model's context."""


def find_model(name: str) -> tuple[Path, str | None]:
    """(folder, GGUF file in it or None) of a folder with a model, a .gguf file, or "smollm2".

    Raises:
        Problem: there is no such model.
    """
    path = Path(name)
    if name == "smollm2":
        folder = Path(os.environ.get("SMOLLM2", ROOT / ".cache" / "smollm2"))
        found = next(iter(sorted(folder.glob(f"**/{SMOLLM2}"))), None)
        if found is None:
            raise Problem(f"there is no {SMOLLM2} in {folder}", remedy="run `make smollm`")
        path = found
    if path.suffix == ".gguf" and path.is_file():
        return path.parent, path.name
    if (path / "config.json").is_file():
        return path, None
    raise Problem(
        f"there is no model {name!r}",
        remedy="name smollm2, a .gguf file, or a folder that holds a config.json",
    )


class LocalModel:
    """A causal language model with a chat template. Thread-safe; calls wait for each other."""

    def __init__(self, folder: Path, gguf: str | None = None, default_tokens: int = 256) -> None:
        """Load the weights as float32."""
        self._tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=gguf)
        self._model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=gguf, dtype=torch.float32)
        torch.nn.Module.eval(self._model)
        if self._tokenizer.chat_template is None:
            raise Problem("the model has no chat template", file=folder)
        self.context = int(self._model.config.max_position_embeddings)
        self._default_tokens = default_tokens
        self._lock = threading.Lock()
        self._read: list[int] = []
        self._cache = DynamicCache(config=self._model.config)

    def complete(
        self,
        messages: Sequence[Message],
        max_tokens: int | None,
        temperature: float,
        top_p: float,
        seed: int | None,
    ) -> Said:
        """Go on with a conversation; temperature 0 takes the likeliest token.

        Raises:
            TooLong: for the model's context.
        """
        turns = [{"role": role, "content": content} for role, content in messages]
        text = self._tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        prompt = self._tokenizer.encode(text, add_special_tokens=False)
        limit = max_tokens or self._default_tokens
        if len(prompt) + limit > self.context:
            raise TooLong(
                f"the model's maximum context length is {self.context} tokens; the prompt has {len(prompt)}, "
                f"and {limit} are asked for"
            )
        with self._lock, torch.no_grad():
            tokens, ended, cached = self._generate(prompt, limit, temperature, top_p, seed)
        said = self._tokenizer.decode(tokens, skip_special_tokens=True)
        assert isinstance(said, str)
        return Said(said, "stop" if ended else "length", len(prompt), len(tokens), cached)

    def _generate(
        self, prompt: list[int], limit: int, temperature: float, top_p: float, seed: int | None
    ) -> tuple[list[int], bool, int]:
        """(tokens, whether the last one ends the answer, tokens of the prompt that were still known)."""
        generator = torch.Generator()
        generator.seed() if seed is None else generator.manual_seed(seed)
        cached = _common(self._read, prompt[:-1])
        if cached == 0:
            self._cache = DynamicCache(config=self._model.config)
        elif cached < len(self._read):
            self._cache.crop(cached - len(self._read))
        self._read = prompt[:cached]
        logits = self._feed(prompt[cached:])
        tokens: list[int] = []
        while True:
            token = _draw(logits, temperature, top_p, generator)
            tokens.append(token)
            ended = token == self._tokenizer.eos_token_id
            if ended or len(tokens) == limit:
                return tokens, ended, cached
            logits = self._feed([token])

    def _feed(self, tokens: list[int]) -> torch.Tensor:
        """Read tokens; logits (V,) of the next one."""
        output = self._model(torch.tensor([tokens]), past_key_values=self._cache, logits_to_keep=1)
        self._read += tokens
        logits: torch.Tensor = output.logits[0, -1]
        return logits


def _common(first: list[int], second: list[int]) -> int:
    """Tokens that both begin with."""
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))


def _draw(logits: torch.Tensor, temperature: float, top_p: float, generator: torch.Generator) -> int:
    """A token; with top_p below 1 of the likeliest whose probabilities sum to it (Holtzman et al. 2020)."""
    if temperature == 0:
        return int(logits.argmax())
    probabilities, order = (logits / temperature).softmax(0).sort(descending=True, stable=True)
    before = probabilities.cumsum(0) - probabilities
    probabilities[before > top_p] = 0.0
    return int(order[torch.multinomial(probabilities, 1, generator=generator)])
