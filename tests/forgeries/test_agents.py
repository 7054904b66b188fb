"""A record of the agents track, made by a script, passes every check; made untrue in one way, it fails."""

from collections.abc import Iterator

import agents_records
import pytest
from forgeries import agents
from forgeries.table import Forgery, identify, judge, rows

from toy_track.forging import Forged, failing


@pytest.fixture(scope="module")
def _copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forged]:
    with agents_records.easy_track():
        checkout = agents_records.make_checkout(tmp_path_factory.mktemp("checkout"))
        record = agents_records.make_record(checkout)
        yield Forged(record, checkout, tmp_path_factory.mktemp("agents"))


@pytest.fixture
def copy(_copy: Forged) -> Iterator[Forged]:
    yield _copy
    _copy.restore()


def test_a_true_record_passes(copy: Forged) -> None:
    assert failing(copy.checks()) == {}


@pytest.mark.parametrize(("forgery", "part"), rows(agents.FORGERIES), ids=identify)
def test_agents(forgery: Forgery, part: str, copy: Forged) -> None:
    judge(forgery, part, copy)
