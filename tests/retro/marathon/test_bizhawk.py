"""A movie of BizHawk as a marathon's reference. The format: https://tasvideos.org/Bizhawk/BK2Format"""

import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Problem
from harness.track import ROOT
from retro.inputs import mask
from retro.marathon.bizhawk import bizhawk_inputs
from retro.marathon.rival import read_rival
from retro.movie import read_movie
from retro.packages import load_package

SPEC = "quarterstep"
PROOF = ROOT / "records/retro/movies/Quarterstep-Nes-v0/788_proof/movie.bk2"
BUTTONS = load_package(SPEC).console_buttons
PAD = ("Up", "Down", "Left", "Right", "Start", "Select", "B", "A")
KEY = "LogKey:#Reset|Power|#" + "".join(f"P1 {name}|" for name in PAD)
HEADER = "MovieVersion BizHawk v2.0.0\nPlatform NES\nCore NesHawk\nStartsFromSavestate False\n"


def write(
    path: Path, rows: list[str], header: str = HEADER, key: str = KEY, method: int = 0, **more: str
) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("Header.txt", "\ufeff" + header)
        archive.writestr("Input Log.txt", "\r\n".join(["[Input]", key, *rows, "[/Input]"]))
        for name, text in more.items():
            archive.writestr(name, text)
    return path


def row(held: int) -> str:
    letters = (name[0] if held & mask([name.upper()], BUTTONS) else "." for name in PAD)
    return f"|..|{''.join(letters)}|"


def test_every_button_of_player_1_is_read(tmp_path: Path) -> None:
    rows = [f"|..|{'.' * place}X{'.' * (7 - place)}|" for place in range(8)]
    assert bizhawk_inputs(write(tmp_path / "tas.bk2", rows), ".nes", BUTTONS) == [
        mask([name.upper()], BUTTONS) for name in PAD
    ]


@pytest.mark.parametrize("sooner", [0, 2])
def test_a_movie_seeds_as_ours_does_although_its_console_starts_sooner(tmp_path: Path, sooner: int) -> None:
    tas = write(tmp_path / "tas.bk2", [row(held) for held in read_movie(PROOF).inputs[sooner:]])
    assert read_rival(tas, SPEC) == read_rival(PROOF, SPEC)


def test_one_that_plays_otherwise_here_and_leaves_no_state_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="the movie leaves no state"):
        read_rival(write(tmp_path / "tas.bk2", [row(0)] * 60), SPEC)


@pytest.mark.parametrize(
    ("header", "rows", "reason"),
    [
        (HEADER.replace("False", "True"), [row(0)], "does not start from power-on"),
        (HEADER.replace("NES", "SNES"), [row(0)], "for another console: 'SNES'"),
        (HEADER + "PAL True\n", [row(0)], "for another console"),
        (HEADER, [row(0), "|r.|........|"], "line 4: 'Reset' is pressed"),
        (HEADER, ["|r.|........|"] * 2, "line 4: 'Reset' is pressed"),
        (HEADER, [row(0), "|..|.......|"], "line 4: no frame of 10 buttons"),
    ],
)
def test_what_cannot_be_played_is_named(tmp_path: Path, header: str, rows: list[str], reason: str) -> None:
    with pytest.raises(Problem, match=reason):
        bizhawk_inputs(write(tmp_path / "tas.bk2", rows, header), ".nes", BUTTONS)


def test_a_savestate_in_the_zip_is_a_start_from_it(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="does not start from power-on"):
        bizhawk_inputs(write(tmp_path / "tas.bk2", [row(0)], CoreState="x"), ".nes", BUTTONS)


def test_a_log_without_its_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="no log key"):
        bizhawk_inputs(write(tmp_path / "tas.bk2", [row(0)], key=""), ".nes", BUTTONS)


def test_a_key_with_a_button_twice_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="'P1 A' twice"):
        path = write(tmp_path / "tas.bk2", [row(0)], key=KEY.replace("P1 B", "P1 A"))
        bizhawk_inputs(path, ".nes", BUTTONS)


def test_a_byte_that_is_no_text_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "tas.bk2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Header.txt", HEADER)
        archive.writestr("Input Log.txt", f"[Input]\n{KEY}\n{row(0)}\n".encode() + b"|..|\xff|\n")
    with pytest.raises(Problem, match="line 4: no frame"):
        bizhawk_inputs(path, ".nes", BUTTONS)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_that_is_packed_otherwise_is_named(tmp_path: Path, method: int) -> None:
    path = write(tmp_path / "tas.bk2", [row(0)] * 5, method=method)
    content = bytearray(path.read_bytes())
    content[50:60] = bytes(10)  # of what is packed
    path.write_bytes(content)
    assert bizhawk_inputs(path, ".nes", BUTTONS) is None
    with pytest.raises(Problem, match=r"tas\.bk2: .*packed otherwise than by deflate"):
        read_rival(path, SPEC)


def test_a_movie_of_stable_retro_is_none_of_them(tmp_path: Path) -> None:
    assert bizhawk_inputs(PROOF, ".nes", BUTTONS) is None
    assert bizhawk_inputs(tmp_path / "none.bk2", ".nes", BUTTONS) is None


@given(content=st.binary(max_size=200), place=st.integers(0, 400))
def test_a_damaged_file_is_a_problem_or_none_of_them(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, place: int
) -> None:
    path = write(tmp_path_factory.getbasetemp() / "damaged.bk2", [row(0)] * 5)
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + content + whole[place + len(content) :])
    try:
        found = bizhawk_inputs(path, ".nes", BUTTONS)
    except Problem:
        return
    assert found is None or all(isinstance(held, int) for held in found)
