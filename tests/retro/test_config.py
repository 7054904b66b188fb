"""Configurations of a search: every fault is named with its file and line."""

import re
from pathlib import Path

import pytest

from harness.errors import Problem
from retro.config import CONFIGS, read_config
from retro.search.modes import load_mode
from retro_configs import refused, with_line

SHIPPED = sorted(path.stem for path in CONFIGS.glob("*.toml") if path.stem != "marathon")
TEXT = (CONFIGS / "quick.toml").read_text()
KEYS = [line.split(" ", 1)[0] for line in TEXT.splitlines() if " = " in line]
NUMBERS = [key for key in KEYS if key not in ("walks", "frontier", "tree")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "own.toml"


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_configurations_load(name: str) -> None:
    config = read_config(name)
    assert config == read_config(str(CONFIGS / f"{name}.toml"))
    for mode in config.settings.modes:
        load_mode(mode)


def test_the_shipped_ones_share_the_time_as_documented() -> None:
    assert SHIPPED == ["brief", "long", "quick"]
    for name in ("long", "quick"):
        assert dict(read_config(name).settings.modes) == {"walks": 60, "frontier": 20, "tree": 20}


def test_a_marathons_configuration_is_told_apart() -> None:
    with pytest.raises(Problem, match="is the configuration of a marathon"):
        read_config("marathon")


def test_all_keys_of_a_configuration_are_read(path: Path) -> None:
    assert len(NUMBERS) >= 11
    for place, key in enumerate(NUMBERS):
        path.write_text(with_line(TEXT, key, str(50 + place))[0])
        config = read_config(str(path))
        assert 50 + place in (config.seed, config.workers, *vars(config.settings).values())


@pytest.mark.parametrize("key", NUMBERS)
def test_a_missing_key_is_named(path: Path, key: str) -> None:
    problem = refused(read_config, path, with_line(TEXT, key, None)[0])
    assert problem.reason == f"the setting {key!r} is missing"


def test_a_missing_table_is_named(path: Path) -> None:
    problem = refused(read_config, path, TEXT[: TEXT.index("[modes]")])
    assert problem.reason == "the setting 'modes' is missing"


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("value", ["-1", "1.5", '"two"', "true", "[1]", "2026-01-01"])
def test_a_malformed_value_is_named_with_its_line(path: Path, key: str, value: str) -> None:
    text, line = with_line(TEXT, key, value)
    problem = refused(read_config, path, text)
    assert problem.reason.startswith(f"{key} is ")
    assert problem.line == line


@pytest.mark.parametrize("value", ["-1", "inf", "nan", '"much"', "true"])
@pytest.mark.parametrize("mode", ["walks", "tree"])
def test_a_malformed_share_is_named_with_its_line(path: Path, mode: str, value: str) -> None:
    text, line = with_line(TEXT, mode, value)
    problem = refused(read_config, path, text)
    assert f"the share of mode {mode!r}" in problem.reason
    assert problem.line == line


@pytest.mark.parametrize(
    ("key", "value"), [("workers", "257"), ("seed", "2_147_483_648"), ("items", "10_001")]
)
def test_a_number_too_large_to_work_with_is_refused(path: Path, key: str, value: str) -> None:
    text, line = with_line(TEXT, key, value)
    problem = refused(read_config, path, text)
    assert re.search(rf"{key} is [\d,]+, expected .*(to|at most) [\d,]+$", problem.reason)
    assert problem.line == line


def test_a_mode_whose_module_fails_is_named_with_its_line(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mode_that_leaves.py").write_text("raise SystemExit(0)")
    problem = refused(read_config, path, TEXT.replace("frontier = ", '"mode_that_leaves:Mode" = '))
    assert problem.reason == "there is no search mode 'mode_that_leaves:Mode': SystemExit: 0"
    assert problem.line is not None


def test_an_unknown_key_is_named_with_its_line(path: Path) -> None:
    problem = refused(read_config, path, "patients = 3\n" + TEXT)
    assert problem.reason == "unknown setting 'patients'"
    assert problem.line == 1
    problem = refused(read_config, path, TEXT.replace("patience ", "patients ", 1))
    assert problem.reason == "unknown setting 'patients'"
    assert problem.line is not None
    assert TEXT.splitlines()[problem.line - 1].startswith("patience ")


@pytest.mark.parametrize(("key", "line"), [('"seed "', 1), ("'unknown'", 1), ("[table]", 1)])
def test_odd_keys_are_unknown_too(path: Path, key: str, line: int) -> None:
    text = f"{key}\nx = 1\n" if key.startswith("[") else f"{key} = 3\n"
    problem = refused(read_config, path, TEXT + "\n" + text if key.startswith("[") else text + TEXT)
    assert problem.reason.startswith("unknown setting")


@pytest.mark.parametrize("value", ["3", '"walks"', "[]"])
def test_modes_that_are_no_table_are_named_with_their_line(path: Path, value: str) -> None:
    problem = refused(read_config, path, f"modes = {value}\n" + TEXT[: TEXT.index("[modes]")])
    assert problem.reason == "modes is not a table of mode = share"
    assert problem.line == 1


def test_modes_without_a_share_are_named_with_their_line(path: Path) -> None:
    head = TEXT[: TEXT.index("[modes]")]
    problem = refused(read_config, path, head + "[modes]\nwalks = 0\ntree = 0.0\n")
    assert problem.reason == "the shares of the modes add up to nothing"
    assert problem.line == 1 + head.count("\n")


def test_a_mode_that_does_not_exist_is_named_with_its_line(path: Path) -> None:
    problem = refused(read_config, path, TEXT.replace("frontier =", "frontiers ="))
    assert "frontiers" in problem.reason
    assert problem.line is not None


def test_a_mode_of_ones_own_is_taken(path: Path) -> None:
    path.write_text(TEXT.replace("frontier = ", '"scripted_game.modes:Killed" = '))
    assert "scripted_game.modes:Killed" in read_config(str(path)).settings.modes


@pytest.mark.parametrize(
    ("text", "line"),
    [(TEXT + "\nseed =", None), ("seed = = 1\n" + TEXT, 1), ("seed = 1\n" + TEXT, 4), ("\n\n[", None)],
)
def test_what_is_no_toml_is_named_with_its_line(path: Path, text: str, line: int | None) -> None:
    problem = refused(read_config, path, text)
    assert problem.reason.startswith("no TOML")
    assert problem.line == line


def test_what_is_no_text_is_named(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Problem, match="no UTF-8 text") as caught:
        read_config(str(path))
    assert caught.value.file == str(path)


@pytest.mark.parametrize("name", ["slow", "nowhere/own.toml", "", ".", "../quick"])
def test_a_configuration_that_is_not_there_lists_those_that_are(name: str) -> None:
    with pytest.raises(Problem, match=f"there is no configuration {name!r}") as caught:
        read_config(name)
    assert "long, quick" in str(caught.value)
