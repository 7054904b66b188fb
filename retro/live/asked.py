"""What a request asks for; what is malformed is refused here."""

import re

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from retro.live.snapshot import SIZES
from retro.live.store import Upload

CHUNK = 1 << 20
"""Bytes of a part of an upload, at most."""
RUN, HASH = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{64}")


def bearer_of(request: Request) -> str:
    kind, _, key = request.headers.get("Authorization", "").partition(" ")
    return key if kind == "Bearer" else ""


def matched(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise HTTPException(400, "malformed address")
    return text


def name_of(request: Request) -> str:
    name: str = request.path_params["name"]
    if name not in SIZES:
        raise HTTPException(404, f"a live view has {', '.join(SIZES)}")
    return name


def upload_of(request: Request) -> tuple[Upload, int]:
    """(what is uploaded, from which byte on), as the address says."""
    numbers = []
    for name in ("size", "offset"):
        text = request.query_params.get(name, "0")
        if not re.fullmatch("[0-9]{1,12}", text, re.ASCII):
            raise HTTPException(400, f"{name} is not a number of bytes")
        numbers.append(int(text))
    run, digest = (
        matched(pattern, request.path_params[name]) for pattern, name in ((RUN, "run"), (HASH, "sha256"))
    )
    return Upload(run, name_of(request), digest, numbers[0]), numbers[1]


async def body_of(request: Request, most: int) -> bytes:
    """What was sent, whole; what is broken off counts as nothing."""
    content = bytearray()
    try:
        async for part in request.stream():
            content += part
            if len(content) > most:
                raise HTTPException(413, f"at most {most:,} bytes at a time")
    except ClientDisconnect as error:
        raise HTTPException(400, "broken off") from error
    return bytes(content)
