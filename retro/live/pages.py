"""The pages, each one self-contained HTML text put together from `retro/live/page/`."""

import base64
import hashlib
from typing import NamedTuple

from harness.track import ROOT

FOLDER = ROOT / "retro" / "live" / "page"


class Page(NamedTuple):
    """A page and the headers that it is sent with."""

    html: str
    headers: dict[str, str]


def page(name: str) -> Page:
    """`<name>.html` with `<name>.css`, `common.js` and `<name>.js` put in; no other script may run in it."""
    style = (FOLDER / f"{name}.css").read_text()
    script = (FOLDER / f"{name}.js").read_text()
    if name != "enter":
        script = (FOLDER / "common.js").read_text() + script
    html = (FOLDER / f"{name}.html").read_text()
    html = html.replace("<!-- style -->", f"<style>{style}</style>")
    html = html.replace("<!-- script -->", f"<script>{script}</script>")
    policy = (
        "default-src 'none'; img-src 'self' data:; media-src 'self'; connect-src 'self'; base-uri 'none'; "
        f"form-action 'self'; frame-ancestors 'none'; style-src {_hash(style)}; script-src {_hash(script)}"
    )
    return Page(
        html,
        {
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        },
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
