"""A repository of the toy track with a record on main, and branches that each bring another."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from harness import boards
from harness.assemble import add_verification, assemble
from harness.eligibility import second_seed
from harness.manifest import read_manifest
from toy_track import track
from toy_track.records import launched, make_checkout, make_record, plain_machine, write_idea


class Repository:
    """A git repository; `record` is the folder of the branch's own record, from the root."""

    def __init__(self, path: Path, record: str = "") -> None:
        self.path, self.record = path, record

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def git(self, *arguments: str, given: bytes | None = None) -> str:
        """What a git command prints, under no configuration but the repository's."""
        who = {f"GIT_{role}_{what}": "ada" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env={**os.environ, **who, **quiet}, input=given,
            capture_output=True, check=True,
        )  # fmt: skip
        return done.stdout.decode().strip()

    def commit(self, message: str = "change") -> str:
        """Commit everything, but for the runs; returns the commit."""
        self.git("add", "--all", "--force", ".", ":!outputs")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def copy(self, path: Path) -> "Repository":
        """The same repository elsewhere."""
        return Repository(Path(shutil.copytree(self.path, path, symlinks=True)), self.record)


def make_repository(path: Path) -> Repository:
    """Main with record 1; from it the branches `idea` and `other`, each with a record 2 of its own."""
    repository = Repository(make_checkout(path))
    repository.git("init", "--quiet", "--initial-branch=main")
    with plain_machine():
        make_record(path)
        boards.refresh(path)
        repository.commit("record 1")
        for branch, right in (("other", 94), ("idea", 96)):
            repository.git("checkout", "--quiet", "-b", branch, "main")
            repository.record = add_record(path, branch, right).relative_to(path).as_posix()
            repository.commit(f"the record of {branch}")
    shutil.rmtree(path / "outputs")
    return repository


def add_record(root: Path, name: str, right: int) -> Path:
    """A complete record of a recipe that knows more: its source takes the place of the track's."""
    source = root / "toy_track/speedrun.py"
    for rate in range(1, 20):  # the second seed follows from the recipe, and must play another way
        _edit(source, right, rate / 20)
        module = _load(source)
        with launched():
            run = module.train(root / "outputs")
        module.evaluate(run)
        manifest = read_manifest(run / "manifest.json")
        seed = second_seed(run / track.TRACK.evidence_name, manifest, track.TRACK)
        if seed % 2 != manifest.seed % 2:
            break
    path = assemble(run, name, root=root, contributors=["Eve"], description=f"Knows {right}").path
    write_idea(path)
    with launched("--verify", str(path)):
        second = module.train(root / "outputs", seed=seed, verifies=manifest.run_id)
    module.evaluate(second)
    return add_verification(second, path, root=root).path


def _edit(source: Path, right: int, rate: float) -> None:
    lines = source.read_text().split("\n")
    values = {"    right: int =": right, "    rate: float =": rate}
    for start, value in values.items():
        (at,) = (index for index, line in enumerate(lines) if line.startswith(start))
        lines[at] = f"{start} {value}"
    source.write_text("\n".join(lines))


def _load(source: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("changed_speedrun", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
