"""Links and pictures in the Markdown of a record: what they lead to exists, and no picture is outside.

A picture from elsewhere can change after the review and tells its host who reads; HTML can do more than
Markdown. So a record's Markdown holds neither. Links to other sites are allowed, by https.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

MARKDOWN_LIMIT = 100_000  # bytes of a file
_MARK = re.compile(r"<!-- [\w:-]+ -->\s*")


def faults_of_links(file: Path, root: Path) -> list[str]:
    """Everything wrong with the links, pictures and HTML of a Markdown file under `root`, with its line."""
    data = file.read_bytes()
    if len(data) > MARKDOWN_LIMIT:
        return [f"has {len(data):,} bytes, at most {MARKDOWN_LIMIT:,} of Markdown are read"]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ["is not UTF-8"]
    faults = []
    for line, token in _tokens(MarkdownIt("commonmark").enable("table").parse(text)):
        if token.type in ("html_inline", "html_block"):
            if not _MARK.fullmatch(token.content):
                faults.append(f"line {line}: holds HTML, {token.content.strip()[:40]!r}")
        elif token.type == "image":
            faults += [f"line {line}: {fault}" for fault in _faults(_target(token, "src"), file, root, True)]
        elif token.type == "link_open":
            faults += [
                f"line {line}: {fault}" for fault in _faults(_target(token, "href"), file, root, False)
            ]
    return faults


def _faults(target: str, file: Path, root: Path, picture: bool) -> Iterator[str]:
    what = "picture" if picture else "link"
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        if picture:
            yield f"picture {target[:80]!r} is from outside of the repository"
        elif parts.scheme != "https":
            yield f"link {target[:80]!r} is neither within the repository nor by https"
        return
    if not parts.path:
        if picture:
            yield "picture without an address"
        return
    path = unquote(parts.path)
    if path.startswith("/") or "\\" in path or not path.isprintable():
        yield f"{what} {target[:80]!r} is not relative to the file"
        return
    place = Path(os.path.normpath(file.parent / path))
    if not place.is_relative_to(root):
        yield f"{what} {target[:80]!r} leads out of the repository"
    elif not _exists(place, picture):
        yield f"{what} {target[:80]!r} leads nowhere"


def _exists(place: Path, picture: bool) -> bool:
    try:
        return place.is_file() or (place.is_dir() and not picture)
    except OSError:  # a name that is too long
        return False


def _target(token: Token, name: str) -> str:
    return str(token.attrs.get(name, ""))


def _tokens(tokens: list[Token]) -> Iterator[tuple[int, Token]]:
    """Every token with the line on which its block begins."""
    for token in tokens:
        line = token.map[0] + 1 if token.map else 0
        yield line, token
        for child in token.children or ():
            yield line, child
