"""What the checks are said to prove is what their rules say."""

from harness.checks import CHECKS, explain
from harness.checks.__main__ import PAGE, with_table
from harness.track import ROOT


def test_every_check_is_explained_once() -> None:
    names = [name for name, _, _ in explain()]
    assert len(names) == len(set(names))
    assert set(names) == {name.removeprefix("verification/") for name in CHECKS}
    assert {name for name, subject, _ in explain() if subject == "each run"} == {
        name.removeprefix("verification/") for name in CHECKS if "/" in name
    }
    assert all(text.endswith(".") and text.count("|") == 0 for _, _, text in explain())


def test_the_page_holds_the_table() -> None:
    page = (ROOT / PAGE).read_text()
    assert with_table(page) == page, "run python -m harness.checks --write"
