"""FIXED: manifest.json: with what a run was made."""

import platform
import sys
from datetime import UTC, datetime
from typing import Any

from agents.config import Config
from agents.prompts.prompts import prompt_hashes
from harness.manifest import installed_packages, read_git
from harness.track import ROOT

LIBRARIES = {"babyai": ("minigrid",), "crafter": ("crafter",), "scienceworld": ("scienceworld",)}
"""What makes a benchmark's worlds: with another version of it, another run."""


def make_manifest(config: Config, confinement: str) -> dict[str, Any]:
    """Everything about a run that is known when it starts, as plain JSON values."""
    packages = installed_packages()
    git = read_git(ROOT)
    return {
        "benchmark": config.benchmark,
        "method": config.method,
        "model": config.model.name,
        "sandbox": confinement,
        "prompts": prompt_hashes(),
        "environments": {name: packages.get(name) for name in LIBRARIES[config.benchmark]},
        "git": git and git.model_dump(mode="json"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "argv": sys.argv,
        "started_utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }
