"""FIXED: completions from vLLM in this process, on its GPU or on CPUs. See docs/llm_engines.md."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from harness.errors import Problem
from llm.completion import Generation, Sampling
from llm.engines.processes import EXTENSION


class VllmEngine:
    """Draws from the model in a folder; `end` is the token that ends a completion.

    `max_model_len` bounds prompt and completion together, in tokens. `options` are more arguments of
    vllm.LLM. vLLM takes over what is global in the process: threads, random state, logging.
    """

    def __init__(
        self, folder: Path, end: int, *, max_model_len: int, dtype: str = "bfloat16", **options: Any
    ) -> None:
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # so that weights are handed over as they are
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        from vllm import LLM

        self.end = end
        self.llm = LLM(
            str(folder),
            max_model_len=max_model_len,
            dtype=dtype,
            skip_tokenizer_init=True,
            generation_config="vllm",  # or a generation_config.json would restrict sampling
            logprobs_mode="processed_logprobs",
            worker_extension_cls=EXTENSION,
            **options,
        )

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        max_tokens: Sequence[int],
        sampling: Sampling,
    ) -> list[Generation]:
        """See `llm.completion.Engine`. With top_p below 1, log-probabilities are those after it.

        Raises:
            Problem: a prompt and its completion do not fit into `max_model_len`.
        """
        from vllm import SamplingParams

        settings = [
            SamplingParams(
                seed=seed,
                max_tokens=most,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                logprobs=0,  # of the drawn token and no others
                detokenize=False,
                stop_token_ids=[self.end],
                ignore_eos=True,  # which would be any that the model's configuration names
            )
            for seed, most in zip(seeds, max_tokens, strict=True)
        ]
        requests = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        outputs = [request.outputs[0] for request in self.llm.generate(requests, settings, use_tqdm=False)]
        return [
            finished(
                list(output.token_ids),
                [
                    places[token].logprob
                    for token, places in zip(output.token_ids, output.logprobs, strict=True)
                ],
                output.finish_reason,
                most,
            )
            for output, most in zip(outputs, max_tokens, strict=True)
        ]

    def update(self, weights: Mapping[str, Tensor]) -> None:
        """Replace the weights; the names are those of transformers."""
        self.llm.collective_rpc("load_tensors", args=(weights,))
        self.llm.reset_prefix_cache()  # it was computed with the old ones


def finished(
    tokens: list[int], log_probabilities: list[float], reason: str | None, max_tokens: int
) -> Generation:
    """A completion of vLLM; a Problem where it broke off, as it does at the end of the context."""
    if reason != "stop" and (reason != "length" or len(tokens) != max_tokens):
        raise Problem(
            f"vLLM ended a completion after {len(tokens)} of {max_tokens} tokens: {reason}",
            remedy="see that max_model_len is at least the longest prompt and completion together",
        )
    return Generation(tokens, log_probabilities, reason == "stop")
