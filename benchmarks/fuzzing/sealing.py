"""Hashes, canonical form and README of a changed record made to agree again, for other checks to see it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from benchmarks.fuzzing.damage import XZ_MAGIC, repack_plainly
from benchmarks.fuzzing.records import RUNS, TrueRecord, payload, sha256
from harness.errors import Problem
from harness.files import canonical_json, parse_json
from harness.readme import RESULTS, replace_block, results_block
from harness.record import LOG, MANIFEST, README, RECORD, SOURCE, Record


def seal(record: TrueRecord, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files with every hash replaced by that of what it is of now, as far as they can be read.

    Where record.json is valid it is written as the tools write it, and the README repeats it. Seeds, scores
    and times stay as they are.
    """
    sealed, track = dict(files), record.track
    for run in RUNS:
        source = _changes(record, sealed, SOURCE)
        checkpoint = _changes(record, sealed, run + track.checkpoint_name)
        _replace(sealed, run + track.evidence_name, checkpoint)
        evidence = _changes(record, sealed, run + track.evidence_name)
        recipe = _recipe_changes(sealed, run + MANIFEST)
        _replace(sealed, run + MANIFEST, source | recipe)
        _replace(sealed, run + LOG, checkpoint | evidence | recipe)
    hashes: dict[str, str] = {}
    for name in record.files:
        hashes |= _changes(record, sealed, name)
    _replace(sealed, RECORD, hashes)
    _write_as_tools_do(record, sealed)
    return sealed


def _changes(record: TrueRecord, files: Mapping[str, bytes], name: str) -> dict[str, str]:
    """Hash of the true file -> that of the file now, if they differ."""
    if name not in record.files or name not in files or files[name] == record.files[name]:
        return {}
    return {sha256(record.files[name]): sha256(files[name])}


def _recipe_changes(files: Mapping[str, bytes], manifest: str) -> dict[str, str]:
    """Hash of the recipe that a manifest tells -> that of the recipe that it holds."""
    try:
        content = json.loads(files[manifest])
        said, recipe = content["recipe_sha256"], canonical_json(content["recipe"]).encode()
        return {said: sha256(recipe)} if re.fullmatch("[0-9a-f]{64}", said) else {}
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}


def _replace(files: dict[str, bytes], name: str, changes: Mapping[str, str]) -> None:
    """Replace texts in a file, unpacked where it is packed, all at once."""
    if not changes or name not in files:
        return
    found, packed = payload(files[name]), files[name].startswith(XZ_MAGIC)
    pattern = "|".join(changes).encode()
    made = re.sub(pattern, lambda match: changes[match[0].decode()].encode(), found)
    if made != found:
        files[name] = repack_plainly(made) if packed else made


def _write_as_tools_do(record: TrueRecord, files: dict[str, bytes]) -> None:
    try:
        value = parse_json(files[RECORD], Path(RECORD), None)
        content = Record.model_validate_json(canonical_json(value))
        files[RECORD] = content.dump().encode()
        text = files[README].decode()
        block = results_block(content, record.track)
        files[README] = replace_block(text, RESULTS, block, file=README).encode()
    except (KeyError, Problem, ValidationError, ValueError, RecursionError):
        return  # what cannot be read stays as it is
