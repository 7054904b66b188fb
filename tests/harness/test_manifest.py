"""The manifest holds what is so: the checkout, the packages, the environment."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from harness.errors import Problem
from harness.files import sha256_bytes
from harness.manifest import (
    Manifest,
    customizations,
    installed_packages,
    launch_environment,
    overriding,
    read_git,
    read_manifest,
    relevant,
)
from harness.track import ROOT
from toy_track import speedrun


@pytest.fixture
def manifest(plain_machine: None, tmp_path: Path) -> Path:
    return speedrun.train(tmp_path / "outputs") / "manifest.json"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"nickname": "fast"}, "nickname: Extra inputs are not permitted"),
        ({"seed": "7"}, "seed: "),
        ({"seed": -1}, "seed: "),
        ({"smoke": 0}, "smoke: "),
        ({"recipe_sha256": "A" * 64}, "recipe_sha256: "),
        ({"run_id": "f" * 31}, "run_id: "),
        ({"fixed_files": {"a.py": "0" * 63}}, "fixed_files.a.py: "),
        ({"calibration_s": 0.0}, "calibration_s: "),
        ({"started_utc": "2026-11-30T02:13:34"}, "started_utc: "),
        ({"machine": None}, "machine: "),
        ({"git": {"commit": None, "dirty": False}}, "git.diff_sha256: Field required"),
    ],
)
def test_a_wrong_field_is_named(manifest: Path, changes: dict[str, Any], reason: str) -> None:
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **changes}))
    with pytest.raises(Problem) as caught:
        read_manifest(manifest)
    assert reason in caught.value.reason
    assert caught.value.file == str(manifest)


def test_every_field_is_required(manifest: Path) -> None:
    whole = json.loads(manifest.read_text())
    assert list(whole) == list(Manifest.model_fields)
    for name in whole:
        manifest.write_text(json.dumps({key: value for key, value in whole.items() if key != name}))
        with pytest.raises(Problem, match=f"{name}: Field required"):
            read_manifest(manifest)


def test_an_earlier_ruleset_may_lack_what_came_later(manifest: Path) -> None:
    whole = json.loads(manifest.read_text())
    del whole["open_files"]
    manifest.write_text(json.dumps(whole | {"ruleset": "1"}))
    assert read_manifest(manifest).open_files == {}
    manifest.write_text(json.dumps(whole))
    with pytest.raises(Problem, match="open_files: Field required by ruleset 2"):
        read_manifest(manifest)


def git(folder: Path, *arguments: str) -> bytes:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)
    return done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.py").write_text("1\n")
    (folder / "ü b.py").write_text("1\n")
    return folder


def commit(checkout: Path) -> str:
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "first")
    return git(checkout, "rev-parse", "HEAD").decode().strip()


def test_a_clean_checkout(checkout: Path) -> None:
    head = commit(checkout)
    found = read_git(checkout)
    assert found is not None
    assert (found.commit, found.dirty, found.diff_sha256, found.dirty_files) == (head, False, None, ())


def test_a_dirty_checkout_names_changed_staged_deleted_and_new_files(checkout: Path) -> None:
    head = commit(checkout)
    (checkout / "a.py").write_text("2\n")
    (checkout / "ü b.py").unlink()
    (checkout / "new").mkdir()
    (checkout / "new" / "c.py").write_text("3\n")
    (checkout / "staged.py").write_text("4\n")
    git(checkout, "add", "staged.py")
    found = read_git(checkout)
    assert found is not None
    assert (found.commit, found.dirty) == (head, True)
    assert found.dirty_files == ("a.py", "new/c.py", "staged.py", "ü b.py")
    assert found.diff_sha256 == sha256_bytes(git(checkout, "diff", "--binary", "HEAD"))


def test_a_moved_file_is_named_under_both_names(checkout: Path) -> None:
    commit(checkout)
    git(checkout, "mv", "a.py", "z.py")
    found = read_git(checkout)
    assert found is not None
    assert found.dirty_files == ("a.py", "z.py")


def test_a_detached_head_has_its_commit(checkout: Path) -> None:
    head = commit(checkout)
    git(checkout, "checkout", "-q", "--detach")
    found = read_git(checkout)
    assert found is not None
    assert (found.commit, found.dirty) == (head, False)


def test_before_the_first_commit_everything_is_dirty(checkout: Path) -> None:
    found = read_git(checkout)
    assert found is not None
    assert (found.commit, found.dirty, found.diff_sha256) == (None, True, None)
    assert found.dirty_files == ("a.py", "ü b.py")


def test_outside_a_checkout_and_below_its_top_there_is_no_git(checkout: Path, tmp_path: Path) -> None:
    commit(checkout)
    (checkout / "copy").mkdir()
    assert read_git(checkout / "copy") is None
    (tmp_path / "elsewhere").mkdir()
    assert read_git(tmp_path / "elsewhere") is None


def test_without_git_there_is_no_git(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(checkout)
    monkeypatch.setenv("PATH", str(checkout))
    assert read_git(checkout) is None


def test_packages_are_those_installed() -> None:
    packages = installed_packages()
    assert packages["numpy"] == numpy.__version__
    assert list(packages) == sorted(packages)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system keeps no launch environment")
def test_the_environment_is_that_of_the_launch() -> None:
    script = (
        "import os; from harness.manifest import launch_environment, relevant\n"
        "os.environ['TORCHINDUCTOR_CACHE_DIR'] = '/tmp'\n"
        "os.environ['OMP_NUM_THREADS'] = '4'\n"
        "print(relevant(launch_environment()))"
    )
    environment = {"OMP_NUM_THREADS": "1=2", "PATH": os.environ["PATH"], "EDITOR": "vi"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "{'OMP_NUM_THREADS': '1=2'}\n"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system keeps no launch environment")
def test_under_torchrun_the_environment_is_what_torchrun_was_launched_with() -> None:
    """A process that sets variables for the one it starts, as torchrun does."""
    child = "from harness.manifest import launch_environment, relevant; print(relevant(launch_environment()))"
    script = (
        "import os, subprocess, sys\n"
        "environment = {**os.environ, 'OMP_NUM_THREADS': '1', 'TORCHELASTIC_RUN_ID': 'none'}\n"
        f"subprocess.run([sys.executable, '-c', {child!r}], env=environment, check=True)"
    )
    environment = {"MKL_DYNAMIC": "0", "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "{'MKL_DYNAMIC': '0'}\n"


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="the system keeps no command lines")
def test_under_torchrun_the_command_line_is_torchruns() -> None:
    child = "from harness.manifest import command_line; print(command_line()[-2:])"
    script = (
        "import os, subprocess, sys\n"
        "environment = {**os.environ, 'TORCHELASTIC_RUN_ID': 'none'}\n"
        f"subprocess.run([sys.executable, '-c', {child!r}], env=environment, check=True)"
    )
    command = [sys.executable, "-c", script, "--nproc_per_node=2", "üb er"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "('--nproc_per_node=2', 'üb er')\n"


def test_only_variables_that_can_matter_are_kept_and_only_some_of_them_override() -> None:
    environment = {
        "HF_TOKEN": "secret",
        "OMP_NUM_THREADS": "1",
        "LD_PRELOAD": "libfast.so",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "TORCHINDUCTOR_MAX_AUTOTUNE": "1",
        "CUDA_VISIBLE_DEVICES": "0",
        "CUDA_LAUNCH_BLOCKING": "1",
        "CUDA_VERSION": "13.0",
        "OPENBLAS_CORETYPE": "Haswell",
        "MY_OMP_": "",
        "VLLM_API_KEY": "secret",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "LC_ALL": "C",
        "TZ": "Asia/Tokyo",
    }
    kept = relevant(environment)
    assert list(kept) == sorted(environment.keys() - {"HF_TOKEN", "MY_OMP_", "VLLM_API_KEY", "LC_ALL", "TZ"})
    assert kept["LD_PRELOAD"] == "libfast.so"
    assert overriding(environment) == (
        "CUDA_LAUNCH_BLOCKING",
        "LD_PRELOAD",
        "OMP_NUM_THREADS",
        "PYTHONHASHSEED",
        "PYTORCH_CUDA_ALLOC_CONF",
        "TOKENIZERS_PARALLELISM",
        "TORCHINDUCTOR_MAX_AUTOTUNE",
    )


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        ("/usr/local/nvidia/lib:/usr/local/nvidia/lib64:", ()),
        ("/usr/local/cuda-13.0/lib64", ()),
        ("/home/ada/lib", ("LD_LIBRARY_PATH",)),
        ("/usr/local/cuda/lib64:/tmp", ("LD_LIBRARY_PATH",)),
    ],
)
def test_libraries_are_those_of_the_image_or_override(paths: str, found: tuple[str, ...]) -> None:
    assert overriding({"LD_LIBRARY_PATH": paths}) == found


def test_what_python_runs_before_any_command_is_named(tmp_path: Path) -> None:
    (tmp_path / "usercustomize.py").write_text("")
    script = "import usercustomize; from harness.manifest import customizations; print(customizations())"
    environment = {"PYTHONPATH": f"{ROOT}:{tmp_path}", "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "('usercustomize',)\n"
    assert customizations() == ()


def test_files_of_the_checkout_that_are_imported_are_found(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").write_text("")
    (tmp_path / "package/trick.py").write_text("import json")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache/compiled.py").write_text("")
    script = (
        "import sys; from pathlib import Path; from harness.manifest import imported_files\n"
        f"root = Path({str(tmp_path)!r}); sys.path.insert(0, str(root))\n"
        "import package.trick\nsys.path.insert(0, str(root / '.cache'))\nimport compiled\n"
        "print(sorted(imported_files(root)))\n"
        "sys.prefix = str(root / 'package')\nprint(imported_files(root))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "['package/__init__.py', 'package/trick.py']\nset()\n"


def test_a_file_imported_on_the_way_is_written_down(
    plain_machine: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter([{"toy_track/speedrun.py"}, {"toy_track/speedrun.py", "toy_track/trick.py"}])
    monkeypatch.setattr("harness.manifest.imported_files", lambda root: next(answers))
    run = speedrun.train(tmp_path / "outputs")
    assert read_manifest(run / "manifest.json").stray_files == ("toy_track/trick.py",)
    assert "This run ranks nowhere: it imported toy_track/trick.py" in capsys.readouterr().out


def test_the_launch_environment_is_a_whole_one() -> None:
    assert launch_environment()["PATH"]
