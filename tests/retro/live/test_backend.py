"""The backend as relays and browsers call it: keys, addresses, parts of files, events, pages."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live_views import LOOKER, OWNER, RUN, UPLOAD_KEY, VIEW_KEY, picture, publish, snapshot, video
from starlette.testclient import TestClient

from harness.files import sha256_bytes
from retro.live.asked import CHUNK
from retro.live.backend import COOKIE, make_app
from retro.live.events import Events
from retro.live.store import Store, Upload


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(make_app(Store(tmp_path / "data"), UPLOAD_KEY, VIEW_KEY)) as client:
        yield client


def put(client: TestClient, name: str, content: bytes, run: str = RUN, key: dict[str, str] = OWNER) -> int:
    digest = sha256_bytes(content)
    address = f"/api/uploads/{run}/{name}/{digest}"
    answer = client.put(address, params={"size": len(content)}, content=content, headers=key)
    return answer.status_code


def fill(client: TestClient, folder: Path) -> dict[str, bytes]:
    files = publish(folder)
    for name, content in files.items():
        assert put(client, name, content) == 200
    return files


def test_every_file_comes_back_as_it_was(client: TestClient, tmp_path: Path) -> None:
    for name, content in fill(client, tmp_path).items():
        answer = client.get(f"/api/runs/{RUN}/{name}/{sha256_bytes(content)}", headers=LOOKER)
        assert answer.content == content
        kind = {".png": "image/png", ".mp4": "video/mp4", ".json": "application/json"}[Path(name).suffix]
        assert answer.headers["content-type"] == kind
    (run,) = client.get("/api/runs", headers=LOOKER).json()
    assert (run["id"], run["title"]) == (RUN, "Game")
    assert 0 <= run["heard_s"] < 60


def test_parts_of_the_movie_are_served(client: TestClient, tmp_path: Path) -> None:
    content = fill(client, tmp_path)["movie.mp4"]
    address = f"/api/runs/{RUN}/movie.mp4/{sha256_bytes(content)}"
    answer = client.get(address, headers={**LOOKER, "Range": "bytes=10-19"})
    assert (answer.status_code, answer.content) == (206, content[10:20])
    assert answer.headers["content-range"] == f"bytes 10-19/{len(content)}"
    answer = client.get(address, headers={**LOOKER, "Range": "bytes=-5"})
    assert (answer.status_code, answer.content) == (206, content[-5:])
    assert client.get(address, headers={**LOOKER, "Range": f"bytes={len(content)}-"}).status_code == 416


@pytest.mark.parametrize("key", ["", "wrong", UPLOAD_KEY + "x", UPLOAD_KEY[:-1], VIEW_KEY, "\u00fc"])
def test_uploads_need_their_key(client: TestClient, key: str) -> None:
    content = json.dumps(snapshot()).encode()
    header = {"Authorization": f"Bearer {key}".encode()}
    assert put(client, "snapshot.json", content, key=header) == 401  # type: ignore[arg-type]
    assert client.get("/api/runs", headers=LOOKER).json() == []


@pytest.mark.parametrize(
    "header", [{}, OWNER, {"Authorization": f"Basic {VIEW_KEY}"}, {"Cookie": f"{COOKIE}=x"}]
)
def test_looking_needs_its_key(client: TestClient, tmp_path: Path, header: dict[str, str]) -> None:
    digest = sha256_bytes(fill(client, tmp_path)["frame.png"])
    for address in ("/api/runs", f"/api/runs/{RUN}/events", f"/api/runs/{RUN}/frame.png/{digest}"):
        assert client.get(address, headers=header).status_code == 401
    for address in ("/", "/obs", "/?run=" + RUN):
        answer = client.get(address, headers=header)
        assert answer.status_code == 401
        assert 'action="/enter"' in answer.text


def test_the_key_opens_the_pages_and_is_not_kept_in_the_browser(client: TestClient) -> None:
    assert client.post("/enter", data={"key": "wrong"}, follow_redirects=False).status_code == 401
    answer = client.post("/enter", data={"key": VIEW_KEY}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert VIEW_KEY not in cookie
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    for address, words in (("/", "Splits</h2>"), ("/obs", 'id="clock"')):
        page = client.get(address)
        assert page.status_code == 200
        assert words in page.text
        assert VIEW_KEY not in page.text
    assert client.get("/api/runs").json() == []


def test_a_page_runs_its_own_script_alone(client: TestClient) -> None:
    page = client.get("/", headers=LOOKER)
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page.text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", page.text)
    assert page.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "address",
    [
        f"/api/uploads/{RUN}/..%2f..%2fevil/{'0' * 64}",
        f"/api/uploads/..%2f{RUN[3:]}/frame.png/{'0' * 64}",
        f"/api/uploads/{RUN}/frame.png/..%2f{'0' * 61}",
        f"/api/uploads/{RUN}/evil.html/{'0' * 64}",
        f"/api/uploads/{RUN}/frame.png/{'A' * 64}",
    ],
)
def test_addresses_lead_nowhere_else(client: TestClient, tmp_path: Path, address: str) -> None:
    fill(client, tmp_path)
    before = sorted(path for path in tmp_path.rglob("*"))
    assert client.put(address, params={"size": 1}, content=b"x", headers=OWNER).status_code in (400, 404)
    assert client.get(address.replace("uploads", "runs"), headers=LOOKER).status_code in (400, 404)
    assert sorted(path for path in tmp_path.rglob("*")) == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    run=st.sampled_from([RUN, "f" * 32, "..", "x"]),
    name=st.sampled_from(["frame.png", "movie.mp4", "snapshot.json", "ram.json", "x.exe"]),
    content=st.binary(min_size=1, max_size=300),
    size=st.text(max_size=6) | st.integers(-5, 1 << 40).map(str),
    offset=st.text(max_size=6) | st.integers(-5, 500).map(str),
)
def test_whatever_is_uploaded_is_answered_in_order(
    client: TestClient, run: str, name: str, content: bytes, size: str, offset: str
) -> None:
    address = f"/api/uploads/{run}/{name}/{sha256_bytes(content)}"
    asked = {"size": size, "offset": offset}
    answer = client.put(address, params=asked, content=content, headers=OWNER)
    assert answer.status_code in (200, 400, 404, 409, 413, 422)
    if answer.status_code == 200:  # a part of what has not come to its end
        assert not answer.json()["whole"]
    assert client.get("/api/runs", headers=LOOKER).status_code == 200


def test_a_part_is_at_most_a_megabyte_and_at_least_a_byte(client: TestClient, tmp_path: Path) -> None:
    fill(client, tmp_path)
    address = f"/api/uploads/{RUN}/movie.mp4/{'0' * 64}"
    asked = {"size": 3 * CHUNK}
    assert client.put(address, params=asked, content=b"", headers=OWNER).status_code == 400
    assert client.put(address, params=asked, content=bytes(CHUNK + 1), headers=OWNER).status_code == 413
    assert client.put(address, params=asked, content=bytes(CHUNK), headers=OWNER).status_code == 200
    answer = client.put(address, params=asked, content=bytes(CHUNK), headers=OWNER)
    assert (answer.status_code, answer.json()["received"]) == (409, CHUNK)


def test_an_answer_names_what_the_backend_has(client: TestClient, tmp_path: Path) -> None:
    files = fill(client, tmp_path)
    content = picture(9)
    address = f"/api/uploads/{RUN}/frame.png/{sha256_bytes(content)}"
    answer = client.put(address, params={"size": len(content)}, content=content, headers=OWNER).json()
    expected = {name: sha256_bytes(data) for name, data in {**files, "frame.png": content}.items()}
    assert answer == {"whole": True, "files": expected}


def test_a_run_that_is_not_known_has_no_events_and_takes_no_files(client: TestClient) -> None:
    assert client.get(f"/api/runs/{RUN}/events", headers=LOOKER).status_code == 404
    assert put(client, "movie.mp4", video()) == 404


async def states(store: Store, change: bytes) -> tuple[str, str]:
    """The state of a run at first, and after another picture has come."""
    events = Events(store)
    stream = events.follow(RUN)
    first = await anext(stream)
    store.receive(Upload(RUN, "frame.png", sha256_bytes(change), len(change)), 0, change)
    events.changed(RUN)
    second = await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    assert not events._waiting
    return first, second


def test_events_tell_the_state_now_and_when_it_changes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    content = json.dumps(snapshot(), indent=2).encode()
    with TestClient(make_app(store, UPLOAD_KEY, VIEW_KEY)) as client:
        assert put(client, "snapshot.json", content) == 200
        first, second = (
            json.loads(text.removeprefix("data: ")) for text in asyncio.run(states(store, picture(3)))
        )
    assert first["snapshot"] == second["snapshot"] == snapshot()
    assert first["files"] == {"snapshot.json": sha256_bytes(content)}
    assert second["files"] == {**first["files"], "frame.png": sha256_bytes(picture(3))}
