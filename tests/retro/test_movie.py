"""Movie files: as stable-retro writes and reads them, and nothing that a hostile zip could do."""

import io
import json
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import stable_retro
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Problem
from harness.track import ROOT
from retro.emulator import Emulator
from retro.movie import Evidence, Movie, read_movie, write_movie
from retro.packages import load_package

EVIDENCE = Evidence(60, ("0123456789abcdef", "f" * 16), {"title": 12, "level-1": 44}, "00aa" * 4)
PLAIN = Movie(
    game="Quarterstep-Nes-v0",
    inputs=(0, 0, 8, 8, 128 | 256, 1, 4),
    rom_sha256="ab" * 32,
    system="Nes",
    core="fceumm",
    versions={"stable-retro": "1.0.1", "fceumm": "00ff" * 4},
    boot=bytes(range(256)) * 4,
    evidence=EVIDENCE,
)


@pytest.fixture(params=["quarterstep", "airstriker"])
def emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    opened = Emulator(load_package(request.param).rom, {})
    yield opened
    opened.close()


def some_movie(emulator: Emulator, count: int = 50) -> Movie:
    generator = random.Random(1)
    bits = [1 << place for place, name in enumerate(emulator.buttons) if name]
    inputs = (0, *(sum(generator.sample(bits, generator.randint(0, len(bits)))) for _ in range(count)))
    core, system = emulator.core, emulator.system
    return replace(
        PLAIN, game=f"Any-{system}-v0", inputs=inputs, system=system, core=core, boot=emulator.boot
    )


# ---- ours and stable-retro's -------------------------------------------------------------------------------


def test_a_movie_reads_back_equal(tmp_path: Path) -> None:
    for movie in (PLAIN, replace(PLAIN, evidence=None), replace(PLAIN, rom_sha256=None, core=None)):
        write_movie(tmp_path / "a.bk2", movie)
        assert read_movie(tmp_path / "a.bk2") == movie
        write_movie(tmp_path / "b.bk2", movie)
        assert (tmp_path / "a.bk2").read_bytes() == (tmp_path / "b.bk2").read_bytes()


@given(
    st.sampled_from(["Nes", "Genesis"]).flatmap(
        lambda system: st.tuples(st.just(system), st.lists(st.integers(0, 4095), max_size=30))
    )
)
def test_any_inputs_read_back_equal(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[str, list[int]]
) -> None:
    system, inputs = drawn
    known = 0x1FD if system == "Nes" else 0xFFF
    movie = replace(PLAIN, system=system, inputs=(0, *(bits & known for bits in inputs)))
    path = tmp_path_factory.mktemp("movie") / "movie.bk2"
    write_movie(path, movie)
    assert read_movie(path) == movie


def test_members_are_what_stable_retro_writes(emulator: Emulator, tmp_path: Path) -> None:
    movie = some_movie(emulator)
    theirs = stable_retro.Movie(str(tmp_path / "theirs.bk2"), True, 1)
    theirs.configure(movie.game, emulator._core)
    theirs.set_state(emulator.boot)
    for bits in movie.inputs:
        for place in range(len(emulator.buttons)):
            theirs.set_key(place, bool(bits >> place & 1), 0)
        theirs.step()
    theirs.close()
    write_movie(tmp_path / "ours.bk2", movie)
    with zipfile.ZipFile(tmp_path / "ours.bk2") as ours, zipfile.ZipFile(tmp_path / "theirs.bk2") as other:
        assert {*ours.namelist()} == {*other.namelist(), "Speedrun.json"}
        for name in other.namelist():
            assert ours.read(name) == other.read(name)
    read = read_movie(tmp_path / "theirs.bk2")
    assert read == replace(movie, rom_sha256=None, core=None, versions={}, evidence=None)


