"""Runs fetched by a stand-in for the command `modal`, which spoils what it fetches and reports success."""

import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from harness.assemble import main
from harness.errors import Problem
from harness.fetch import fetch_for_record, fetch_run
from harness.files import write_model
from harness.remote import Listing, StoredFile, carry_out
from harness.track import ROOT
from toy_track.records import make_checkout, make_run, plain_machine

LAUNCH = "20261130-120000_toy_track_cpu"
# volume get VOLUME REMOTE LOCAL, with $STORE for the volume and, where REMOTE ends with $SPOILT, a $FAULT.
STAND_IN = f"""#!{sys.executable} -SE
import os, shutil, sys
assert sys.argv[1:4] == ["volume", "get", "learning-speedruns"]
remote, local = sys.argv[4:]
source, fault = os.path.join(os.environ["STORE"], remote), os.environ["FAULT"]
if not os.path.isfile(source):
    sys.exit("No such file or directory")
data = open(source, "rb").read()
if remote.endswith(os.environ["SPOILT"]):
    if fault == "truncate":
        data = data[:-7]
    if fault == "zeros":
        data = bytes(len(data))
    if fault == "hole":
        data = data[:40] + bytes(40) + data[80:]
    if fault == "empty":
        data = b""
    if fault == "drop":
        sys.exit(0)
    if fault == "folder":
        os.mkdir(local)
        sys.exit(0)
    if fault == "link":
        os.symlink("/etc/hostname", local)
        sys.exit(0)
    if fault == "strange":
        open(os.path.join(os.path.dirname(local), "strange.py"), "w").write("...")
    if fault == "fail":
        open(local, "wb").write(data[:9])
        sys.exit("Error: connection reset by peer")
open(local, "wb").write(data)
"""


@pytest.fixture(scope="module", autouse=True)
def machine() -> Iterator[None]:
    with plain_machine():
        yield


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A volume with a launch of the toy track on it."""
    folder = tmp_path_factory.mktemp("remote")
    run = make_run(folder)
    (run / "training").mkdir()
    (run / "training/notes.txt").write_text("many")
    command = [sys.executable, "-c", f"print('Run folder: {run}')"]
    carry_out(command, folder / "store" / LAUNCH, lambda: None, folder=folder, limit_s=60)
    return folder / "store"


@pytest.fixture
def checkout(stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose PATH has the stand-in."""
    command = tmp_path / "bin/modal"
    command.parent.mkdir()
    command.write_text(STAND_IN)
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.parent))
    monkeypatch.setenv("STORE", str(stored))
    monkeypatch.setenv("FAULT", "")
    monkeypatch.setenv("SPOILT", "evidence.jsonl")
    return make_checkout(tmp_path / "checkout")


def outputs(checkout: Path) -> list[str]:
    return sorted(path.name for path in checkout.glob("outputs/*"))


def test_a_run_comes_as_it_was(checkout: Path, stored: Path) -> None:
    run = fetch_run(LAUNCH, checkout / "outputs")
    assert run == checkout / "outputs" / LAUNCH
    names = {path.name for path in run.iterdir()}
    assert names == {"manifest.json", "log.jsonl", "speedrun.py", "checkpoint.bin", "evidence.jsonl"}
    for name in names:
        assert (run / name).read_bytes() == (stored / LAUNCH / "run" / name).read_bytes()
    assert outputs(checkout) == [LAUNCH]


def test_from_modal_to_the_board(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.boards.ROOT", checkout)
    for name, value in {"SOURCE": "modal", "RUN": LAUNCH, "DEST": "by-heart", "VERIFY_OF": ""}.items():
        monkeypatch.setenv(name, value)
    assert main([], root=checkout) == 0
    (record,) = checkout.glob("records/toy_track/*_by-heart")
    assert json.loads((record / "record.json").read_text())["score"]["count"] == 100
    assert "--verify" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fault", "spoilt", "reason"),
    [
        (
            "truncate",
            "evidence.jsonl",
            r"run/evidence.jsonl: came with \d+ bytes of \d+\. Remedy: fetch it again",
        ),
        ("empty", "evidence.jsonl", r"run/evidence.jsonl: came with 0 bytes of \d+"),
        ("zeros", "checkpoint.bin", "run/checkpoint.bin: came as zeros alone"),
        ("hole", "evidence.jsonl", "run/evidence.jsonl: came with other bytes than it was stored with"),
        ("drop", "log.jsonl", "run/log.jsonl: did not come, though modal reports no error"),
        ("folder", "log.jsonl", "run/log.jsonl: did not come"),
        ("link", "log.jsonl", "run/log.jsonl: did not come"),
        ("strange", "speedrun.py", "run: came and are not listed: strange.py"),
        (
            "fail",
            "manifest.json",
            r"exit status 1\): Error: connection reset by peer\. Remedy: modal volume ls",
        ),
        ("truncate", "files.json", "files.json:.* not JSON"),
        ("zeros", "files.json", "files.json:.* not JSON"),
        ("drop", "files.json", "files.json: cannot be read"),
    ],
)
def test_what_does_not_come_whole_is_refused_without_a_trace(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, fault: str, spoilt: str, reason: str
) -> None:
    monkeypatch.setenv("FAULT", fault)
    monkeypatch.setenv("SPOILT", spoilt)
    with pytest.raises(Problem, match=reason):
        fetch_run(LAUNCH, checkout / "outputs")
    assert outputs(checkout) == []
    monkeypatch.setenv("FAULT", "")
    fetch_run(LAUNCH, checkout / "outputs")


