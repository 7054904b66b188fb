"""FIXED: the config of an experiment: a YAML file in which unknown keys and unknown tasks are refused."""

import ipaddress
import re
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, Field

from agents.benchmarks import BENCHMARKS, load_benchmark
from agents.benchmarks.base import Split
from agents.llm.ledger import Budget
from agents.llm.settings import ModelSettings
from agents.methods import METHODS
from agents.methods.base import MethodSettings
from agents.strict_yaml import Document, Place, check, read_yaml, suggestion
from harness.errors import Problem
from harness.files import STRICT
from harness.track import ROOT

CONFIGS = ROOT / "agents" / "configs"


MOST_EPISODES = 1_000_000


class Phase(BaseModel):
    """A stretch of the stream of episodes: its tasks in turn."""

    model_config = STRICT

    tasks: tuple[str, ...] = Field(min_length=1)
    episodes: int = Field(ge=1, le=MOST_EPISODES)


class Limits(BaseModel):
    """The most that a run may take, evaluation included; null = no limit."""

    model_config = STRICT

    dollars: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, ge=1)
    """Prompt and completion."""
    calls: int | None = Field(default=None, ge=1)

    def budget(self) -> Budget:
        return Budget(self.dollars, self.tokens, self.calls)


class Evaluation(BaseModel):
    """Episodes after the last phase, with the memory frozen."""

    model_config = STRICT

    split: Split
    tasks: tuple[str, ...] = Field(min_length=1)
    episodes: int = Field(ge=1, le=MOST_EPISODES)


class Config(BaseModel):
    """All that decides what an experiment does."""

    model_config = STRICT

    benchmark: str
    method: str
    model: ModelSettings
    phases: tuple[Phase, ...] = Field(min_length=1)
    split: Literal["train", "valid"] = "train"
    """Which seeds the phases draw from."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    sleep_every: int = Field(default=10, ge=1)
    """Episodes between two sleeps: a batch. A method that learns from each episode sleeps after each."""
    turn_limit: int = Field(default=100, ge=1)
    """Answers in an episode."""
    history: int = Field(default=16, ge=1)
    """Latest turns that prompts repeat word for word."""
    episode_tokens: int | None = Field(default=None, ge=1)
    """An episode that has used as many asks for no further answer; null = no limit."""
    parallel: int = Field(default=4, ge=1, le=256)
    """Episodes at a time, where the method allows it. Results are the same with any number."""
    budget: Limits = Limits()
    method_settings: MethodSettings = MethodSettings.model_validate({})
    sandbox: Literal["locked", "unsafe"] = "locked"
    """"unsafe" runs model-written code unconfined on machines that cannot lock it down."""
    evaluate: Evaluation | None = None
    server: str | None = None
    """babyai alone: where a server of BabyAI listens that episodes are played on; null = in this process."""

    @property
    def episodes(self) -> int:
        """Of all phases."""
        return sum(phase.episodes for phase in self.phases)


def read_config(
    path: Path, *, model: str | None = None, base_url: str | None = None, server: str | None = None
) -> Config:
    """Read a config; `model`, `base_url` and `server` take the place of those in the file.

    Raises:
        Problem: with file and line: no YAML, a key missing, unknown or malformed, a benchmark, method or
            task that there is not, or a server for a benchmark that has none.
    """
    if not path.is_file():
        known = sorted(found.relative_to(ROOT).as_posix() for found in CONFIGS.glob("*/*.yaml"))
        raise Problem(f"there is no config {str(path)!r}", remedy=suggestion(path.as_posix(), known))
    document = read_yaml(path)
    if model is not None or base_url is not None:
        document = document._replace(value=_elsewhere(document.value, model, base_url))
    if server is not None:
        document = document._replace(value={**document.value, "server": server})
    config = check(document, Config)
    _check_names(config, document)
    return config


def config_text(config: Config) -> str:
    """The YAML that `read_config` reads back equal, with every key."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100)


def differences(before: Config, after: Config) -> list[str]:
    """The keys in which two configs differ: ["model.name", "phases"]."""
    return sorted(_differences(before.model_dump(mode="json"), after.model_dump(mode="json"), ""))


def _differences(before: dict[str, Any], after: dict[str, Any], prefix: str) -> list[str]:
    found = []
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(old, new, f"{prefix}{key}.")
        elif old != new:
            found.append(f"{prefix}{key}")
    return found


def _check_names(config: Config, document: Document) -> None:
    """Refuse a benchmark, method or task that there is not."""
    for kind, name, known in (
        ("benchmark", config.benchmark, list(BENCHMARKS)),
        ("method", config.method, sorted(METHODS)),
    ):
        if name not in known:
            raise document.problem((kind,), f"there is no {kind} {name!r}", suggestion(name, known))
    if config.server is not None and config.benchmark != "babyai":
        raise document.problem(("server",), f"{config.benchmark} has no server", "take the key `server` out")
    tasks = load_benchmark(config.benchmark).tasks
    named: list[tuple[Place, tuple[str, ...]]] = []
    for number, phase in enumerate(config.phases):
        named.append((("phases", number, "tasks"), phase.tasks))
    if config.evaluate is not None:
        named.append((("evaluate", "tasks"), config.evaluate.tasks))
    for place, names in named:
        for number, name in enumerate(names):
            if name not in tasks:
                reason = f"{config.benchmark} has no task {name!r}"
                raise document.problem((*place, number), reason, suggestion(name, list(tasks)))


def _elsewhere(value: dict[str, Any], name: str | None, base_url: str | None) -> dict[str, Any]:
    """The config with another model or server.

    Where that is another provider's, what was said for the old one's model is dropped. A server of one's own
    has no price, so a limit in dollars is dropped too.
    """
    old = value.get("model")
    if not isinstance(old, dict):
        return value
    provider = old.get("provider")
    if base_url is not None:
        provider = "local" if _near(base_url) else "compatible"
    elif name is not None:
        provider = "gemini" if name.startswith("gemini") else provider
        provider = "openai" if re.match(r"gpt-\d|o\d", name) else provider
    kept = dict(old)
    if provider != old.get("provider"):
        own = ("base_url", "api_key_env", "extra_body", "temperature", "top_p", "seed")
        kept = {key: entry for key, entry in old.items() if key not in own}
    changed = {"name": name, "base_url": base_url, "provider": provider}
    kept.update({key: entry for key, entry in changed.items() if entry is not None})
    if name is not None:
        kept.pop("price", None)
    result = {**value, "model": kept}
    if provider == "local" and isinstance(value.get("budget"), dict):
        result["budget"] = {key: limit for key, limit in value["budget"].items() if key != "dollars"}
    return result


def _near(base_url: str) -> bool:
    """Whether an address is on this machine or in a network of its own."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:
        return False  # no address, as the settings will say
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host
