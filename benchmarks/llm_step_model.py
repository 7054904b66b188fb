"""How long a GRPO step of the 8xH100 class must take, from sizes and peak speeds alone.

    python -m benchmarks.llm_step_model [--workload.mean-tokens 2500] [--efficiency.flops 0.4]

A pass through the model takes as long as its arithmetic or its reading of weights and keys and values from
memory, whichever is longer, at stated fractions of the hardware's peak. Everything else (launching kernels,
scheduling, sampling, tokenizing, rewards) counts as nothing, so these are bounds, not forecasts. Lengths of
completions are spread as `max * u**k`, u even in (0, 1), with k chosen for the mean.
`benchmarks.llm_step_check` compares the same functions with a measured step of the cpu class.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from harness.files import write_atomic

PUBLIC = (48, 25 * 60 + 51)
"""Steps and seconds of the fastest public record whose number of steps and time are both known."""


STATE_BYTES = 4 * 4
"""For each parameter, where trainers share nothing: weight, gradient and two moments in float32."""


@dataclass(frozen=True)
class Architecture:
    """A dense Qwen3 with tied embeddings."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int

    @classmethod
    def of(cls, config: Any) -> "Architecture":
        """From a Qwen3Config of transformers."""
        return cls(
            layers=config.num_hidden_layers,
            hidden=config.hidden_size,
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
            intermediate=config.intermediate_size,
            vocabulary=config.vocab_size,
        )

    @property
    def body(self) -> int:
        """Weights that multiply every token: attention projections and feed-forward layers."""
        attention = (2 * self.heads + 2 * self.kv_heads) * self.head_dim * self.hidden
        return self.layers * (attention + 3 * self.hidden * self.intermediate)

    @property
    def head(self) -> int:
        """Weights that turn a hidden state into logits; also the embedding table."""
        return self.hidden * self.vocabulary

    @property
    def parameters(self) -> int:
        """All of them, the norms included."""
        norms = self.layers * 2 * (self.hidden + self.head_dim) + self.hidden
        return self.body + self.head + norms

    @property
    def kv_values(self) -> int:
        """Keys and values kept for one token."""
        return 2 * self.layers * self.kv_heads * self.head_dim

    def flops(self, tokens: float, pairs: float, scored: float) -> float:
        """Forward: `tokens` through the body, `pairs` of a token and one it attends to, `scored` logits."""
        return 2 * (
            self.body * tokens + self.head * scored + 2 * self.layers * self.heads * self.head_dim * pairs
        )


@dataclass(frozen=True)
class Device:
    """Speeds of one device, and what a number takes in its memory."""

    flops: float = 989e12
    """floating-point operations a second; the default is bfloat16 without sparsity on an H100 SXM"""
    bandwidth: float = 3.35e12
    """bytes a second from its memory"""
    link: float = 450e9
    """bytes a second to another device, each way"""
    host_link: float = 64e9
    """bytes a second to the host's memory, each way (PCIe 5, 16 lanes)"""
    value_bytes: int = 2
    """of a weight, a key or a value"""

    def seconds(self, flops: float, bytes_read: float) -> float:
        """Of work that reads while it computes."""
        return max(flops / self.flops, bytes_read / self.bandwidth)


@dataclass(frozen=True)
class Efficiency:
    """Fractions of the peak speeds that are reached."""

    flops: float = 0.4
    bandwidth: float = 0.7
    links: float = 0.7

    def of(self, device: Device) -> Device:
        """The device at these fractions."""
        return replace(
            device,
            flops=device.flops * self.flops,
            bandwidth=device.bandwidth * self.bandwidth,
            link=device.link * self.links,
            host_link=device.host_link * self.links,
        )


