"""What people read: every link leads somewhere, to the heading that it names, and every command is there."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from harness.submission.links import faults_of_links
from harness.track import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def anchors(path: Path) -> set[str]:
    """The fragments by which GitHub knows the headings of a file."""
    tokens = MarkdownIt("commonmark").parse(path.read_text())
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    plain = [re.sub(r"[`*]|\[(.*?)\]\(.*?\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    assert faults_of_links(path, ROOT) == []
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"(?s)```.*?```", "", path.read_text())):
        name, _, fragment = target.partition("#")
        if fragment and "://" not in target:
            assert fragment in anchors((path.parent / name) if name else path), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_modules_that_are_run_are_there(path: Path) -> None:
    for module in re.findall(r"python -m ([a-z_][\w.]*\w)", path.read_text()):
        place = ROOT / module.replace(".", "/")
        outside = not (ROOT / module.split(".")[0]).is_dir()
        assert outside or place.with_suffix(".py").is_file() or (place / "__main__.py").is_file(), module
