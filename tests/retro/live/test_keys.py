"""Keys and addresses: where they come from, and that no message tells a key."""

from pathlib import Path

import pytest
from live_views import UPLOAD_KEY

from harness.errors import Problem
from retro.live.keys import UPLOAD, read_key
from retro.live.relay import checked_url


@pytest.mark.parametrize(
    "url",
    ["", "backend", "ftp://host", "http://", "http://user:pass@host", "http://host/?key=x", "http://host/#x"],
)
def test_an_address_is_one(url: str) -> None:
    with pytest.raises(Problem):
        checked_url(url)


def test_a_key_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(UPLOAD, raising=False)
    with pytest.raises(Problem, match=f"{UPLOAD} holds no key. Remedy: make one: python -c"):
        read_key(UPLOAD, None)
    with pytest.raises(Problem, match="Remedy: take the one that the backend was started with"):
        read_key(UPLOAD, None, of_backend=True)
    monkeypatch.setenv(UPLOAD, UPLOAD_KEY)
    assert read_key(UPLOAD, None) == UPLOAD_KEY
    file = tmp_path / "key"
    file.write_text("another-key-of-the-relay\n")
    assert read_key(UPLOAD, file) == "another-key-of-the-relay"
    for text in ("", "short", "x" * 300, "sixteen letters or more", "schl\u00fcssel-schl\u00fcssel"):
        file.write_text(text)
        with pytest.raises(Problem) as caught:
            read_key(UPLOAD, file)
        assert not text or text not in str(caught.value)