@dataclass(frozen=True)
class Workload:
    """What one step generates and learns from."""

    puzzles: int = 16
    completions: int = 8
    """of each puzzle"""
    prompt_tokens: int = 300
    mean_tokens: float = 2500.0
    """of a completion"""
    max_tokens: int = 4800
    """of a completion"""

    def lengths(self) -> np.ndarray:
        """(puzzles * completions,) tokens of each completion, a puzzle's side by side, as chance has them."""
        count = self.puzzles * self.completions
        even = (np.arange(count) + 0.5) / count
        lengths = np.ceil(self.max_tokens * even ** (self.max_tokens / self.mean_tokens - 1)).astype(int)
        return np.random.default_rng(0).permutation(lengths)


@dataclass(frozen=True)
class Layout:
    """Who does what."""

    rollout_gpus: int = 5
    trainer_gpus: int = 3
    in_flight: int = 192
    """places for completions on all GPUs together, where rollouts are asynchronous; a group of completions
    keeps its places until its longest is done"""
    forward_passes: float = 4.0
    """what an update costs in forward passes: forward, forward again (checkpointing), backward twice"""


# ---- phases: seconds of a device ----------------------------------------------------------------------


def prefill(model: Architecture, device: Device, prompt: int, prompts: float) -> float:
    """To read so many prompts of `prompt` tokens; only the last token of each is scored."""
    flops = model.flops(prompts * prompt, prompts * prompt * (prompt + 1) / 2, prompts)
    return device.seconds(flops, model.parameters * device.value_bytes)


def decode(model: Architecture, device: Device, prompt: int, lengths: np.ndarray) -> float:
    """To write completions of these lengths, all begun at once: one pass for each token of the longest."""
    total = 0.0
    for step in range(int(lengths.max())):
        active = int((lengths > step).sum())
        total += decode_pass(model, device, active, prompt + step + 1)
    return total


def steady_decode(
    model: Architecture, device: Device, prompt: int, lengths: np.ndarray, in_flight: float
) -> float:
    """To write as many tokens with `in_flight` completions under way, a new one for each that ends."""
    # A completion met by chance is a long one more often than not, and half done.
    context = prompt + float((lengths.astype(float) ** 2).sum() / lengths.sum() / 2)
    return float(lengths.sum()) / in_flight * decode_pass(model, device, in_flight, context)


def busy(lengths: np.ndarray, completions: int) -> float:
    """The share of places with an unfinished completion where a group keeps its own until all are done."""
    groups = lengths.reshape(-1, completions)
    return float(lengths.sum() / (groups.max(axis=1).sum() * completions))


def decode_pass(model: Architecture, device: Device, active: float, context: float) -> float:
    """One more token for `active` completions that attend to `context` tokens each."""
    read = (model.parameters + model.kv_values * active * context) * device.value_bytes
    return device.seconds(model.flops(active, active * context, active), read)


def update(
    model: Architecture, device: Device, prompt: int, lengths: np.ndarray, passes: float, sharing: int = 1
) -> float:
    """Loss and gradients of these completions; `passes` is the cost in forward passes.

    `sharing` completions read their prompt together.
    """
    own, prompts = lengths.astype(float), len(lengths) / sharing
    pairs = (own * (own + 1) / 2 + own * prompt).sum() + prompts * prompt * (prompt + 1) / 2
    return passes * model.flops(own.sum() + prompts * prompt, pairs, own.sum()) / device.flops


def optimizer(model: Architecture, device: Device) -> float:
    """AdamW on float32: gradient read twice (clipping), weight and two moments read and written, a copy."""
    return model.parameters * (2 * 4 + 2 * 3 * 4 + device.value_bytes) / device.bandwidth


def all_reduce(model: Architecture, device: Device, devices: int) -> float:
    """Sum of float32 gradients in a ring of `devices`."""
    return 2 * (devices - 1) / devices * model.parameters * 4 / device.link


def sync_by_broadcast(model: Architecture, device: Device) -> float:
    """Weights from one trainer to all engines over the links between devices, in a pipeline."""
    return model.parameters * device.value_bytes / device.link


