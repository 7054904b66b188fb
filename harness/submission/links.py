"""Links and pictures in the Markdown of a record: what they lead to exists, and no picture is outside.

A picture from elsewhere can change after the review and tells its host who reads; HTML can do more than
Markdown. So a record's Markdown holds neither. Links to other sites are allowed, by https. An address in
plain text is a link too, as GitHub makes one of it. Footnotes and drawings in code, which GitHub knows and
Markdown does not, could hide any of these.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

MARKDOWN_LIMIT = 100_000  # bytes of a file
_ADDRESS = re.compile(r"(?i)(?:https?|ftp)://\S*|\bwww\.\S*|[\w.+-]+@[\w-]+\.[\w.-]+")
"""What GitHub links wherever it stands in text."""
_FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:")
_DRAWN = ("geojson", "mermaid", "stl", "topojson")
"""Languages of code that GitHub draws in place of showing it."""
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
    faults, links = [], 0
    for number, source in enumerate(text.split("\n"), start=1):
        if _FOOTNOTE.search(source):
            faults.append(f"line {number}: holds a footnote, {source.strip()[:40]!r}")
    for line, token in _tokens(MarkdownIt("commonmark").enable("table").parse(text)):
        links += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        if token.type == "fence" and token.info.strip().lower().startswith(_DRAWN):
            faults.append(f"line {line}: holds a drawing in code, {token.info.strip()[:40]!r}")
        elif token.type == "text" and not links:
            found = [target for target in _ADDRESS.findall(token.content) if not _by_https(target)]
            faults += [f"line {line}: {_outside(target)}" for target in found]
        elif token.type in ("html_inline", "html_block"):
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
            yield _outside(target)
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


def _by_https(target: str) -> bool:
    return target.lower().startswith("https://")


def _outside(target: str) -> str:
    return f"link {target[:80]!r} is neither within the repository nor by https"


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
