"""Rules about what people read: the words on the board and the record's README."""

from harness.checks.base import Pending, RecordFolder, Rule, rule
from harness.errors import Problem
from harness.readme import IDEA_PLACEHOLDER, RESULTS, find_block, results_block
from harness.record import (
    CONTRIBUTOR_PLACEHOLDER,
    DESCRIPTION_PLACEHOLDER,
    README,
    RECORD,
    contributors_fault,
    description_fault,
)


@rule("schema")
def description(home: RecordFolder) -> str:
    """The description is one plain line of at most 200 characters."""
    if home.record.description == DESCRIPTION_PLACEHOLDER:
        raise Pending("description is the placeholder, expected your own words", file=RECORD)
    if fault := description_fault(home.record.description):
        raise Problem(f"description {fault}: found {home.record.description[:80]!r}", file=RECORD)
    return home.record.description


@rule("schema")
def contributors(home: RecordFolder) -> str:
    """Contributors are named in plain words, each once."""
    if CONTRIBUTOR_PLACEHOLDER in home.record.contributors:
        raise Pending("contributors is the placeholder, expected names", file=RECORD)
    if fault := contributors_fault(home.record.contributors):
        raise Problem(f"contributors {fault}", file=RECORD)
    return ", ".join(home.record.contributors)


@rule("schema")
def hardware(home: RecordFolder) -> str:
    """The machine is named in one plain line, as its system names it."""
    if fault := description_fault(home.record.hardware):
        raise Problem(f"hardware {fault}", file=RECORD)
    return home.record.hardware


@rule("track")
def readme(home: RecordFolder) -> str:
    """The results in README.md, between their marks, repeat record.json."""
    block = find_block(home.text(README), RESULTS, file=README)
    expected = results_block(home.record, home.track)
    if block.text == expected:
        return "repeats record.json"
    found, wanted = block.text.split("\n"), expected.split("\n")
    for offset, (have, want) in enumerate(zip(found, wanted, strict=False)):
        if have != want:
            raise Problem(f"found {have!r}, expected {want!r}", file=README, line=block.line + offset)
    raise Problem(f"has {len(found)} lines of results, expected {len(wanted)}", file=README, line=block.line)


@rule("track")
def idea(home: RecordFolder) -> str:
    """The README says in the author's own words what was done."""
    for line, text in enumerate(home.text(README).split("\n"), start=1):
        if IDEA_PLACEHOLDER in text:
            raise Pending("the placeholder, expected the idea in your own words", file=README, line=line)
    return "written"


RULES: tuple[Rule[RecordFolder], ...] = (description, contributors, hardware, readme, idea)
