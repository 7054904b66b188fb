"""The movies that searches leave behind: written in one form, and nothing else passes for them."""

import hashlib
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import Problem
from harness.files import sha256_file
from retro.emulator import versions
from retro.evidence import (
    VERSIONS,
    Found,
    evidence_header,
    evidence_row,
    expected,
    movie_inputs,
    movies_bytes,
    read_evidence,
    read_movies,
    search_seed,
    write_evidence,
)  # fmt: skip
from retro.task import GAMES, MOST_FRAMES, SEARCHES

SEED = 7
GAME = GAMES[0].name
Line = dict[str, Any]


@given(st.integers(0, 2**31 - 1), st.integers(0, 100))
def test_a_searchs_seed_is_31_bits_of_sha_256(seed: int, search: int) -> None:
    digest = hashlib.sha256(f"{seed} {search}".encode()).hexdigest()
    assert search_seed(seed, search) == int(digest[:8], 16) % 2**31


def test_searches_have_seeds_of_their_own() -> None:
    assert len({search_seed(seed, search) for seed in range(100) for search in range(8)}) == 800


def test_what_may_be_named_is_what_emulation_depends_on() -> None:
    assert versions().keys() == VERSIONS


def found(inputs: str | None = "1 2:START") -> list[Found]:
    return [one._replace(inputs=inputs) for one in expected(SEED)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.none() | st.text(max_size=9), min_size=len(expected(0)), max_size=len(expected(0))))