def sync_by_host(model: Architecture, device: Device) -> float:
    """Weights to shared memory on the host, and from there to every engine over its own link."""
    return 2 * model.parameters * device.value_bytes / device.host_link


# ---- the step -----------------------------------------------------------------------------------------


def step(model: Architecture, device: Device, work: Workload, layout: Layout) -> dict[str, float]:
    """Seconds of every phase and of the whole step, synchronous and asynchronous."""
    lengths = work.lengths()
    active = layout.in_flight * busy(lengths, work.completions)
    shares = [lengths[gpu :: layout.rollout_gpus] for gpu in range(layout.rollout_gpus)]
    # Completions of a puzzle share what its prompt leaves in memory.
    seconds = {
        "prefill": prefill(model, device, work.prompt_tokens, work.puzzles / layout.rollout_gpus),
        "decode, all at once": max(decode(model, device, work.prompt_tokens, share) for share in shares),
        "decode, always in flight": steady_decode(
            model, device, work.prompt_tokens, lengths, active / layout.rollout_gpus
        )
        / layout.rollout_gpus,
        "forward and backward": update(model, device, work.prompt_tokens, lengths, layout.forward_passes)
        / layout.trainer_gpus,
        "all-reduce": all_reduce(model, device, layout.trainer_gpus),
        "optimizer": optimizer(model, device),
        "sync by broadcast": sync_by_broadcast(model, device),
        "sync by shared memory": sync_by_host(model, device),
    }
    learning = sum(seconds[name] for name in ("forward and backward", "all-reduce", "optimizer"))
    sync = seconds["sync by broadcast"]
    seconds["synchronous step"] = seconds["prefill"] + seconds["decode, all at once"] + learning + sync
    rollout = seconds["prefill"] + seconds["decode, always in flight"]
    seconds["asynchronous step"] = max(rollout, learning) + sync
    return seconds


@dataclass(frozen=True)
class Settings:
    """What to compute."""

    workload: Workload = Workload()
    layout: Layout = Layout()
    device: Device = Device()
    efficiency: Efficiency = Efficiency()
    steps: tuple[int, ...] = (35, 48)
    """of a record"""
    out: Path | None = None
    """JSON file to write"""


QWEN3_4B = Architecture(36, 2560, 32, 8, 128, 9728, 151_936)


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{round(seconds) // 60}:{round(seconds) % 60:02d}"


def main(settings: Settings) -> None:
    """Print the table, write the file."""
    reached = step(QWEN3_4B, settings.efficiency.of(settings.device), settings.workload, settings.layout)
    peak = step(QWEN3_4B, settings.device, settings.workload, settings.layout)
    view = Table(
        "seconds", title=f"one GRPO step, {QWEN3_4B.parameters / 1e9:.3f} billion parameters", box=None
    )
    view.add_column("at the stated efficiency", justify="right")
    view.add_column("at peak", justify="right")
    for name in reached:
        view.add_row(
            name, f"{reached[name]:.2f}", f"{peak[name]:.2f}", end_section=name == "sync by shared memory"
        )
    for kind in ("synchronous", "asynchronous"):
        for count in settings.steps:
            times = [clock(count * seconds[f"{kind} step"]) for seconds in (reached, peak)]
            view.add_row(f"{count} {kind} steps", *times)
    console = Console()
    console.print(view)
    held = STATE_BYTES * QWEN3_4B.parameters / 1e9
    console.print(f"each trainer holds {held:.0f} GB of weights, gradients and moments, activations apart")
    console.print(
        f"public record: {PUBLIC[0]} steps in {clock(PUBLIC[1])}, {PUBLIC[1] / PUBLIC[0]:.1f} s a step"
    )
    if settings.out:
        report = {
            "settings": asdict(settings) | {"out": str(settings.out)},
            "seconds": reached,
            "seconds_at_peak": peak,
        }
        write_atomic(settings.out, json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Settings, prog="python -m benchmarks.llm_step_model", description=__doc__))
