"""What a backend keeps: any order of parts gives the file or a refusal, and the room on disk is bounded."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live_views import RUN, picture, snapshot, video

from harness.files import sha256_bytes
from retro.live.store import KEPT, Refusal, Store, Upload


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path)
    begin(store)
    yield store
    store.close()


def begin(store: Store, run: str = RUN) -> None:
    content = json.dumps(snapshot(run={**snapshot()["run"], "id": run})).encode()
    assert store.receive(upload(content, "snapshot.json", run), 0, content)


def upload(content: bytes, name: str = "movie.mp4", run: str = RUN) -> Upload:
    return Upload(run, name, sha256_bytes(content), len(content))


def content_of(store: Store, name: str = "movie.mp4", run: str = RUN) -> bytes | None:
    digest = store.files(run).get(name)
    path = store.path(run, name, digest) if digest else None
    return path.read_bytes() if path else None


def status(store: Store, asked: Upload, offset: int, chunk: bytes) -> int:
    with pytest.raises(Refusal) as caught:
        store.receive(asked, offset, chunk)
    return caught.value.status


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(parts=st.lists(st.tuples(st.integers(0, 1 << 14), st.integers(1, 1 << 14)), max_size=12))
def test_parts_in_any_order_give_the_file_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[int, int]]
) -> None:
    store, content = Store(tmp_path_factory.mktemp("store")), video(6)
    begin(store)
    asked, have, whole = upload(content), 0, False
    for offset, length in parts:
        chunk = content[offset : offset + length]
        try:
            whole = store.receive(asked, offset, chunk)
            have = have if offset != have else have + len(chunk)
        except Refusal as refusal:
            assert refusal.status in (409, 413)
            assert refusal.received in (None, have)
    while not whole:  # whoever goes on where the store stands comes to the end
        whole = store.receive(asked, have, content[have : have + 5000])
        have += 5000
    assert content_of(store) == content
    store.close()


def test_what_is_not_as_announced_is_refused_and_forgotten(store: Store) -> None:
    content = video()
    assert status(store, upload(content)._replace(sha256="0" * 64), 0, content) == 422
    assert status(store, upload(b"<html>"), 0, b"<html>") == 422
    assert status(store, upload(content), 5, content[5:]) == 409
    assert status(store, upload(content)._replace(size=1 << 40), 0, content) == 413
    assert status(store, upload(content)._replace(size=5), 0, content) == 413
    assert status(store, upload(content, run="f" * 32), 0, content) == 404
    assert content_of(store) is None
    assert store.receive(upload(content), 0, content)
    assert content_of(store) == content


def test_the_version_before_stays_while_it_may_be_loading(store: Store, tmp_path: Path) -> None:
    pictures = [picture(shade) for shade in range(5)]
    for content in pictures:
        assert store.receive(upload(content, "frame.png"), 0, content)
    digests = [sha256_bytes(content) for content in pictures]
    there = [store.path(RUN, "frame.png", digest) is not None for digest in digests]
    assert there == [False] * (5 - KEPT) + [True] * KEPT
    assert len(list((tmp_path / "files" / RUN).glob("*.png"))) == KEPT
    # An old version again is the newest then.
    assert store.receive(upload(pictures[0], "frame.png"), 0, pictures[0])
    assert content_of(store, "frame.png") == pictures[0]


def test_a_whole_upload_that_a_crash_left_unfinished_is_finished(store: Store, tmp_path: Path) -> None:
    content = video()
    asked = upload(content)
    (tmp_path / "partial" / f"{RUN}.movie.mp4.{asked.sha256}").write_bytes(content)
    assert store.receive(asked, 0, content[:1])
    assert content_of(store) == content


def test_what_a_crash_left_behind_is_removed(store: Store, tmp_path: Path) -> None:
    content = video()
    assert store.receive(upload(content), 0, content)
    (tmp_path / "files" / RUN / f"{'0' * 64}.mp4").write_bytes(content)
    store.close()
    again = Store(tmp_path)
    assert len(list((tmp_path / "files" / RUN).glob("*.mp4"))) == 1
    assert content_of(again) == content
    again.close()


def test_the_runs_heard_of_longest_ago_make_room(tmp_path: Path) -> None:
    content = video(6)
    store = Store(tmp_path, most_bytes=3 * len(content), most_runs=3)
    runs = [f"{number:032x}" for number in range(5)]
    for run in runs:
        begin(store, run)
        assert store.receive(upload(content, run=run), 0, content)
        used = sum(path.stat().st_size for path in tmp_path.glob("files/*/*"))
        assert used <= 3 * len(content)
    kept = [run["id"] for run in store.runs()]
    assert kept == [run for run in reversed(runs) if run in kept]
    assert kept[0] == runs[-1]
    assert 1 <= len(kept) <= 3
    assert {path.name for path in (tmp_path / "files").iterdir()} == set(kept)
    large = upload(video(5), run=runs[-1])._replace(size=4 * len(content))
    assert status(store, large, 0, content) == 507
    assert [run["id"] for run in store.runs()] == kept
    store.close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "live.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(sqlite3.DatabaseError):
        Store(tmp_path)