def listed(stored: Path, name: str, change: object) -> str:
    """Another launch with the same run and a changed list of files; returns its name."""
    content = json.loads((stored / LAUNCH / "files.json").read_text())
    content["files"] = change
    (stored / name).mkdir(exist_ok=True)
    (stored / name / "files.json").write_text(json.dumps(content))
    return name


FILE = {"size": 1, "sha256": "0" * 64}


@pytest.mark.parametrize(
    "name", ["../../evil.py", "..", ".", "/etc/evil", "a/../../evil", "", "a//b", "..\\evil", "a\nb", "ünï"]
)
def test_names_that_lead_out_of_the_folder_are_refused(checkout: Path, stored: Path, name: str) -> None:
    launch = listed(stored, "forged", {"manifest.json": FILE, name: FILE})
    with pytest.raises(Problem, match="which is not the name of a file in the run folder"):
        fetch_run(launch, checkout / "outputs")
    assert outputs(checkout) == []


@pytest.mark.parametrize("entry", [{"size": -1, "sha256": "0" * 64}, {"size": 1, "sha256": "0"}, {}, None])
def test_a_malformed_list_is_refused(checkout: Path, stored: Path, entry: object) -> None:
    with pytest.raises(Problem, match=r"files.manifest.json"):
        fetch_run(listed(stored, "malformed", {"manifest.json": entry}), checkout / "outputs")


def test_a_launch_that_made_no_run_is_told_apart(checkout: Path, stored: Path) -> None:
    with pytest.raises(Problem, match=r"the run did not begin, status 0\. Remedy: see console.txt"):
        fetch_run(listed(stored, "nothing", {}), checkout / "outputs")


def test_a_launch_that_has_not_ended_is_told(checkout: Path) -> None:
    with pytest.raises(Problem, match=r"No such file.* Remedy: .*files.json comes when a run has ended"):
        fetch_run("20261130-130000_toy_track_cpu", checkout / "outputs")


@pytest.mark.parametrize("name", ["outputs/x", "..", "", "a b", "-"])
def test_only_names_of_launches_are_asked_for(checkout: Path, name: str) -> None:
    with pytest.raises(Problem, match="is not the name of a launch"):
        fetch_run(name, checkout / "outputs")
    assert outputs(checkout) == []


def test_a_run_that_is_here_is_not_fetched_again(checkout: Path) -> None:
    run = fetch_run(LAUNCH, checkout / "outputs")
    with pytest.raises(Problem, match=f"is here already. Remedy: leave SOURCE away: RUN={run}"):
        fetch_run(LAUNCH, checkout / "outputs")


def test_the_command_modal_is_missed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    monkeypatch.setattr("sys.executable", str(checkout / "python"))
    with pytest.raises(Problem, match=r"modal is not here. Remedy: pip install '.\[modal\]'"):
        fetch_run(LAUNCH, checkout / "outputs")
    assert outputs(checkout) == []


def test_a_folder_that_cannot_be_written_is_told(checkout: Path) -> None:
    (checkout / "outputs").write_text("a file in its place")
    with pytest.raises(Problem, match="cannot be written"):
        fetch_run(LAUNCH, checkout / "outputs")


def test_classes_of_whole_cores_do_not_rank_from_a_share_of_a_machine(checkout: Path, stored: Path) -> None:
    record = sorted((ROOT / "records/retro").glob("[0-9]*"))[0]
    run = stored / "retro/run"
    run.mkdir(parents=True)
    (run / "manifest.json").write_bytes((record / "manifest.json").read_bytes())
    content = (run / "manifest.json").read_bytes()
    entry = StoredFile(size=len(content), sha256=sha256(content).hexdigest())
    write_model(stored / "retro/files.json", Listing(status=0, files={"manifest.json": entry}))
    with pytest.raises(Problem, match=r"runs of cpu rank on whole cores only\. Remedy: run it on a machine"):
        fetch_for_record("retro", checkout / "outputs")
