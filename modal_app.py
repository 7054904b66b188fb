"""Runs a speedrun on Modal: `docs/modal.md`.

    modal run modal_app.py --track non_llm --hardware 1xH100
    modal run --detach modal_app.py --track llm --hardware 8xH100        goes on if this terminal goes away
    modal run modal_app.py --track retro --hardware cpu --smoke
    modal run modal_app.py --track non_llm --hardware 1xH100 --verify records/non_llm/...

Every class of hardware is a function with the image of its track. It runs the command line of that class in a
copy of this checkout, and what it makes is kept on a volume (`harness.remote`).
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import modal

from harness.errors import Problem
from harness.remote import VOLUME, carry_out
from harness.track import ROOT, load_track
from llm.track import TASKS
from sokoban.boxoban import COMMIT, FOLDER_VARIABLE

CHECKOUT, STORE, LEVELS = "/checkout", "/store", "/levels"
"""Where these are in a container."""
VLLM = "vllm==0.31.0"
CLOSING_S = 300
"""Seconds to end a run and store it when its hours are over, before Modal ends the function."""
NOT_UPLOADED = (
    ".git",
    ".venv*",
    ".cache",
    "outputs",
    "**/__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".hypothesis",
    "*.egg-info",
    "build",
    "**/.env*",
)
"""What git ignores, what may hold keys, and .git, of which `checkout` takes a part."""
GIT_FILES, GIT_FOLDERS = ("HEAD", "index", "packed-refs", "shallow"), ("objects", "refs")
"""What git needs to know the commit and what differs from it. .git/config may hold passwords, and stays."""


class Setting(NamedTuple):
    """What a class of hardware gets."""

    track: str
    hardware: str
    hours: float
    """After which a run is ended."""
    cpu: float | tuple[float, float] = (2, 2)
    """Cores, or the least and the most of them."""
    memory_gib: int = 8
    gpu: str | None = None
    """H100! is never an H200 instead, which would be of no class."""

    @property
    def name(self) -> str:
        return f"{self.track}_{self.hardware}"


SETTINGS = (
    Setting("non_llm", "cpu", hours=2),
    Setting("non_llm", "1xH100", hours=2, cpu=8, memory_gib=64, gpu="H100!"),
    Setting("llm", "cpu", hours=2),
    Setting("llm", "8xH100", hours=4, cpu=64, memory_gib=256, gpu="H100!:8"),
    Setting("retro", "cpu", hours=2),
    Setting("agents", "babyai", hours=12),
    Setting("agents", "crafter", hours=12),
    Setting("agents", "scienceworld", hours=12),
)


def image_of(setting: Setting) -> modal.Image:
    """The pinned extras of the track, data that would else be fetched at a GPU's price, and this checkout."""
    image = (
        modal.Image.debian_slim(python_version="3.11")
        .apt_install("git", "build-essential")
        .pip_install_from_pyproject(str(ROOT / "pyproject.toml"), [setting.track.replace("_", "-")])
    )
    if setting.track == "non_llm":
        url = "https://github.com/google-deepmind/boxoban-levels"
        git = f"git -C {LEVELS}"
        image = image.run_commands(
            f"git init -q {LEVELS} && {git} fetch -q --depth 1 {url} {COMMIT} && {git} checkout -q FETCH_HEAD"
        ).env({FOLDER_VARIABLE: LEVELS})
    if setting.track == "llm" and setting.gpu:
        task = TASKS[setting.hardware]
        image = image.pip_install(VLLM).run_commands(f"hf download {task.model} --revision {task.revision}")
    # A checkout that was carried over has another owner, and files that are executable may no longer be.
    image = image.run_commands(
        f"git config --system safe.directory {CHECKOUT} && git config --system core.fileMode false"
    )
    return checkout(image.env({"PYTHONPATH": CHECKOUT}).workdir(CHECKOUT))


def checkout(image: modal.Image) -> modal.Image:
    """The image with this checkout in it, uncommitted changes and all."""
    image = image.add_local_dir(ROOT, CHECKOUT, ignore=NOT_UPLOADED)
    for name in GIT_FOLDERS:
        if (ROOT / ".git" / name).is_dir():
            image = image.add_local_dir(ROOT / ".git" / name, f"{CHECKOUT}/.git/{name}")
    for name in GIT_FILES:
        if (ROOT / ".git" / name).is_file():
            image = image.add_local_file(ROOT / ".git" / name, f"{CHECKOUT}/.git/{name}")
    return image