def test_stable_retro_reads_ours(emulator: Emulator, tmp_path: Path) -> None:
    movie = some_movie(emulator)
    write_movie(tmp_path / "ours.bk2", movie)
    theirs = stable_retro.Movie(str(tmp_path / "ours.bk2"))
    assert (theirs.get_game(), theirs.players, theirs.get_state()) == (movie.game, 1, movie.boot)
    inputs = []
    while theirs.step():
        inputs.append(sum(1 << k for k in range(len(emulator.buttons)) if theirs.get_key(k, 0)))
    assert tuple(inputs) == movie.inputs


@pytest.mark.parametrize(
    ("movie", "reason"),
    [
        (replace(PLAIN, inputs=()), "at least one frame"),
        (replace(PLAIN, inputs=(1, 0)), "the first without buttons"),
        (replace(PLAIN, boot=None), "boot state"),
        (replace(PLAIN, inputs=(0, 2)), "not buttons"),
        (replace(PLAIN, inputs=(0, 512)), "not buttons"),
    ],
)
def test_what_is_no_movie_is_not_written(tmp_path: Path, movie: Movie, reason: str) -> None:
    with pytest.raises(Problem, match=reason):
        write_movie(tmp_path / "a.bk2", movie)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_movie(tmp_path: Path) -> None:
    """A process that may not write more than a kilobyte to a file stands for the disk."""
    path = tmp_path / "movie.bk2"
    write_movie(path, PLAIN)
    script = (
        "import random, resource, signal, sys\nfrom dataclasses import replace\nfrom pathlib import Path\n"
        "from retro.movie import read_movie, write_movie\n"
        "path = Path(sys.argv[1])\nmovie = replace(read_movie(path), boot=random.Random(1).randbytes(9999))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))\nwrite_movie(path, movie)\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert "movie.bk2: cannot be written: File too large" in done.stderr
    assert list(tmp_path.iterdir()) == [path] and read_movie(path) == PLAIN


# ---- hostile files -----------------------------------------------------------------------------------------

Change = Callable[[dict[str, bytes]], object]


def zipped(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


@pytest.fixture
def members(tmp_path: Path) -> dict[str, bytes]:
    write_movie(tmp_path / "plain.bk2", PLAIN)
    with zipfile.ZipFile(tmp_path / "plain.bk2") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def swap(name: str, old: str, new: str) -> Change:
    def change(members: dict[str, bytes]) -> None:
        assert old.encode() in members[name]
        members[name] = members[name].replace(old.encode(), new.encode())

    return change


def put(name: str, content: bytes) -> Change:
    return lambda members: members.__setitem__(name, content)


def claim(**fields: object) -> Change:
    def change(members: dict[str, bytes]) -> None:
        members["Speedrun.json"] = json.dumps(json.loads(members["Speedrun.json"]) | fields).encode()

    return change


LOG, HEADER = "Input Log.txt", "Header.txt"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda members: members.pop(LOG), "has no Input Log.txt"),
        (lambda members: members.pop(HEADER), "has no Header.txt"),
        (put("../evil.txt", b"x"), "a member of the name '../evil.txt'"),
        (put("/etc/passwd", b"x"), "a member of the name"),
        (put("a\\b", b"x"), "a member of the name"),
        (lambda members: members.update({f"m{n}": b"" for n in range(40)}), "more than 32 members"),
        (put(LOG, bytes(2**26 + 1)), "Input Log.txt unpacks to more than"),
        (put("Core.bin", bytes(2**24 + 1)), "Core.bin unpacks to more than"),
        (put(HEADER, b"\xff\xfe"), "not UTF-8"),
        (swap(HEADER, "MovieVersion Retro", "MovieVersion BizHawk v2.0"), "another player: 'BizHawk v2.0'"),
        (swap(HEADER, "Platform NES", "Platform SNES"), "a console other than NES, GEN"),
        (swap(HEADER, "GameName Quarterstep-Nes-v0", "GameName ../x"), "names no game"),
        (swap(HEADER, "GameName", "Name"), "names no game"),
        (swap(LOG, "[Input]\n", ""), "does not reach from"),
        (swap(LOG, "\n[/Input]", ""), "does not reach from"),
        (put(LOG, b""), "does not reach from"),
        (put(LOG, b"[Input]\nP1 A|\n[/Input]"), "a frame in it"),
        (swap(LOG, "P1 Select", "P2 Select"), "other than of player 1"),
        (swap(LOG, "P1 Select", "P1 Turbo"), "not a button"),
        (swap(LOG, "P1 Select", "P1 Start"), "a column twice"),
        (swap(LOG, "|..|......s.|", "|..|......s|"), "line 9: no frame of 8 keys"),
        (swap(LOG, "|..|......s.|", "|..|......s..|"), "line 9: no frame of 8 keys"),
        (swap(LOG, "|..|......s.|", "\n"), "line 9: no frame"),
        (put("Speedrun.json", b"{"), "not JSON"),
        (put("Speedrun.json", b"{}"), "format: Field required"),
        (claim(format=2), "format"),
        (claim(more=1), "more: Extra inputs"),
        (claim(rom_sha256="AB" * 32), "rom_sha256"),
        (
            claim(evidence={"hash_every": 0, "ram_hashes": [], "splits": {}, "screen_hash": "0" * 16}),
            "hash_every",
        ),
        (
            claim(evidence={"hash_every": 6, "ram_hashes": ["x"], "splits": {}, "screen_hash": "0" * 16}),
            "ram_",
        ),
    ],
)
def test_hostile_movies_are_problems(
    tmp_path: Path, members: dict[str, bytes], change: Change, reason: str
) -> None:
    change(members)
    path = tmp_path / "hostile.bk2"
    path.write_bytes(zipped(members))
    with pytest.raises(Problem, match=reason) as caught:
        read_movie(path)
    assert caught.value.file == str(path)


