"""The rule about what became of a record since: the ledger of its track is whole, and says so."""

from harness.checks.base import RecordFolder, Rule, rule
from harness.standing import read_standings


@rule("name_matches")
def standing(home: RecordFolder) -> str:
    """The ledger of standings can be read; it says whether the record was retimed or invalidated."""
    return str(read_standings(home.place.parent).get(home.place.name, "stands as it was made"))


RULES: tuple[Rule[RecordFolder], ...] = (standing,)
