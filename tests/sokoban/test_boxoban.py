"""sokoban.boxoban: pinned bytes from a folder or over HTTP, and no training level that is a test level."""

import hashlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from sokoban import boxoban
from sokoban.boxoban import (
    LevelsUnavailable,
    WrongChecksum,
    describe_levels,
    pinned_files,
    read_split,
)
from sokoban.generator import PRACTICE
from sokoban.levels import BOXOBAN, read_levels
from sokoban.symmetry import canonical_keys, images
from sokoban.table import parse_table, table_of

CONTENT = PRACTICE.read_bytes()  # stands in for an official file where none is at hand
DIGEST = hashlib.sha256(CONTENT).hexdigest()
NAMES = ("unfiltered/test/000.txt", "unfiltered/valid/026.txt")


@pytest.fixture
def small_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pin two files with the bytes of the practice set in place of the official ones; no BOXOBAN_LEVELS."""
    hashes = tmp_path / "hashes"
    hashes.write_text("# a comment\n" + "".join(f"{DIGEST}  {name}\n" for name in NAMES))
    monkeypatch.setattr(boxoban, "HASHES", hashes)
    monkeypatch.delenv("BOXOBAN_LEVELS", raising=False)
    pinned_files.cache_clear()
    yield
    pinned_files.cache_clear()


@dataclass
class Site:
    """A real HTTP server on this machine that answers with `body`, and may promise more than it sends."""

    body: bytes = CONTENT
    promised: int = len(CONTENT)
    status: int = 200
    asked: list[str] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            self.send_response(site.status)
            self.send_header("Content-Length", str(site.promised))
            self.end_headers()
            self.wfile.write(site.body)

        def log_message(self, *arguments: object) -> None:
            pass

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        site.url = f"http://127.0.0.1:{server.server_port}/levels/"
        yield site
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("small_table")
def test_download_once(site: Site, tmp_path: Path) -> None:
    for _ in range(2):
        table = read_split("unfiltered/test", base_url=site.url, cache_folder=tmp_path / "cache")
        assert len(table) == 1000 and table.sources == ((NAMES[0], DIGEST),)
        assert site.asked == [f"/levels/{NAMES[0]}"]
    cached = tmp_path / "cache" / NAMES[0]
    cached.write_bytes(CONTENT[:-1])  # damage in the cache is mended
    assert len(read_split("unfiltered/test", base_url=site.url, cache_folder=tmp_path / "cache")) == 1000
    assert cached.read_bytes() == CONTENT and len(site.asked) == 2


@pytest.mark.usefixtures("small_table")
@pytest.mark.parametrize(
    ("body", "promised", "status", "error", "said"),
    [
        (CONTENT.replace(b"#", b"@", 1), len(CONTENT), 200, WrongChecksum, DIGEST),
        (CONTENT[:-1], len(CONTENT) - 1, 200, WrongChecksum, DIGEST),
        (CONTENT[:5000], len(CONTENT), 200, LevelsUnavailable, "cannot be downloaded"),
        (b"gone", 4, 404, LevelsUnavailable, "HTTP 404"),
    ],
    ids=["corrupted", "short", "cut off", "missing"],
)
def test_bad_answers(
    site: Site, tmp_path: Path, body: bytes, promised: int, status: int, error: type[Exception], said: str
) -> None:
    site.body, site.promised, site.status = body, promised, status
    with pytest.raises(error) as caught:
        read_split("unfiltered/test", base_url=site.url, cache_folder=tmp_path / "cache")
    assert type(caught.value) is error
    for part in (site.url + NAMES[0], said, "Remedy: ", "BOXOBAN_LEVELS"):
        assert part in str(caught.value)
    assert not (tmp_path / "cache" / NAMES[0]).exists()
    site.body, site.promised, site.status = CONTENT, len(CONTENT), 200
    assert len(read_split("unfiltered/test", base_url=site.url, cache_folder=tmp_path / "cache")) == 1000


@pytest.mark.usefixtures("small_table")
def test_no_folder_and_no_network(tmp_path: Path) -> None:
    with pytest.raises(
        LevelsUnavailable, match="Remedy: connect to the internet once, or point BOXOBAN_LEVELS"
    ):
        read_split("unfiltered/test", base_url="http://127.0.0.1:9/", cache_folder=tmp_path)


@pytest.mark.usefixtures("small_table")
def test_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOXOBAN_LEVELS", str(tmp_path / "levels"))
    with pytest.raises(LevelsUnavailable, match=r"000\.txt: No such file.*Remedy: point BOXOBAN_LEVELS"):
        read_split("unfiltered/test")
    path = tmp_path / "levels" / NAMES[0]
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    assert np.array_equal(read_split("unfiltered/test").player, parse_table(CONTENT, "").player)
    damaged = CONTENT.replace(b"$", b".", 1)
    path.write_bytes(damaged)
    with pytest.raises(WrongChecksum) as caught:
        read_split("unfiltered/test")
    for part in (str(path), DIGEST, hashlib.sha256(damaged).hexdigest(), "Remedy: replace it with https://"):
        assert part in str(caught.value)


@pytest.mark.usefixtures("small_table")
def test_known_copies_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOXOBAN_LEVELS", str(tmp_path))
    path = tmp_path / NAMES[1]
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    whole, read = parse_table(CONTENT, ""), read_split("unfiltered/valid")
    assert np.array_equal(read.boxes, np.delete(whole.boxes, 35))


def test_what_is_pinned() -> None:
    assert {split: len(pinned_files(split)) for split in ("hard", "medium/valid", "unfiltered/valid")} == {
        "hard": 4,
        "medium/valid": 5,
        "unfiltered/valid": 5,
    }
    assert len(pinned_files()) == 115 and len(pinned_files("unfiltered/train")) == 100
    assert pinned_files("unfiltered/test") == {
        "unfiltered/test/000.txt": "272928a4e7c185fdf84daa523b298750b6ff08703cb0c20d3be7eff93acc5256"
    }
    with pytest.raises(ValueError, match="no split 'unfiltered'"):
        pinned_files("unfiltered")
    with pytest.raises(ValueError, match="5 files of hard: between 1 and 4"):
        read_split("hard", 5)


@pytest.mark.usefixtures("boxoban_folder")
def test_official_splits() -> None:
    started = time.process_time()
    train = read_split("unfiltered/train")
    assert time.process_time() - started < 2
    assert len(train) == 100_000
    assert train.sources == tuple(pinned_files("unfiltered/train").items())
    assert len(read_split("unfiltered/train", 3)) == 3000
    assert [len(read_split(split)) for split in ("unfiltered/test", "medium/valid", "hard")] == [
        1000,
        5000,
        3332,
    ]


def test_official_levels_are_read_whole(boxoban_folder: Path) -> None:
    careful = read_levels(boxoban_folder / "hard/003.txt", BOXOBAN, count=332)
    bulk = read_split("hard")
    for plane, expected in zip(bulk.planes, table_of(careful).planes, strict=True):
        assert np.array_equal(plane[3000:], expected)


def test_no_other_level_is_a_test_level(boxoban_folder: Path) -> None:
    """In every file of the folder, the levels that equal a test level under a symmetry are those pinned."""
    test = read_split("unfiltered/test")
    keys = canonical_keys(test)
    assert len(np.unique(keys)) == 1000
    turned = images(test.take(slice(0, 3)))[5]
    assert np.isin(canonical_keys(turned), keys).all()
    names = sorted(path.relative_to(boxoban_folder).as_posix() for path in boxoban_folder.rglob("*.txt"))
    assert set(names) >= set(pinned_files())
    for name in names:
        if name.startswith("unfiltered/test/"):
            continue
        whole = parse_table((boxoban_folder / name).read_bytes(), name)
        copies = np.flatnonzero(np.isin(canonical_keys(whole), keys)).tolist()
        pinned = boxoban.COPIES_OF_TEST_LEVELS.get(name)
        assert copies == ([] if pinned is None else [pinned]), name
        assert len(boxoban.without_copies(name, whole)) == len(whole) - len(copies)


def test_describes_where_levels_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unfiltered/test").mkdir(parents=True)
    (tmp_path / "unfiltered/test/000.txt").touch()
    monkeypatch.setenv("BOXOBAN_LEVELS", str(tmp_path))
    assert describe_levels() == f"1 of 115 pinned files in BOXOBAN_LEVELS={tmp_path}"
    monkeypatch.delenv("BOXOBAN_LEVELS")
    assert "downloaded when needed" in describe_levels()
