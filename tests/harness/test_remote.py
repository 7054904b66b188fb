"""A run on a lent machine: what is kept of it, however it ends, and that it is begun once."""

import json
import os
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from harness.errors import Problem
from harness.files import read_model
from harness.remote import Listing, carry_out
from harness.state import STATE_NAME

LOG = '{"event": "step", "monotonic": 1.0, "utc": "2026-01-01T00:00:00+00:00", "step": 3}\n'
RUN = f"""
import os, pathlib, sys, time
run = pathlib.Path("outputs/some-run")
(run / "checkpoint").mkdir(parents=True)
print("Run folder:", run, flush=True)
(run / "log.jsonl").write_text({LOG!r})
(run / "checkpoint/weights").write_bytes(bytes(range(256)))
(run / ".log.jsonl.0a1b2c3d.partial").write_text("half")
(run / {STATE_NAME!r}).write_bytes(b"what --resume would need")
"""


class Machine:
    """A folder to run in, a store, and how often it was committed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.launch = folder / "machine", folder / "store/some-launch"
        self.folder.mkdir()
        self.commits = 0
        self.on_commit: Callable[[int], None] = lambda number: None

    def commit(self) -> None:
        self.commits += 1
        self.on_commit(self.commits)

    def __call__(self, script: str, *, limit_s: float = 30.0, beat_s: float = 30.0) -> int:
        command = [sys.executable, "-c", script]
        return carry_out(
            command, self.launch, self.commit, folder=self.folder, limit_s=limit_s, beat_s=beat_s
        )

    @property
    def listing(self) -> Listing:
        return read_model(self.launch / "files.json", Listing)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_what_a_run_makes_is_kept_and_listed(machine: Machine) -> None:
    assert machine(RUN + "print('half a line', end=''); sys.exit(3)") == 3
    weights = bytes(range(256))
    assert (machine.launch / "run/log.jsonl").read_text() == LOG
    assert (machine.launch / "run/checkpoint/weights").read_bytes() == weights
    assert (machine.launch / "console.txt").read_text() == "Run folder: outputs/some-run\nhalf a line"
    assert machine.listing.status == 3
    assert {name: (file.size, file.sha256) for name, file in machine.listing.files.items()} == {
        "log.jsonl": (len(LOG), sha256(LOG.encode()).hexdigest()),
        "checkpoint/weights": (256, sha256(weights).hexdigest()),
    }
    assert machine.commits == 2  # the attempt, and the end
    attempt = json.loads((machine.launch / "attempt-1.json").read_text())
    assert attempt["attempt"] == 1 and attempt["machine"]


def test_an_attempt_after_the_first_is_recorded_and_refused(machine: Machine) -> None:
    machine(RUN)
    before = machine.listing
    with pytest.raises(Problem, match=r"some-launch: attempt 2 is refused: .* Remedy: launch anew"):
        machine("open('began', 'w')")
    with pytest.raises(Problem, match="attempt 3 is refused"):
        machine("open('began', 'w')")
    assert not (machine.folder / "began").exists()
    assert machine.listing == before
    assert {path.name for path in machine.launch.glob("attempt-*")} == {
        f"attempt-{number}.json" for number in (1, 2, 3)
    }
    assert machine.commits == 4


def test_a_folder_of_that_name_is_refused_whatever_made_it(machine: Machine) -> None:
    machine.launch.mkdir(parents=True)
    with pytest.raises(Problem, match="attempt 2 is refused"):
        machine("open('began', 'w')")


def test_signs_of_life_tell_the_last_event(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    def end(number: int) -> None:
        if number == 3:
            (machine.folder / "stop").touch()

    machine.on_commit = end
    wait = "while not os.path.exists('stop'): time.sleep(0.02)\n"
    assert machine(RUN + wait, beat_s=0.3) == 0
    output = capsys.readouterr().out
    assert "Run folder: outputs/some-run\n" in output
    assert "] last event step 3, 0 s ago\n" in output
    assert machine.commits >= 4


def test_a_run_without_events_says_so(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine("import time; time.sleep(0.5)", beat_s=0.2)
    assert "] no event yet\n" in capsys.readouterr().out
    assert machine.listing.files == {}


def test_a_store_that_fails_for_a_while_ends_no_run(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(number: int) -> None:
        if number == 2:
            raise ConnectionError("the network is away")

    machine.on_commit = fail
    assert machine("import time; time.sleep(0.5)", beat_s=0.2) == 0
    assert "Not stored this time: the network is away\n" in capsys.readouterr().out
    assert machine.listing.status == 0


POLITE = """
import signal
def note(number, frame):
    (run / "log.jsonl").write_text("interrupted")
    sys.exit(7)
signal.signal(signal.SIGTERM, note)
time.sleep(60)
"""


def test_a_machine_that_is_taken_away_lets_the_run_say_so_and_keeps_it(machine: Machine) -> None:
    def interrupt(number: int) -> None:
        if number == 3:  # what Modal sends to the process that waits
            raise KeyboardInterrupt

    machine.on_commit = interrupt
    with pytest.raises(KeyboardInterrupt):
        machine(RUN + POLITE, beat_s=0.3)
    assert (machine.launch / "run/log.jsonl").read_text() == "interrupted"
    assert machine.listing.status == 7 and machine.listing.files["log.jsonl"].size == len("interrupted")
    assert machine.commits == 4


def test_a_run_that_takes_too_long_is_ended(machine: Machine) -> None:
    with pytest.raises(Problem, match="stopped, for it took longer than 1 s"):
        machine(RUN + "time.sleep(60)", limit_s=1.0, beat_s=0.3)
    assert machine.listing.status == -15
    assert set(machine.listing.files) == {"log.jsonl", "checkpoint/weights"}


def test_what_does_not_end_politely_is_killed_with_all_that_it_started(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.remote.GRACE_S", 0.3)
    stubborn = """
import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
(run / "child").write_text(str(child.pid))
time.sleep(60)
"""
    with pytest.raises(Problem, match="took longer"):
        machine(RUN + stubborn, limit_s=1.0, beat_s=0.4)
    assert machine.listing.status == -9
    child = Path(f"/proc/{(machine.launch / 'run/child').read_text()}/stat")
    for _ in range(100):  # whoever inherits it has to bury it
        if not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.02)
    else:
        pytest.fail("the child lives")


def test_the_run_gets_keys_but_no_variable_that_overrides_it_and_nothing_tells_a_key(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "8271")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    look = "print(len(os.environ['OPENAI_API_KEY']), os.environ.get('OMP_NUM_THREADS'))"
    machine(RUN + look)
    output = capsys.readouterr().out
    assert "14 None\n" in output
    assert "Not in the environment of the run: " in output and "OMP_NUM_THREADS" in output
    assert os.environ["OMP_NUM_THREADS"] == "8271"
    kept = b"".join(path.read_bytes() for path in machine.launch.rglob("*") if path.is_file())
    assert b"sk-very-secret" not in kept + output.encode() and b"8271" not in kept
