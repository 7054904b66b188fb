"""The app for Modal, as far as it can be tried without an account: against a stand-in of its server."""

import base64
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from modal_server import STATUS

import modal_app
from harness.errors import Problem
from harness.fetch import fetch_run
from harness.files import read_model, sha256_bytes, write_model
from harness.log import read_log
from harness.manifest import overriding, read_git, read_manifest
from harness.remote import Listing, StoredFile
from harness.track import ROOT, available_tracks, load_track
from llm.track import TASKS

GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@b.example", "-C")


class Outcome(NamedTuple):
    """How a command ended, and what it asked of the server."""

    status: int
    output: str
    requests: dict[str, list[dict[str, Any]]]


class Client:
    """Runs commands in a small checkout, with the stand-in in the place of Modal's server."""

    def __init__(self, checkout: Path, port: str, requests: Path) -> None:
        self.checkout, self.requests = checkout, requests
        self.environment = {name: value for name, value in os.environ.items() if "MODAL" not in name} | {
            "MODAL_SERVER_URL": f"http://127.0.0.1:{port}",
            "MODAL_TOKEN_ID": "ak-none",
            "MODAL_TOKEN_SECRET": "as-none",
            "MODAL_CONFIG_PATH": str(checkout.parent / "none.toml"),
            "COLUMNS": "200",
        }

    def __call__(self, *command: str) -> Outcome:
        self.requests.write_text("")
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.checkout,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        asked: dict[str, list[dict[str, Any]]] = {}
        for line in self.requests.read_text().splitlines():
            entry = json.loads(line)
            asked.setdefault(entry["call"], []).append(entry["request"])
        return Outcome(done.returncode, done.stdout, asked)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("modal")
    checkout = folder / "checkout"
    for name in ("harness", "llm", "sokoban"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("modal_app.py", "pyproject.toml", ".gitignore"):
        shutil.copy(ROOT / name, checkout)
    record = checkout / "records/llm/2026-01-01_01_some-idea"
    record.mkdir(parents=True)
    (record / "record.json").write_text("{}")
    subprocess.run([*GIT, checkout, "init", "-q"], check=True)
    subprocess.run([*GIT, checkout, "add", "."], check=True)
    subprocess.run([*GIT, checkout, "commit", "-qm", "a checkout"], check=True)
    with (checkout / ".git/config").open("a") as config:
        config.write('[http]\n\textraheader = "AUTHORIZATION: basic secret"\n')
    (checkout / "outputs").mkdir()
    (checkout / "outputs/weights").write_text("many")
    (checkout / ".env").write_text("KEY=secret")
    requests = folder / "requests.jsonl"
    command = [sys.executable, ROOT / "tests/modal_server.py", requests, folder / "volume"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield Client(checkout, server.stdout.readline().strip(), requests)
        server.terminate()


@pytest.fixture(scope="module")
def created(client: Client) -> Outcome:
    """All functions of the app, made on the server."""
    outcome = client("-W", "error", "-c", "import modal_app\nwith modal_app.app.run():\n    pass")
    assert outcome.status == 0, outcome.output
    return outcome


def test_every_class_of_every_track_has_a_function() -> None:
    classes = {(name, c.name) for name in available_tracks() for c in load_track(name).classes}
    assert {(setting.track, setting.hardware) for setting in modal_app.SETTINGS} == classes
    assert set(modal_app.functions) == {f"{track}_{hardware}" for track, hardware in classes}


def test_functions_get_the_hardware_of_their_class(created: Outcome) -> None:
    made = {r["function"]["functionName"]: r["function"] for r in created.requests["FunctionCreate"]}
    assert set(made) == {setting.name for setting in modal_app.SETTINGS}
    gpus = {name: f["resources"]["gpuConfig"] for name, f in made.items() if f["resources"]["gpuConfig"]}
    assert gpus == {
        "non_llm_1xH100": {"gpuType": "H100!", "count": 1},
        "llm_8xH100": {"gpuType": "H100!", "count": 8},
    }
    for name, function in made.items():
        assert function["implementationName"] == "train" and function["singleUseContainers"]
        assert function["retryPolicy"].get("retries", 0) == 0
        (volume,) = function["volumeMounts"]
        assert volume["mountPath"] == modal_app.STORE
        if name.endswith("_cpu"):
            assert function["resources"]["milliCpu"] == function["resources"]["milliCpuMax"] == 2000
        setting = next(s for s in modal_app.SETTINGS if s.name == name)
        assert function["timeoutSecs"] == setting.hours * 3600 + 300 <= 24 * 3600


def test_images_have_the_pinned_extras_of_their_track(created: Outcome) -> None:
    layers = [" ".join(r["image"]["dockerfileCommands"]) for r in created.requests["ImageGetOrCreate"]]
    installs = [layer for layer in layers if "python -m pip install" in layer]
    for wanted in (
        ("torch==2.13.0", "safetensors==0.8.0", "gymnasium==1.4.0", "numpy==2.4.6"),
        ("torch==2.13.0", "transformers==5.17.0", "numpy==2.4.6"),
        ("stable-retro==1.0.1", "numpy==2.4.6"),
        ("scienceworld==1.2.3", "numpy==2.4.6"),
    ):
        assert any(all(package in layer for package in wanted) for layer in installs), wanted
    docs = (ROOT / "docs/llm.md").read_text()
    task = TASKS["8xH100"]
    for command in (f"pip install {modal_app.VLLM}", f"hf download {task.model} --revision {task.revision}"):
        assert command in docs
        assert sum(command.removeprefix("pip ") in layer for layer in layers) == 1
    (levels,) = {layer for layer in layers if "boxoban-levels" in layer}
    assert (
        f"fetch -q --depth 1 https://github.com/google-deepmind/boxoban-levels {modal_app.COMMIT}" in levels
    )


def test_the_checkout_goes_along_without_keys_and_outputs(created: Outcome, client: Client) -> None:
    files = {
        file["filename"] for r in created.requests["MountGetOrCreate"] for file in r.get("files", ())
    } - {"/root/modal_app.py"}
    listed = subprocess.run(
        [*GIT, client.checkout, "ls-files"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()
    tree = {file for file in files if not file.startswith("/checkout/.git/")}
    assert tree == {f"/checkout/{file}" for file in listed}
    kept = {file.split("/")[3] for file in files - tree}
    assert kept == {"HEAD", "index", "objects", "refs"}


def carry(created: Outcome, client: Client, place: Path) -> None:
    """Put what was uploaded where a container has /checkout."""
    for request in created.requests["MountGetOrCreate"]:
        for file in request.get("files", ()):
            if file["filename"].startswith("/checkout/"):
                path = place / file["filename"].removeprefix("/checkout/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes((client.checkout / path.relative_to(place)).read_bytes())


def test_a_carried_checkout_has_the_state_of_its_original(
    created: Outcome, client: Client, tmp_path: Path
) -> None:
    (client.checkout / "harness/track.py").write_text("# changed\n")
    carry(created, client, tmp_path)
    state, original = read_git(tmp_path), read_git(client.checkout)
    subprocess.run([*GIT, client.checkout, "checkout", "-q", "harness/track.py"], check=True)
    assert state is not None and original is not None and state.commit == original.commit
    assert state.dirty_files == ("harness/track.py",)
    assert original.dirty_files == (".env", "harness/track.py")  # which stays at home
    assert state.diff_sha256 == original.diff_sha256


def test_the_app_is_found_in_a_container_and_wants_no_library_of_a_track(
    created: Outcome, client: Client, tmp_path: Path
) -> None:
    carry(created, client, tmp_path)
    script = """
import sys
for name in ("torch", "transformers", "gymnasium", "stable_retro", "openai"):
    sys.modules[name] = None
import modal_app
print(modal_app.ROOT, len(modal_app.functions), modal_app.train.__name__)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd="/",
        env={"PYTHONPATH": str(tmp_path), "PATH": os.environ["PATH"], "MODAL_TASK_ID": "ta-1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout == f"{tmp_path} {len(modal_app.SETTINGS)} train\n"


def test_what_git_ignores_is_not_uploaded() -> None:
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().split()}
    assert ignored <= {pattern.removeprefix("**/").strip("/") for pattern in modal_app.NOT_UPLOADED}


def test_modal_run_builds_one_class_calls_it_once_and_tells_how_it_ended(client: Client) -> None:
    record = "records/llm/2026-01-01_01_some-idea"
    outcome = client(
        *("-m", "modal", "run", "--detach", "modal_app.py", "--track", "llm", "--hardware", "8xH100"),
        *("--verify", record, "--secrets", "wandb,hf", "--flags", "--layout.in-flight 64"),
    )
    (created,) = outcome.requests["FunctionCreate"]
    assert created["function"]["functionName"] == "llm_8xH100"
    assert [r["deploymentName"] for r in outcome.requests["SecretGetOrCreate"]] == ["wandb", "hf"]
    (bound,) = outcome.requests["FunctionBindParams"]
    assert len(bound["functionOptions"]["secretIds"]) == 2
    (call,) = outcome.requests["FunctionMap"]
    assert call["functionCallInvocationType"] == "FUNCTION_CALL_INVOCATION_TYPE_ASYNC"  # it outlives us
    (arguments, named) = pickle.loads(base64.b64decode(call["pipelinedInputs"][0]["input"]["args"]))
    track, hardware, name, flags, limit_s = arguments
    assert (track, hardware, named, limit_s) == ("llm", "8xH100", {}, 4 * 3600)
    assert flags == ["--verify", record, "--layout.in-flight", "64"]
    assert outcome.requests["AppPublish"][0]["appState"] == "APP_STATE_DETACHED"
    assert outcome.status == 1 and f"{name} ended with status {STATUS}" in outcome.output
    assert f"SOURCE=modal RUN={name} VERIFY_OF={record} ./assemble_record.sh" in outcome.output


def test_a_wrong_command_line_ends_before_anything_is_built(client: Client) -> None:
    wrong = {
        (
            "--track",
            "retro",
            "--hardware",
            "8xH100",
        ): "'retro' has no class '8xH100'. Remedy: give",
        (
            "--track",
            "llm",
            "--hardware",
            "cpu",
            "--verify",
            "outputs",
        ): "outputs: is not a record of this",
        ("--track", "llm"): "Missing option '--hardware'",
    }
    for arguments, reason in wrong.items():
        outcome = client("-m", "modal", "run", "modal_app.py", *arguments)
        assert outcome.status and reason in outcome.output, outcome.output
        assert "AppCreate" not in outcome.requests


def test_help_lists_the_flags(client: Client) -> None:
    outcome = client("-m", "modal", "run", "modal_app.py", "--help")
    assert outcome.status == 0 and not outcome.requests
    for flag in ("--track", "--hardware", "--smoke", "--verify", "--flags", "--secrets"):
        assert flag in outcome.output


def test_fetching_by_the_client_itself_trusts_no_byte(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in client.environment.items():
        monkeypatch.setenv(name, value)
    run = client.checkout.parent / "volume/some-launch/run"
    run.mkdir(parents=True)
    content = {"manifest.json": b"{}", "evidence.jsonl": bytes(range(1, 200)), "empty.txt": b""}
    for name, data in content.items():
        (run / name).write_bytes(data)
    files = {name: StoredFile(size=len(data), sha256=sha256_bytes(data)) for name, data in content.items()}
    write_model(run.parent / "files.json", Listing(status=0, files=files))
    fetched = fetch_run("some-launch", tmp_path)
    assert {path.name: path.read_bytes() for path in fetched.iterdir()} == content

    (run / "evidence.jsonl.short").touch()  # the client fills the rest with zeros and reports success
    with pytest.raises(Problem, match=r"run/evidence.jsonl: came with other bytes than it was stored with"):
        fetch_run("some-launch", tmp_path / "again")
    with pytest.raises(Problem, match=r"other-launch/files.json: could not be fetched .*No such file"):
        fetch_run("other-launch", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"some-launch", "again"}
    assert not list((tmp_path / "again").iterdir())


SPEEDRUN = """
import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from harness.errors import run_command
from harness.launch import launch
from toy_track import track


@dataclass(frozen=True)
class Recipe:
    seed: int = 1

    def smoke(self):
        return self


def train(run, recipe):
    with run.warmup():
        pass
    run.train_start()
    run.record_data([("squares.txt", sha256(track.DATA).hexdigest())])
    run.log_step(1, solve_rate=0.9)
    run.train_stop()
    run.save_checkpoint(b"90")


def evaluate(run):
    run.eval_start()
    evidence = run.path / track.TRACK.evidence_name
    evidence.write_text(track.evidence(90))
    score = track.TRACK.score(evidence)
    run.eval_stop(evidence, score)
    run.stop()
    return score


recipes = {"cpu": Recipe(), "1xH100": Recipe()}
run_command(lambda: launch(track.TRACK, recipes, train=train, evaluate=evaluate, source=Path(__file__)))
"""


class Volume:
    """What a function does with a volume."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def reload(self) -> None:
        self.calls.append("reload")

    def commit(self) -> None:
        self.calls.append("commit")


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the toy track in it, in which the functions of the app run; `store` is its volume."""
    (tmp_path / "toy_track").mkdir()
    (tmp_path / "harness").symlink_to(ROOT / "harness")
    shutil.copy(ROOT / "tests/toy_track/track.py", tmp_path / "toy_track")
    (tmp_path / "toy_track/speedrun.py").write_text(SPEEDRUN)
    monkeypatch.setattr(modal_app, "ROOT", tmp_path)
    monkeypatch.setattr(modal_app, "STORE", str(tmp_path / "store"))
    monkeypatch.setattr(modal_app, "store", Volume())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for name in overriding(os.environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # as Modal does
    return tmp_path


def run_locally(*arguments: str) -> int:
    with pytest.warns(UserWarning, match="will not have access to the mounted Volume"):
        return modal_app.functions["retro_cpu"].local(
            "toy_track", "cpu", "some-launch", list(arguments), 60.0
        )


def test_a_function_runs_the_command_line_of_its_class_and_keeps_the_run(container: Path) -> None:
    assert run_locally("--smoke") == 0
    launch = container / "store/some-launch"
    manifest = read_manifest(launch / "run/manifest.json")
    assert manifest.argv[1:] == ("-m", "toy_track.speedrun", "--smoke") and manifest.smoke
    assert manifest.overriding_environment == ()
    assert read_log(launch / "run/log.jsonl").status == "complete"
    listing = read_model(launch / "files.json", Listing)
    assert listing.status == 0
    assert set(listing.files) == {path.name for path in (launch / "run").iterdir()}
    assert modal_app.store.calls == ["reload", "commit", "commit"]  # type: ignore[attr-defined]


def test_a_function_that_is_restarted_does_not_run_twice(container: Path) -> None:
    run_locally("--smoke")
    with pytest.raises(Problem, match="attempt 2 is refused"):
        run_locally("--smoke")
    assert len(list((container / "outputs").iterdir())) == 1


def test_a_function_tells_that_its_command_failed(container: Path) -> None:
    assert run_locally("--verify", "nowhere") == 2
    assert "nowhere" in (container / "store/some-launch/console.txt").read_text()
