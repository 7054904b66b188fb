"""There are as many forgeries as the page on verification says."""

from forgeries.__main__ import WAYS, table
from harness.checks.__main__ import PAGE
from harness.readme import find_block
from harness.track import ROOT


def test_each_track_has_its_own() -> None:
    assert sum(map(len, WAYS.values())) >= 80
    assert all(len(ways) >= 10 for ways in WAYS.values())
    for ways in WAYS.values():
        names = [way.name for way in ways]
        assert len(names) == len(set(names))


def test_the_page_counts_them() -> None:
    page = (ROOT / PAGE).read_text()
    assert find_block(page, "forgeries", file=PAGE.name).text == table(), "see forgeries/__main__.py"