def test_a_member_twice_is_a_problem(tmp_path: Path, members: dict[str, bytes]) -> None:
    path = tmp_path / "twice.bk2"
    path.write_bytes(zipped(members))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("Header.txt", members["Header.txt"])
    with pytest.raises(Problem, match=r"Header\.txt twice"):
        read_movie(path)


def test_a_file_that_is_cut_short_or_changed_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "movie.bk2"
    write_movie(path, PLAIN)
    whole = path.read_bytes()
    generator = random.Random(2)
    for length in (0, 1, 30, *(generator.randrange(len(whole)) for _ in range(40)), len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(Problem, match="zip"):
            read_movie(path)
    for _ in range(300):
        changed = bytearray(whole)
        for _ in range(generator.randint(1, 8)):
            changed[generator.randrange(len(whole))] = generator.randrange(256)
        path.write_bytes(changed)
        try:
            read_movie(path)
        except Problem:
            continue


@pytest.mark.parametrize("kind", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_packing_that_unpacks_without_bounds_is_refused(
    tmp_path: Path, members: dict[str, bytes], kind: int
) -> None:
    path = tmp_path / "bomb.bk2"
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(Problem, match="is packed otherwise than by deflate"):
        read_movie(path)


def test_a_file_without_an_end_is_a_problem() -> None:
    with pytest.raises(Problem, match=r"^/dev/zero: larger than [\d,]+ bytes$"):
        read_movie(Path("/dev/zero"))


def test_a_missing_movie_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"none\.bk2: cannot be read"):
        read_movie(tmp_path / "none.bk2")


# ---- of stable-retro ---------------------------------------------------------------------------------------


def test_without_a_boot_state_a_frame_is_put_in_front(tmp_path: Path, members: dict[str, bytes]) -> None:
    del members["Core.bin"], members["Speedrun.json"]
    path = tmp_path / "recorded.bk2"
    path.write_bytes(zipped(members))
    movie = read_movie(path)
    assert movie.boot is None and movie.inputs == (0, *PLAIN.inputs)


def test_keys_of_the_first_frame_are_left_out(tmp_path: Path, members: dict[str, bytes]) -> None:
    members[LOG] = members[LOG].replace(b"|\n|..|........|", b"|\n|..|A.......|", 1)
    path = tmp_path / "keys.bk2"
    path.write_bytes(zipped(members))
    assert read_movie(path).inputs == PLAIN.inputs
