"""Keys that protect the live view: read from the environment or a file, never from the command line."""

import hmac
import os
from pathlib import Path

from harness.errors import Problem
from harness.files import read_bytes

UPLOAD, VIEW = "RETRO_LIVE_UPLOAD_KEY", "RETRO_LIVE_VIEW_KEY"
"""Environment variables that hold the key for uploads and the key for whoever looks."""

LEAST, MOST = 16, 256  # characters
_MAKE = 'make one: python -c "import secrets; print(secrets.token_urlsafe(24))"'
_TAKE = "take the one that the backend was started with: it refuses any other"


def read_key(variable: str, file: Path | None, *, of_backend: bool = False) -> str:
    """The key in a file, or else in an environment variable; messages never hold it.

    of_backend: a backend elsewhere has it already, so a new one would not do.

    Raises:
        Problem: there is none, it is too short or too long, or is not of printable ASCII without blanks.
    """
    remedy = _TAKE if of_backend else _MAKE
    if file is not None:
        key, source = read_bytes(file, links=True).decode("ascii", "replace").strip(), str(file)
    else:
        key, source = os.environ.get(variable, "").strip(), f"the environment variable {variable}"
        if not key:
            raise Problem(f"{source} holds no key", remedy=remedy)
    if not LEAST <= len(key) <= MOST or not all("!" <= letter <= "~" for letter in key):
        reason = f"the key in {source} must be {LEAST} to {MOST} printable letters of ASCII without blanks"
        raise Problem(reason, remedy=remedy)
    return key


def same(given: str, key: str) -> bool:
    """Whether a key is the right one, in a time that tells nothing of where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), key.encode())
