"""The table of forgeries in docs/verification.md: `PYTHONPATH=.:tests python -m forgeries` prints it."""

from collections.abc import Sequence

from forgeries import agents, boards, llm, non_llm, records, retro, runs
from forgeries.table import Forgery

WAYS: dict[str, Sequence[Forgery]] = {
    "any record, on the toy track": [*records.FORGERIES, *runs.FORGERIES],
    "non_llm": non_llm.FORGERIES,
    "llm": llm.FORGERIES,
    "retro": retro.FORGERIES,
    "agents": agents.FORGERIES,
}
"""Every way of forging a record, by what it is a record of."""


def table() -> str:
    """A row for each track: ways, the records that they make, and the checks that must catch them."""
    rows = [("record", "ways", "forged records", "caught by"), ("---", "---:", "---:", "---:")]
    for name, ways in WAYS.items():
        forged = sum(len(way.parts) for way in ways)
        rows.append((name, str(len(ways)), str(forged), f"{len({way.fails[0] for way in ways})} checks"))
    count = str(len(boards.FORGERIES))
    rows.append(("boards and figures", count, count, "`python -m harness.boards --check`"))
    total = [sum(int(row[column]) for row in rows[2:]) for column in (1, 2)]
    rows.append(("all", *map(str, total), ""))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    print(table())
