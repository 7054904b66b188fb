"""The official Boxoban levels: google-deepmind/boxoban-levels, checked file by file against pinned hashes.

The folder named by the environment variable BOXOBAN_LEVELS is read where it is set. Elsewhere the files are
downloaded once into a cache folder. Neither way returns a byte that does not match `data/boxoban.sha256`.
"""

import hashlib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pooch
import requests
from tqdm import tqdm

from sokoban.table import LevelTable, concatenate, parse_table, table_of

__all__ = [
    "LevelTable",
    "LevelsUnavailable",
    "WrongChecksum",
    "describe_levels",
    "pinned_files",
    "read_split",
    "table_of",
]

COMMIT = "78011d8c86ad423bfb2e1005012393b4c3c24409"
BASE_URL = f"https://raw.githubusercontent.com/google-deepmind/boxoban-levels/{COMMIT}/"
FOLDER_VARIABLE = "BOXOBAN_LEVELS"
HASHES = Path(__file__).parent / "data" / "boxoban.sha256"

# Levels that equal one of unfiltered/test, possibly turned or mirrored: file -> 0-based index in the file.
COPIES_OF_TEST_LEVELS: Mapping[str, int] = MappingProxyType(
    {
        "unfiltered/valid/026.txt": 35,
        "unfiltered/train/425.txt": 846,
        "unfiltered/train/636.txt": 582,
        "medium/train/023.txt": 953,
    }
)


class LevelsUnavailable(Exception):
    """The levels cannot be had. Carries `reason` and `remedy`."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}. Remedy: {remedy}")
        self.reason, self.remedy = reason, remedy


class WrongChecksum(LevelsUnavailable):
    """A file whose bytes are not the pinned ones."""


@cache
def pinned_files(split: str = "") -> Mapping[str, str]:
    """File name -> SHA-256 of every pinned file of a split such as `unfiltered/train`, or of all of them."""
    lines = HASHES.read_text("utf-8").splitlines()
    pairs = (line.split("  ") for line in lines if not line.startswith("#"))
    files = {name: digest for digest, name in pairs}
    splits = sorted({_split_of(name) for name in files})
    if split and split not in splits:
        raise ValueError(f"no split {split!r}: the splits are {', '.join(splits)}")
    return MappingProxyType({name: files[name] for name in files if split in ("", _split_of(name))})


def _split_of(name: str) -> str:
    return name.rpartition("/")[0]


def read_split(
    split: str, files: int | None = None, *, base_url: str = BASE_URL, cache_folder: Path | None = None
) -> LevelTable:
    """Read the first `files` files of a split, or all that are pinned, in the order of their names.

    Known copies of test levels are left out of every split but the test split itself. `base_url` and
    `cache_folder` say where files come from and are kept when BOXOBAN_LEVELS is not set.

    Raises:
        ValueError: the split is unknown or has fewer files.
        LevelsUnavailable: a file is missing or cannot be downloaded.
        WrongChecksum: a file is not the official one.
    """
    pinned = pinned_files(split)
    if files is not None and not 0 < files <= len(pinned):
        raise ValueError(f"{files} files of {split}: between 1 and {len(pinned)} are pinned")
    names = list(pinned)[:files]
    folder = os.environ.get(FOLDER_VARIABLE)
    root = Path(folder) if folder else _download(names, base_url, cache_folder)
    return concatenate([_read_file(root, name, pinned[name]) for name in names])


def describe_levels() -> str:
    """Where the official levels come from on this machine, and how many of the pinned files are there."""
    folder = os.environ.get(FOLDER_VARIABLE)
    root = Path(folder) if folder else _cache_folder()
    there = sum((root / name).is_file() for name in pinned_files())
    where = (
        f"{FOLDER_VARIABLE}={folder}" if folder else f"the cache {root}, the rest is downloaded when needed"
    )
    return f"{there} of {len(pinned_files())} pinned files in {where}"


def _cache_folder() -> Path:
    return Path(pooch.os_cache("boxoban-levels")) / COMMIT


def _read_file(root: Path, name: str, expected: str) -> LevelTable:
    path = root / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LevelsUnavailable(
            f"{path}: {error.strerror}",
            f"point {FOLDER_VARIABLE} at a full copy of {BASE_URL}, or unset it to download the levels",
        ) from None
    digest = hashlib.sha256(data).hexdigest()
    if digest != expected:
        raise WrongChecksum(
            f"{path} has SHA-256 {digest}, the official file has {expected}",
            f"replace it with {BASE_URL}{name}, or unset {FOLDER_VARIABLE} to download it",
        )
    return without_copies(name, parse_table(data, name, digest))


def without_copies(name: str, table: LevelTable) -> LevelTable:
    """The levels of the file `name` but for the known copy of a test level in it."""
    kept = np.arange(len(table)) != COPIES_OF_TEST_LEVELS.get(name, -1)
    return table.take(kept)


def _download(names: list[str], base_url: str, cache_folder: Path | None) -> Path:
    """Fetch what the cache lacks or holds damaged; a file enters the cache only once its hash is right."""
    root = cache_folder or _cache_folder()
    pooch.get_logger().setLevel("WARNING")
    registry = {name: f"sha256:{digest}" for name, digest in pinned_files().items()}
    store = pooch.create(path=root, base_url=base_url, registry=registry)
    for name in tqdm(names, desc="Boxoban levels", unit="file", disable=None, leave=False):
        try:
            store.fetch(name, downloader=_get)
        except ValueError as error:  # pooch's word for a wrong hash
            raise WrongChecksum(
                f"{base_url}{name}: {error}", f"try again, or point {FOLDER_VARIABLE} at a copy of the levels"
            ) from None
        except OSError as error:  # what requests raises is one too
            answer = getattr(error, "response", None)
            cause = type(error).__name__ if answer is None else f"HTTP {answer.status_code}"
            raise LevelsUnavailable(
                f"{base_url}{name} cannot be downloaded ({cause})",
                f"connect to the internet once, or point {FOLDER_VARIABLE} at a copy of the levels",
            ) from None
    return root


def _get(url: str, output_file: str, _: object) -> None:
    """What pooch calls to fetch one file; a short answer is an error here, and no socket stays open."""
    answer = requests.get(url, timeout=30)
    answer.raise_for_status()
    Path(output_file).write_bytes(answer.content)
