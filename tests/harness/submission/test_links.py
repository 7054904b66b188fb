"""Links and pictures of a record's Markdown: what each kind may lead to."""

from pathlib import Path

import pytest

from harness.submission.links import MARKDOWN_LIMIT, faults_of_links

OUTSIDE = "is neither within the repository nor by https"
FILE = "records/toy_track/2026-11-30_01_x/README.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / FILE).parent.mkdir(parents=True)
    for name in (f"{FILE[:-9]}curve.svg", "docs/a page.md", f"{FILE[:-9]}[x].md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        "![curve](curve.svg)",
        "[rules](../../../docs/a%20page.md#clock)",
        "[here](#idea)",
        "[docs](../../../docs)",
        "[paper](https://arxiv.org/abs/1)",
        "<https://a.b>",
        "<!-- results:start -->\n\n<!-- results:end -->",
        "`<b>` 1 < 2 & 3 > 2",
        "```\n![x](http://a/b.png)\n<img>\n```",
        "[x]: curve.svg\n[x]",
        "![](<[x].md>)",
        "[not a link]",
        "https://arxiv.org/abs/1, and (https://a.b/c).",
        "[http](https://a.b) and `http://a.b`, `www.a.b`, `a@b.c`",
        "```\nhttp://a.b www.a.b a@b.c\n```",
        "```python\nx = '$$'\n```",
        "@ada said 5 @ 3, awww. that is all",
        "x[^a] and [^b]",
    ],
)
def test_what_is_allowed(root: Path, text: str) -> None:
    (root / FILE).write_text(text)
    assert faults_of_links(root / FILE, root) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("![x](https://a.b/c.svg)", "line 1: picture 'https://a.b/c.svg' is from outside of the repository"),
        ("![x](//a.b/c.svg)", "line 1: picture '//a.b/c.svg' is from outside of the repository"),
        ("\n\n[![x](//a.b/c)](curve.svg)", "line 3: picture '//a.b/c' is from outside of the repository"),
        ("![x][y]\n\n[y]: http://a/b", "line 1: picture 'http://a/b' is from outside of the repository"),
        ("![x]()", "line 1: picture without an address"),
        ("![x](../../..)", "line 1: picture '../../..' leads nowhere"),
        ("[x](none.md)", "line 1: link 'none.md' leads nowhere"),
        ("[x](Curve.svg)", "line 1: link 'Curve.svg' leads nowhere"),
        (f"[x]({'a' * 300})", f"line 1: link '{'a' * 80}' leads nowhere"),
        ("[x](/docs)", "line 1: link '/docs' is not relative to the file"),
        ("[x](a%00b)", "line 1: link 'a%00b' is not relative to the file"),
        ("[x](../../../../etc)", "line 1: link '../../../../etc' leads out of the repository"),
        ("[x](http://a.b)", "line 1: link 'http://a.b' is neither within the repository nor by https"),
        ("[x](mailto:a@b.c)", "line 1: link 'mailto:a@b.c' is neither within the repository nor by https"),
        ("a <img src=x> b", "line 1: holds HTML, '<img src=x>'"),
        ("<details>\nx\n</details>", "line 1: holds HTML, '<details>\\nx\\n</details>'"),
        ("see http://a.b/c now", f"line 1: link 'http://a.b/c' {OUTSIDE}"),
        ("> | a |\n> | - |\n> | HTTP://a.b |", f"line 3: link 'HTTP://a.b' {OUTSIDE}"),
        ("# &#104;ttp://a.b", f"line 1: link 'http://a.b' {OUTSIDE}"),
        ("*www.a.b*", f"line 1: link 'www.a.b' {OUTSIDE}"),
        ("ftp://a.b", f"line 1: link 'ftp://a.b' {OUTSIDE}"),
        ("ask ada@a.b", f"line 1: link 'ada@a.b' {OUTSIDE}"),
        ("[a](curve.svg) http://a.b", f"line 1: link 'http://a.b' {OUTSIDE}"),
        ("<http://a.b>", f"line 1: link 'http://a.b' {OUTSIDE}"),
        ("[^1]\n\n[^1]:\n\n    ![x](http://a/b)", "line 3: holds a footnote, '[^1]:'"),
        ("```Mermaid\nclick a href 'http://a.b'\n```", "line 1: holds a drawing in code, 'Mermaid'"),
        ("<!-- x\n-->", "line 1: holds HTML, '<!-- x\\n-->'"),
    ],
)
def test_what_is_not(root: Path, text: str, says: str) -> None:
    (root / FILE).write_text(text)
    assert faults_of_links(root / FILE, root) == [says]


def test_files_that_cannot_be_read(root: Path) -> None:
    (root / FILE).write_bytes(b"\xff")
    assert faults_of_links(root / FILE, root) == ["is not UTF-8"]
    (root / FILE).write_bytes(b" " * (MARKDOWN_LIMIT + 1))
    assert faults_of_links(root / FILE, root) == ["has 100,001 bytes, at most 100,000 of Markdown are read"]
