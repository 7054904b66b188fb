"""The configuration of a marathon: every fault is named with its file and line."""

from pathlib import Path

import pytest

from harness.errors import Problem
from retro.config import CONFIGS
from retro.marathon.config import read_config
from retro_configs import refused, with_line

TEXT = (CONFIGS / "marathon.toml").read_text()
KEYS = [line.split(" ", 1)[0] for line in TEXT.splitlines() if " = " in line.split("#")[0]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "own.toml"


def test_the_shipped_configuration_loads_and_says_what_every_key_is() -> None:
    config = read_config("marathon")
    assert config == read_config(str(CONFIGS / "marathon.toml"))
    assert config.disk == 2_000_000_000
    modes = ("walks", "frontier", "tree")
    for line in TEXT.splitlines():
        assert not line.strip() or "#" in line or line.startswith(modes)


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_required(path: Path, key: str) -> None:
    problem = refused(read_config, path, with_line(TEXT, key, None)[0])
    assert problem.reason == f"the setting {key!r} is missing"


@pytest.mark.parametrize("table", ["search", "search.modes", "guidance"])
def test_every_table_is_required(path: Path, table: str) -> None:
    refused(read_config, path, TEXT.replace(f"[{table}]", "[unknown]"))


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", ["[1]", "-1", "nan", "1e9", '"word"'])
def test_a_malformed_value_is_named_with_its_line(path: Path, key: str, value: str) -> None:
    if key in ("walks", "frontier", "tree") and value == "1e9":
        return  # a share of any size
    if key == "tracking" and value == '"word"':
        return  # a name of a project
    text, number = with_line(TEXT, key, value)
    problem = refused(read_config, path, text)
    assert problem.line == number
    assert key in problem.reason or value.strip('"') in problem.reason


@pytest.mark.parametrize("after", ["seed", "settle", "policy"])
def test_an_unknown_key_is_named_with_its_line(path: Path, after: str) -> None:
    text, number = with_line(
        TEXT, after, next(line for line in TEXT.splitlines() if line.startswith(after))[len(after) + 3 :]
    )
    lines = text.splitlines()
    lines.insert(number, "setle = 3")
    problem = refused(read_config, path, "\n".join(lines) + "\n")
    assert problem.reason == "unknown setting 'setle'"
    assert problem.line == number + 1


@pytest.mark.parametrize(
    ("table", "key"),
    [("search", "seed"), ("guidance", "memory"), ("guidance", "frames"), ("search.modes", "practice")],
)
def test_a_key_in_the_wrong_table_is_named_with_the_line_where_it_stands(
    path: Path, table: str, key: str
) -> None:
    lines = TEXT.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"[{table}]")) + 1
    lines.insert(at, f"{key} = 3")
    problem = refused(read_config, path, "\n".join(lines) + "\n")
    assert problem.line == at + 1
    assert repr(key) in problem.reason


@pytest.mark.parametrize(
    ("table", "key"), [("search", "cells"), ("search.modes", "tree"), ("guidance", "policy")]
)
def test_a_key_that_is_missing_in_a_table_is_named_with_the_tables_line(
    path: Path, table: str, key: str
) -> None:
    text, _ = with_line(TEXT, key, None)
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines, 1) if line.startswith(f"[{table}]"))
    assert refused(read_config, path, text).line == at


def test_a_mode_of_ones_own_stands_beside_those_of_the_engine(path: Path) -> None:
    path.write_text(with_line(TEXT, "tree", '0\n"retro.search.tree:Tree" = 20')[0])
    modes = {"walks": 60, "frontier": 20, "tree": 0, "retro.search.tree:Tree": 20}
    assert read_config(str(path)).settings.modes == modes


def test_what_is_no_toml_is_named_with_its_line(path: Path) -> None:
    assert refused(read_config, path, "seed = 1\nworkers == 2\n").line == 2


def test_a_backend_needs_a_live_view_and_a_whole_url(path: Path) -> None:
    text, number = with_line(TEXT, "live_url", '"https://example.org"')
    assert refused(read_config, path, text).line == number
    text, number = with_line(TEXT, "live_url", '"example.org"')
    assert refused(read_config, path, text.replace("live = false", "live = true")).line == number
    path.write_text(
        with_line(TEXT, "live_url", '"https://example.org"')[0].replace("live = false", "live = true")
    )
    assert read_config(str(path)).live_url == "https://example.org"


@pytest.mark.parametrize("url", ["http://[::1", "http://localhost:99999", "http://localhost:x", "http://"])
def test_a_url_that_cannot_be_taken_apart_is_named_with_its_line(path: Path, url: str) -> None:
    text, number = with_line(TEXT.replace("live = false", "live = true"), "live_url", f'"{url}"')
    assert refused(read_config, path, text).line == number


@pytest.mark.parametrize("name", ["a/b", "what?", "x" * 129])
def test_a_project_has_a_name_that_wandb_takes(path: Path, name: str) -> None:
    text, number = with_line(TEXT, "tracking", f'"{name}"')
    assert refused(read_config, path, text).line == number
    path.write_text(with_line(TEXT, "tracking", '"retro speed"')[0])
    assert read_config(str(path)).tracking == "retro speed"


def test_a_searchs_configuration_is_told_apart() -> None:
    with pytest.raises(Problem, match="is the configuration of a search"):
        read_config("quick")


def test_guidance_has_one_place(path: Path) -> None:
    problem = refused(
        read_config, path, TEXT.replace("[search.modes]", "[search.guidance]\ntable = 0.5\n[search.modes]")
    )
    assert problem.line is not None


def test_a_reference_must_be_there(path: Path) -> None:
    text, number = with_line(TEXT, "reference", f'"{"x" * 300}.bk2"')  # no file may be called so
    assert refused(read_config, path, text).line == number
    text, number = with_line(TEXT, "reference", '"nowhere.bk2"')
    problem = refused(read_config, path, text)
    assert (problem.reason, problem.line) == ("there is no file 'nowhere.bk2'", number)
