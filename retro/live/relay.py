"""Uploads what is published in a run folder to a backend, beside the search, which it cannot hold up.

    RETRO_LIVE_UPLOAD_KEY=... python -m retro.live.relay outputs/retro/... --url https://...

What fails is tried again, after 1 to 60 seconds, and a large file goes on where it was broken off.
"""

import argparse
import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase
from requests.exceptions import RequestException

from harness.errors import Problem, run_command
from harness.files import open_file
from retro.live.keys import UPLOAD, read_key
from retro.live.snapshot import LIVE, SIZES, SNAPSHOT, parse_snapshot

CHUNK = 256 << 10  # bytes of a file in one request: between two of them a newer snapshot goes
EVERY = 1.0  # seconds between looks at the folder
LONGEST = 60.0  # seconds until another try
TIMEOUT = (10, 30)  # seconds to connect, and without an answer
LAST = 60.0  # seconds for what is left when the search has ended

Signature = tuple[int, int, int]


class Key(AuthBase):
    """The key in every request; requests drops it where another host is redirected to."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, request: Any) -> Any:
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


class Trouble(Exception):
    """What may go better at another try."""


@dataclass
class File:
    """A version of a file on its way; `handle` keeps it even when a newer one takes its place."""

    handle: BufferedReader
    signature: Signature
    size: int
    sha256: str
    offset: int = 0


class Relay:
    """Uploads one live view. `cycle` sends what is new, a large file in parts."""

    def __init__(self, folder: Path, url: str, key: str, say: Callable[[str], None] = print) -> None:
        """folder: the run folder. say: told each kind of trouble once; a Problem where the URL is none."""
        self._folder, self._url, self._say = folder / LIVE, checked_url(url), say
        self._session = requests.Session()
        self._session.auth = Key(key)
        self._run = ""
        self._files: dict[str, File] = {}
        self._done: dict[str, tuple[Signature, bool]] = {}
        """Name -> the version that was taken or refused for good last, and whether it was taken."""
        self._said: set[str] = set()
        self.wait = 0.0
        """Seconds to wait after a failure; 0 = there was none."""

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go()
        self._session.close()

    def run(self, ended: threading.Event) -> None:
        """Upload until `ended`, and then what is left, as long as that goes."""
        deadline = float("inf")
        while True:
            left = self.cycle()
            if ended.is_set():
                deadline = min(deadline, time.monotonic() + LAST)
                if not left or time.monotonic() > deadline:
                    return
                time.sleep(min(self.wait, 5.0))
            else:
                ended.wait(self.wait or (0.0 if left else EVERY))

    def cycle(self) -> bool:
        """Send what has changed, and of a large file one part; whether something is left to send."""
        left = False
        try:
            for name in SIZES:
                left |= self._send(name)
        except (Trouble, Problem, RequestException, OSError) as error:
            said = (
                str(error) if isinstance(error, Trouble | Problem) else f"no answer: {type(error).__name__}"
            )
            self._tell(f"{said}; the live view tries again")
            self.wait = min(LONGEST, 2 * self.wait or 1.0)
            return True
        self.wait = 0.0
        return left

    def _send(self, name: str) -> bool:
        file = self._next(name)
        if file is None:
            return False
        file.handle.seek(file.offset)
        part = file.handle.read(CHUNK)
        answer = self._session.put(
            f"{self._url}/api/uploads/{self._run}/{name}/{file.sha256}",
            params={"size": file.size, "offset": file.offset},
            data=part,
            timeout=TIMEOUT,
            allow_redirects=False,
        )
        said = _json(answer)
        status, reason = answer.status_code, str(said.get("error", "no reason is given"))[:300]
        if status == 409:  # an answer was lost, or the backend has begun anew
            received = said.get("received")
            if type(received) is not int or not 0 <= received < file.size or received == file.offset:
                raise Trouble(f"{self._url} answers 409, and not as a backend does")
            file.offset = received
            return True
        whole, there = said.get("whole"), said.get("files")
        if status == 200 and (type(whole) is not bool or not isinstance(there, dict)):
            raise Trouble(f"{self._url} answers 200, and not as a backend does")
        if status == 404:
            self._done.pop(SNAPSHOT, None)  # it makes the run known
        if status in (400, 413, 422):
            self._tell(f"{name} is refused: {reason}")
        elif status != 200:
            raise Trouble(f"{self._url} answers {status}: {reason}")
        elif not whole:
            file.offset += len(part)
            return True
        self._done[name] = file.signature, status == 200
        self._files.pop(name).handle.close()
        lost = self._done.keys() - there.keys() if isinstance(there, dict) and status == 200 else ()
        for other in [other for other in lost if self._done[other][1]]:
            del self._done[other]
        return False

    def _next(self, name: str) -> File | None:
        """The version of a file that is to be sent: the newest, but a large one that is begun comes first."""
        present = self._files.get(name)
        if present is not None and present.size > CHUNK:
            return present
        try:
            handle = open_file(self._folder / name)
        except FileNotFoundError:
            return None
        stat = os.fstat(handle.fileno())
        signature = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        done = self._done.get(name)
        if (done is not None and done[0] == signature) or not 0 < stat.st_size <= SIZES[name]:
            handle.close()
            if stat.st_size > SIZES[name]:
                self._tell(f"{name} has more than {SIZES[name]:,} bytes, and is not uploaded")
            return None
        if present is not None:
            present.handle.close()
        file = File(handle, signature, stat.st_size, hashlib.file_digest(handle, "sha256").hexdigest())
        if name == SNAPSHOT:
            try:
                self._meet(file)
            except Problem:
                handle.close()
                raise
        self._files[name] = file
        return file

    def _meet(self, snapshot: File) -> None:
        """Turn to the run that the folder shows now."""
        snapshot.handle.seek(0)
        run = parse_snapshot(snapshot.handle.read(), self._folder / SNAPSHOT).run.id
        if run != self._run:
            self._run, self._done = run, {}
            self._let_go()

    def _let_go(self) -> None:
        while self._files:
            self._files.popitem()[1].handle.close()

    def _tell(self, text: str) -> None:
        if text not in self._said and len(self._said) < 20:
            self._said.add(text)
            self._say(text)


def checked_url(url: str) -> str:
    """An address of a backend, without a last slash; a Problem where it is none."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of its host or its port
        whole = False
    if not whole:
        remedy = "begin it with http:// or https://, then host and port"
        raise Problem(f"{url!r} is not an address of a backend", remedy=remedy)
    if parts.username or parts.query or parts.fragment:
        raise Problem("the address holds more than a host and a path", remedy=f"set {UPLOAD} for the key")
    return url.rstrip("/")


def _json(answer: requests.Response) -> dict[str, Any]:
    try:
        said = answer.json()
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m retro.live.relay", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="the run folder")
    parser.add_argument("--url", required=True, help="of the backend")
    parser.add_argument("--key-file", type=Path, help=f"instead of {UPLOAD}")
    parser.add_argument("--with-caller", action="store_true", help="end when standard input does")
    options = parser.parse_args()
    key = read_key(UPLOAD, options.key_file, of_backend=True)
    ended = threading.Event()
    if options.with_caller:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the search

        def wait() -> None:
            os.read(0, 1)
            ended.set()

        threading.Thread(target=wait, daemon=True).start()
    with Relay(options.folder, options.url, key, lambda text: print(text, file=sys.stderr)) as relay:
        relay.run(ended)
    return 0


if __name__ == "__main__":
    run_command(main)
