"""FIXED: whether a model can be asked, seen before anything is played; and the server of the scripted one."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from urllib.parse import urlsplit

from agents.llm.providers import read_key, rules_for
from agents.llm.settings import ModelSettings
from harness.errors import Problem

SCRIPTED = "scripted"
"""As a recipe's base_url and model: a program in place of a model, started for the run, to try the way."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MOST = 2**22  # bytes of a list of models
_SEE_REMEDY = (
    "start a server with agents/scripts/run_server.sh, or choose a model with --recipe.provider, "
    "--recipe.model and --recipe.base-url, or try the way with --smoke, which needs none"
)


def check_reachable(settings: ModelSettings, *, timeout_s: float = 10.0, remedy: str = _SEE_REMEDY) -> None:
    """Ask the model's server which models it has; `remedy` is what to do where none answers.

    Raises:
        Problem: its key is missing or refused, nothing answers, or it lists models and not this one.
    """
    rules = rules_for(settings)
    key = read_key(rules)
    request = urllib.request.Request(f"{rules.base_url}/models")
    if key is not None:
        request.add_header("Authorization", f"Bearer {key}")
    proxies: dict[str, str] | None = {} if urlsplit(rules.base_url).hostname in _LOOPBACK else None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))
    try:
        with opener.open(request, timeout=timeout_s) as response:
            names = _names(response.read(_MOST))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (401, 403):
            what = f"the key in {rules.key_env}" if rules.key_env else "a request without a key"
            raise Problem(
                f"{rules.host} refuses {what} (status {error.code})", remedy="set a valid key"
            ) from None
        return  # it answers, and lists no models
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise Problem(f"no model answers at {rules.base_url}: {reason}", remedy=remedy) from None
    except (HTTPException, ValueError):
        raise Problem(f"what answers at {rules.base_url} speaks no HTTP", remedy=remedy) from None
    if names and settings.name not in names:
        raise Problem(
            f"{rules.host} has no model {settings.name!r}",
            remedy=f"choose one that it has: {', '.join(sorted(names)[:20])}",
        )


def _names(body: bytes) -> set[str]:
    """Names in a list of models; empty where it is none."""
    try:
        return {str(model["id"]).removeprefix("models/") for model in json.loads(body)["data"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return set()


@contextmanager
def model_server(base_url: str | None) -> Iterator[str | None]:
    """The address to ask; where `base_url` is SCRIPTED, that of a server that runs as long as this."""
    if base_url != SCRIPTED:
        yield base_url
        return
    from agents.llm.chat_app import background
    from agents.scripted.server import scripted_app

    with background(scripted_app("demo")) as address:
        yield address
