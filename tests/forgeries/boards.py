"""What is made from the records, edited by hand."""

from typing import NamedTuple


class Edit(NamedTuple):
    """A text replaced in one file of the toy track's checkout, which is then named."""

    name: str
    file: str
    """A pattern that one file matches."""
    old: str
    new: str


_RECORD = "records/toy_track/*"
FORGERIES = [
    Edit("a better score on the board", "README.md", "0.9100", "0.9900"),
    Edit("a shorter time on the board", "README.md", "| 0:00 |", "| 0:0 |"),
    Edit("another contributor on the board", "README.md", "Ada, Bob", "Eve"),
    Edit("a row left out of the board", "README.md", "[by-heart]", "[by-luck]"),
    Edit("another point in the history", "docs/figures/toy_track_history.svg", "</svg>", "<path/></svg>"),
    Edit("another curve", f"{_RECORD}/training_curve.svg", "</svg>", "<path/></svg>"),
    Edit("a report that says less", f"{_RECORD}/mistakes.md", "- 9", "- "),
    Edit("a result in a record's README", f"{_RECORD}/README.md", "0.9100", "0.9900"),
]
