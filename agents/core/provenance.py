"""FIXED: manifest.json: with what a run was made."""

import platform
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.benchmarks.base import Benchmark
from agents.config import Config
from agents.core.checkpoint import config_hash
from agents.prompts.prompts import prompt_hashes
from agents.task import versions
from harness.files import sha256_bytes
from harness.manifest import installed_packages, read_git
from harness.track import ROOT


def make_manifest(
    config: Config, benchmark: Benchmark, confinement: str, replayed: Path | None
) -> dict[str, Any]:
    """Everything about a run, or the replay of one, that is known when it starts: plain JSON values.

    Raises:
        Problem: the config names a server, and none answers there.
    """
    git = read_git(ROOT)
    return {
        "benchmark": config.benchmark,
        "method": config.method,
        "model": config.model.name,
        "config": config_hash(config),
        "sandbox": confinement,
        "replays": replayed and str(replayed),
        "prompts": told_hashes(benchmark),
        "environments": _environments(config),
        "git": git and git.model_dump(mode="json"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": installed_packages(),
        "argv": sys.argv,
        "started_utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def told_hashes(benchmark: Benchmark) -> dict[str, str]:
    """SHA-256 of all fixed words that models read: every prompt, and the benchmark's own part of them."""
    own = {"rules": benchmark.rules(), "state_help": benchmark.state_help()}
    return prompt_hashes() | {name: sha256_bytes(text.encode()) for name, text in own.items()}


def _environments(config: Config) -> dict[str, str]:
    """The versions of what makes the worlds, here or on the server that plays them."""
    if config.server is not None:
        from agents.benchmarks.babyai.client import RemoteEnvironment

        with closing(RemoteEnvironment(config.server)) as environment:
            return environment.versions
    return versions(config.benchmark)
