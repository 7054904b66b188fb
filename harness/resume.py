"""Whether a run that broke off may go on with the files and the recipe that are here."""

import dataclasses
from pathlib import Path
from shlex import quote
from typing import Any

from harness.errors import Problem
from harness.files import canonical_json, sha256_bytes, sha256_file
from harness.folder import run_manifest, stage
from harness.manifest import MANIFEST_NAME, SOURCE_NAME, Manifest
from harness.track import Track, fixed_file_hashes, load_track, open_file_hashes


def begun(path: Path, track: Track, class_name: str, pinned: Any, source: Path) -> tuple[Manifest, Any]:
    """The manifest of a run to go on with, and its recipe, made from the `pinned` one of its class.

    Raises:
        Problem: there is no run, it is complete, or it began as another track, class, speedrun.py, recipe, or
            with other files than these.
    """
    manifest = run_manifest(path)
    command = load_track(manifest.track).command(manifest.recipe_name)
    if (manifest.track, manifest.recipe_name) != (track.name, class_name):
        reason = f"is a run of {manifest.track}, {manifest.recipe_name}, not of {track.name}, {class_name}"
        remedy = f"{command} --resume {quote(str(path))}"
        if manifest.track == track.name and not track.class_is_chosen:
            remedy += f" on a machine of the class {manifest.recipe_name}"
        raise Problem(reason, file=path, remedy=remedy)
    if stage(path) == "complete":
        raise Problem("the run is complete", file=path, remedy=f"begin another one: {command}")
    if sha256_file(source) != manifest.source_sha256:
        raise Problem(
            f"{source.name} is not the one that this run began with",
            file=path,
            remedy=f"cp {quote(str(path / SOURCE_NAME))} {track.name}/{SOURCE_NAME}",
        )
    track = track.under(manifest.ruleset)
    here = fixed_file_hashes(track) | open_file_hashes(track)
    there = manifest.fixed_files | manifest.open_files
    if strange := sorted(dict(here.items() ^ there.items())):
        commit = manifest.git.commit if manifest.git else None
        raise Problem(
            f"not as they were when this run began: {', '.join(strange)}",
            file=path / MANIFEST_NAME,
            remedy=f"check out those files of commit {commit}" if commit else "restore them, or begin anew",
        )
    fields = {name: tuple(v) if isinstance(v, list) else v for name, v in manifest.recipe.items()}
    recipe = dataclasses.replace(pinned, **fields)
    if sha256_bytes(canonical_json(dataclasses.asdict(recipe)).encode()) != manifest.recipe_sha256:
        raise Problem("does not hold the recipe whose hash it names", file=path / MANIFEST_NAME)
    return manifest, recipe
