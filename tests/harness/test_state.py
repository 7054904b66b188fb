"""A state is read back as it was, and saved so seldom that a run hardly pays for it."""

import signal
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Problem
from harness.state import Pace, Postponed, State, read_state, write_state


def test_a_state_is_read_back(tmp_path: Path) -> None:
    assert read_state(tmp_path, "a" * 32) is None
    for data in (b"", b"\n\n", bytes(range(256))):
        state = State("a" * 32, 3, 1.25, data)
        write_state(tmp_path, state)
        assert read_state(tmp_path, "a" * 32) == state
    with pytest.raises(Problem, match=r"is of the run a+\. Remedy: delete"):
        read_state(tmp_path, "b" * 32)


@given(st.data())
def test_no_damage_goes_unseen(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.getbasetemp()
    state = State("a" * 32, 3, 1.25, b"weights and more")
    write_state(folder, state)
    path = folder / "state.bin"
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:place]
    else:
        content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        found = read_state(folder, "a" * 32)
    except Problem as problem:
        assert "state.bin" in str(problem)
    else:
        assert found is not None and found.data == state.data


def test_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def save() -> None:
        now[0] += 2.0

    pace = Pace(None)
    for seconds, size, due in ((29, 0, False), (30, 0, True), (30, 10**9, False), (200, 10**9, True)):
        now[0] = 100 + seconds
        assert pace.due(size) == due
    pace.timed(save)  # 2 s are 0.5% of 400 s
    for seconds, due in ((399, False), (400, True)):
        assert Pace.SHARE * seconds == pytest.approx(2, abs=0.01)
        now[0] += seconds
        assert pace.due(0) == due
        now[0] -= seconds
    often = Pace(5.0)
    often.timed(save)
    now[0] += 5
    assert often.due(10**12)
    often.start()
    assert not often.due(0)


def test_ctrl_c_waits_for_a_saving_and_another_one_does_not(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    for second in (False, True):
        postponed = Postponed()
        postponed.hold()
        postponed.hold()
        signal.raise_signal(signal.SIGINT)
        assert postponed.number == signal.SIGINT
        assert "Ctrl-C: ends once the state is saved" in capfd.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            if second:
                signal.raise_signal(signal.SIGINT)
            else:
                postponed.release(interrupt=True)
        assert (
            signal.getsignal(signal.SIGINT) is before and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
        )
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
        postponed.release(interrupt=True)  # nothing is left to happen


def test_ctrl_c_waits_for_no_saving_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Postponed, "WAIT_S", 0.2)
    postponed = Postponed()
    postponed.hold()
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        time.sleep(30)
    postponed.hold()  # what has come goes no further than its run
    postponed.release(interrupt=True)


def test_signals_that_are_ignored_stay_so_and_those_under_torchrun_come_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as of what a script runs in the background
    postponed = Postponed()
    try:
        postponed.hold()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        postponed.release(interrupt=False)
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.setenv("LOCAL_RANK", "0")
    postponed.hold()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