def train(track: str, hardware: str, name: str, arguments: list[str], limit_s: float) -> int:
    """What runs in a container: the command line of a class with more arguments; returns its exit status."""
    store.reload()
    command = [sys.executable, *shlex.split(load_track(track).command(hardware))[1:], *arguments]
    return carry_out(command, Path(STORE) / name, store.commit, folder=ROOT, limit_s=limit_s)


def find(track: str, hardware: str) -> Setting:
    """The setting of these names; a Problem where there is none."""
    for setting in SETTINGS:
        if (setting.track, setting.hardware) == (track, hardware):
            return setting
    known = ", ".join(s.hardware for s in SETTINGS if s.track == track)
    raise Problem(f"{track!r} has no class {hardware!r}", remedy=f"give --hardware, one of: {known}")


def find_record(path: str) -> str:
    """A record's folder from the root of the checkout; a Problem where it is none that a container has."""
    folder = Path(path).resolve()
    if not folder.is_relative_to(ROOT / "records") or not (folder / "record.json").is_file():
        raise Problem("is not a record of this checkout", file=path, remedy="give a folder in records/")
    return folder.relative_to(ROOT).as_posix()


def asked(arguments: Sequence[str]) -> list[Setting]:
    """The setting that a command line names; all where it names none, as in a container.

    `modal run` builds the images of all functions of an app before it begins, so an app has those alone that
    are wanted, and what is wrong with the command line is said here.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in ("--track", "--hardware", "--verify"):
        parser.add_argument(flag)
    named, _ = parser.parse_known_args(arguments)
    if not (named.track and named.hardware):
        return list(SETTINGS)
    try:
        if named.verify:
            find_record(named.verify)
        return [find(named.track, named.hardware)]
    except Problem as problem:
        sys.exit(str(problem))


app = modal.App("learning-speedruns")
store = modal.Volume.from_name(VOLUME, create_if_missing=True)
functions: dict[str, modal.Function[..., int, int]] = {
    setting.name: app.function(
        name=setting.name,
        image=image_of(setting),
        gpu=setting.gpu,
        cpu=setting.cpu,
        memory=setting.memory_gib * 1024,
        timeout=int(setting.hours * 3600) + CLOSING_S,
        volumes={STORE: store},
        retries=0,
        single_use_containers=True,
    )(train)
    for setting in asked(sys.argv[1:])
}


@app.local_entrypoint()
def main(
    track: Literal["non_llm", "llm", "retro", "agents"],
    hardware: Literal["cpu", "1xH100", "8xH100", "babyai", "crafter", "scienceworld"],
    smoke: bool = False,
    verify: str = "",
    flags: str = "",
    secrets: str = "",
) -> None:
    """Run the recipe of a class on Modal and keep the run on its volume.

    verify: a record's folder. flags: more flags of speedrun.py, in quotes. secrets: names of Modal's secrets,
    with commas between, whose variables the run gets.
    """
    setting = find(track, hardware)
    arguments = [*(["--verify", find_record(verify)] if verify else []), *shlex.split(flags)]
    arguments += ["--smoke"] if smoke else []
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}_{setting.name}{'_smoke' if smoke else ''}"
    function: Any = functions[setting.name]
    if secrets:
        function = function.with_options(secrets=[modal.Secret.from_name(s) for s in secrets.split(",")])
    call = function.spawn(track, hardware, name, arguments, setting.hours * 3600)
    if hardware == "cpu":
        then = "It ranks nowhere: on Modal a run has a share of a machine, no cores of its own"
    else:
        target = f"VERIFY_OF={verify}" if verify else "DEST=name-of-your-idea"
        then = f"Once it has ended: SOURCE=modal RUN={name} {target} ./assemble_record.sh"
    print(f"Launched {name} as {call.object_id}. {then}", flush=True)
    if status := call.get():
        sys.exit(f"{name} ended with status {status}")
    print(f"{name} has ended. {then}", flush=True)