def test_movies_come_back_in_order(tmp_path: Path, texts: list[str | None]) -> None:
    made = [one._replace(inputs=text) for one, text in zip(expected(SEED), texts, strict=True)]
    (tmp_path / "movies.json").write_bytes(movies_bytes(reversed(made)))
    assert read_movies(tmp_path / "movies.json", SEED) == made


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda rows: rows.pop(), r"holds \d+ searches of games, not \d+"),
        (lambda rows: rows.append(rows[0]), r"holds \d+ searches of games, not \d+"),
        (lambda rows: rows.reverse(), "search is .*, expected 0: this must be search 0 of"),
        (lambda rows: rows[1].update(seed=1), f"seed is 1, expected {search_seed(SEED, 1)}"),
        (lambda rows: rows[1].update(search=True), "search is True, expected 1"),
        (lambda rows: rows[0].update(game="Tetris"), f"game is 'Tetris', expected '{GAME}'"),
        (lambda rows: rows[0].update(inputs=[0, 1]), "neither text nor null"),
        (lambda rows: rows[0].update(inputs="9" * (2**20 + 1)), "more than 1,048,576 characters"),
        (lambda rows: rows[0].pop("inputs"), "this must be search 0"),
        (lambda rows: rows[0].update(frames=1), "this must be search 0"),
        (lambda rows: rows.__setitem__(0, None), "this must be search 0"),
    ],
)
def test_movies_of_another_run_or_form_are_refused(
    tmp_path: Path, change: Callable[[list[Any]], object], reason: str
) -> None:
    path = tmp_path / "movies.json"
    rows = json.loads(movies_bytes(found()))["searches"]
    change(rows)
    path.write_text(json.dumps({"searches": rows}))
    with pytest.raises(Problem, match=reason) as caught:
        read_movies(path, SEED)
    assert caught.value.file == str(path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"searches":{}}', '{"searches":[],"x":1}', '{"searches":1,']
)
def test_what_is_no_list_of_movies_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "movies.json").write_text(text)
    with pytest.raises(Problem):
        read_movies(tmp_path / "movies.json", SEED)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 2:START", None),
        ("", "inputs of 0 frames"),
        ("2:START", "press buttons in frame 0"),
        ("1 1 2:START", "not written as"),
        ("1  2:START", "not written as"),
        ("1 2:A+START", "not written as"),
        ("1 2:JUMP", "'JUMP' is not a button"),
        (f"{MOST_FRAMES + 1}", "inputs of 36,001 frames"),
        (f"{MOST_FRAMES}", None),
        ("999999999", "a run must have"),
    ],
)
def test_inputs_have_one_form(text: str, reason: str | None) -> None:
    one = found(text)[0]
    if reason is None:
        assert movie_inputs(one)[0] == 0
    else:
        with pytest.raises(Problem, match=reason):
            movie_inputs(one)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run folder with the movies in it and, as evidence, what no replay has looked at."""
    (tmp_path / "movies.json").write_bytes(movies_bytes(found()))
    digest = sha256_file(tmp_path / "movies.json")
    header = evidence_header("cpu", SEED, digest, {"stable-retro": "1.0.1"})
    rows = [evidence_row(one, None) for one in found()]
    write_evidence(tmp_path / "evidence.jsonl.xz", header, rows)
    return tmp_path


def lines_of(folder: Path) -> list[Line]:
    return [
        json.loads(line) for line in lzma.decompress((folder / "evidence.jsonl.xz").read_bytes()).splitlines()
    ]


def test_evidence_comes_back(folder: Path) -> None:
    header, lines = read_evidence(folder / "evidence.jsonl.xz")
    assert [header, *(line.row for line in lines)] == lines_of(folder)
    assert [line.found for line in lines] == found()
    assert [line.number for line in lines] == list(range(2, 2 + len(lines)))
    assert header["games"] == {GAME: sha256_file(Path(GAMES[0].rom))} and header["searches"] == SEARCHES == 8


FORGERIES: list[tuple[Callable[[list[Line]], object], int, str]] = [
    (lambda lines: lines.clear(), 1, "seed is not a number"),
    (lambda lines: lines[0].update(seed=-1), 1, "seed is not a number"),
    (lambda lines: lines[0].update(seed=True), 1, "seed is not a number"),
    (lambda lines: lines[0].update(seed=8), 2, "seed is .*, expected"),
    (lambda lines: lines[0].update(checkpoint_sha256="x"), 1, "checkpoint_sha256 is not a SHA-256"),
    (lambda lines: lines[0].update(versions=[]), 1, "versions does not name"),
    (lambda lines: lines[0]["versions"].update(note="x"), 1, "versions does not name"),
    (lambda lines: lines[0]["versions"].update({"stable-retro": "1 2"}), 1, "which is not a version"),
    (lambda lines: lines[0].update({"class": 1}), 1, "class is not a name"),
    (lambda lines: lines[0].update(searches=7), 1, "searches is 7, expected 8"),
    (lambda lines: lines[0].update(searches=8.0), 1, "searches is 8.0, expected 8"),
    (lambda lines: lines[0].update(hash_every=600), 1, "hash_every is 600, expected 60"),
    (lambda lines: lines[0]["games"].update({GAME: "0" * 64}), 1, "games is"),
    (lambda lines: lines[0].update(note=""), 1, "the first line holds more than"),
    (lambda lines: lines.pop(), 1, "7 lines of searches and games follow, not 8"),
    (lambda lines: lines.append(lines[-1]), 1, "at least 9 lines of searches and games follow, not 8"),
    (lambda lines: lines.extend([{}] * 100_000), 1, "at least 9 lines of searches"),
    (lambda lines: lines.__setitem__(slice(2, 4), lines[3:1:-1]), 3, "this must be search 1"),
    (lambda lines: lines[4].update(seed=3), 5, "seed is 3"),
    (lambda lines: lines[4].update(note=3), 5, "must have exactly"),
    (lambda lines: lines[4].pop("screen"), 5, "must have exactly"),
    (lambda lines: lines[4].update(inputs="1 1"), 5, "not written as"),
    (lambda lines: lines[4].update(inputs="1 3:START"), 5, "inputs are not those of movies.json"),
    (lambda lines: lines[4].update(inputs=None), 5, "inputs are not those of movies.json"),
]


@pytest.mark.parametrize(("forge", "number", "reason"), FORGERIES)
def test_forged_evidence_is_named_by_line(
    folder: Path, forge: Callable[[list[Line]], object], number: int, reason: str
) -> None:
    lines = lines_of(folder)
    forge(lines)
    path = folder / "evidence.jsonl.xz"
    path.write_bytes(lzma.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    with pytest.raises(Problem, match=reason) as caught:
        read_evidence(path)
    assert (caught.value.file, caught.value.line) == (str(path), number)


def test_evidence_without_its_movies_is_refused(folder: Path) -> None:
    (folder / "movies.json").unlink()
    with pytest.raises(Problem, match=r"movies\.json: cannot be read"):
        read_evidence(folder / "evidence.jsonl.xz")
