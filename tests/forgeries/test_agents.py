"""A record of the agents track, made by a script, passes every check; made untrue in one way, it fails."""

from collections.abc import Iterator

import pytest

import agents_records
from agents.replay_record import differences, main
from forgeries import agents
from forgeries.agents import call, memory
from forgeries.table import Forgery, identify, judge, judge_seed, rows
from toy_track.forging import Forged, Step, failing


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


@pytest.mark.parametrize("name", agents.SAME_SEED)
def test_what_may_be_written_otherwise_gives_no_other_second_seed(name: str, copy: Forged) -> None:
    judge_seed(agents.SAME_SEED[name], copy)


SAID = "Thought: No script says this.\nAction: sing"
ANSWERED_OTHERWISE: dict[str, tuple[Step, str]] = {
    "another memory": (
        memory(lambda content: content["memory"]["codebook"]["functions"].pop()),
        "training ends with another memory",
    ),
    "another answer in training": (call("wake/000001/001", reply=SAID), "training ends otherwise: the rec"),
    "another answer in a test episode": (
        call("eval/000003/001", reply=SAID),
        "the evaluation ends otherwise: the recording does not answer 'eval/000003/002'",
    ),
    "another last answer of a test episode": (
        call("eval/000003/003", reply=SAID),
        "test episode 3 of 'putnext' is played otherwise",
    ),
    "another question": (call("sleep/1/0", request="0" * 64), "training ends otherwise: the recording does"),
}
"""What agrees with itself, so that no check sees it, and comes out otherwise when the run is made again."""


def test_a_true_record_is_made_again_from_its_answers(
    copy: Forged, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(copy.path)]) == 0
    assert capsys.readouterr().out.count("made again, and equal") == 2


@pytest.mark.parametrize("name", ANSWERED_OTHERWISE)
def test_what_no_check_sees_a_run_made_again_shows(name: str, copy: Forged) -> None:
    step, says = ANSWERED_OTHERWISE[name]
    copy.part = "verification"
    step(copy)
    copy.finish()
    assert failing(copy.checks()) == {}
    assert any(fault.startswith(says) for fault in differences(copy.path / "verification"))
