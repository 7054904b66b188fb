"""FIXED: manifest.json: with what a run was made."""

import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.config import Config
from agents.prompts.prompts import prompt_hashes
from harness.manifest import installed_packages, read_git
from harness.track import ROOT

LIBRARIES = {"babyai": ("minigrid",), "crafter": ("crafter",), "scienceworld": ("scienceworld",)}
"""What makes a benchmark's worlds: with another version of it, another run."""


def make_manifest(config: Config, confinement: str, replayed: Path | None) -> dict[str, Any]:
    """Everything about a run, or the replay of one, that is known when it starts: plain JSON values."""
    packages = installed_packages()
    git = read_git(ROOT)
    return {
        "benchmark": config.benchmark,
        "method": config.method,
        "model": config.model.name,
        "sandbox": confinement,
        "replays": replayed and str(replayed),
        "prompts": prompt_hashes(),
        "environments": {name: packages.get(name) for name in LIBRARIES[config.benchmark]},
        "git": git and git.model_dump(mode="json"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "argv": sys.argv,
        "started_utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }
