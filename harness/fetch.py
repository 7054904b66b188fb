"""Fetch the run of a launch on Modal, and believe none of its bytes before they are hashed."""

import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from harness.errors import Problem
from harness.files import read_bytes, read_model, sha256_bytes, unwritable
from harness.manifest import read_manifest
from harness.remote import FILES, RUN, VOLUME, Listing, StoredFile
from harness.run import MANIFEST_NAME
from harness.track import load_track


def fetch_run(name: str, outputs: Path, fetch: Callable[[str, Path], None] | None = None) -> Path:
    """The folder `outputs/<name>` with the run of the launch `name`; folders in the run stay on the volume.

    fetch: copies a file of the volume, named from its root, to a path; `volume_get` unless given.

    Raises:
        Problem: the launch has not ended, a file of it did not come as it was listed, or the folder is there
            already. Nothing is left behind.
    """
    fetch = fetch or volume_get
    place = outputs / name
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise Problem(f"{name!r} is not the name of a launch", remedy="give the name that the launch printed")
    if place.exists():
        raise Problem("is here already", file=place, remedy=f"leave SOURCE away: RUN={place}")
    draft = outputs.resolve() / f".{name}.{secrets.token_hex(4)}.partial"
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, draft, ignore_errors=True)
        try:
            (draft / RUN).mkdir(parents=True)
            fetch(f"{name}/{FILES}", draft / FILES)
            listed = _names(read_model(draft / FILES, Listing), f"{name}/{FILES}")
            for file, stored in listed.items():
                fetch(f"{name}/{RUN}/{file}", draft / RUN / file)
                _check(draft / RUN / file, stored, f"{name}/{RUN}/{file}")
            if strange := {path.name for path in (draft / RUN).iterdir()} - listed.keys():
                raise Problem(f"came and are not listed: {', '.join(sorted(strange))}", file=f"{name}/{RUN}")
            (draft / RUN).rename(place)
        except OSError as error:
            raise unwritable(place, error) from error
    return place


def fetch_for_record(name: str, outputs: Path) -> Path:
    """The same, of a run that may become a record; a Problem where its class wants a number of cores."""
    run = fetch_run(name, outputs)
    manifest = read_manifest(run / MANIFEST_NAME)
    classes = load_track(manifest.track).classes
    if any(hardware.cores for hardware in classes if hardware.name == manifest.hardware_class):
        reason = (
            f"ran on a share of a machine, and runs of {manifest.hardware_class} rank on whole cores only"
        )
        raise Problem(reason, file=run, remedy="run it on a machine of your own")
    return run


def volume_get(remote: str, local: Path) -> None:
    """Copy a file by `modal volume get`, whose word that it succeeded is not enough."""
    modal = shutil.which("modal") or shutil.which("modal", path=str(Path(sys.executable).parent))
    if modal is None:
        raise Problem("the command modal is not here", remedy="pip install '.[modal]', then modal setup")
    command = [modal, "volume", "get", VOLUME, remote, str(local)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    if done.returncode:
        said = " ".join(done.stdout.split())[-300:]
        raise Problem(
            f"could not be fetched (exit status {done.returncode}): {said}",
            file=remote,
            remedy=f"modal volume ls {VOLUME} {remote.partition('/')[0]} shows what there is; {FILES} comes "
            "when a run has ended",
        )


def _names(listing: Listing, file: str) -> dict[str, StoredFile]:
    """The files beside the manifest; a Problem where a name could lead out of the folder."""
    for name in listing.files:
        if any(part in ("", ".", "..") for part in name.split("/")) or not re.fullmatch(r"[ -\[\]-~]+", name):
            raise Problem(f"lists {name!r}, which is not the name of a file in the run folder", file=file)
    if MANIFEST_NAME not in listing.files:
        reason = f"lists no {MANIFEST_NAME}: the run did not begin, status {listing.status}"
        raise Problem(reason, file=file, remedy=f"see console.txt beside it: modal volume get {VOLUME} ...")
    return {name: stored for name, stored in listing.files.items() if "/" not in name}


def _check(path: Path, stored: StoredFile, remote: str) -> None:
    """A Problem where a file is not the one that was listed."""
    if path.is_symlink() or not path.is_file():
        raise Problem("did not come, though modal reports no error", file=remote, remedy="fetch it again")
    data = read_bytes(path)
    if len(data) != stored.size:
        fault = f"came with {len(data)} bytes of {stored.size}"
    elif sha256_bytes(data) == stored.sha256:
        return
    else:
        fault = "came as zeros alone" if not any(data) else "came with other bytes than it was stored with"
    raise Problem(fault, file=remote, remedy="fetch it again; if it is so again, the volume holds it so")
