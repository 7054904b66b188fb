"""Packages: what is loaded, and every mistake of a writer by its name."""

import re
import sys

import pytest

from harness.errors import Problem
from retro.faults import faults
from retro.packages import GamePackage, State, Variable, available_packages, load_package


class Good(GamePackage):
    """On stable-retro's own game, so that the console and the integration are there."""

    name = "Airstriker-Genesis-v0"
    title = "Good"
    variables = {"level": Variable(0xFF0258, ">u2"), "x": Variable(0xFF0268, ">u2")}  # noqa: RUF012
    states = (
        State("title", "begin", lambda ram: ram.level == 0),
        State("ending", "nothing", lambda ram: ram.level == 2),
    )
    buttons = ((), ("B",))
    holds = (1, 4)

    def cell(self, ram):
        return (ram.x // 8,)


def state(**changes):
    fields = {"name": "title", "goal": "begin", "enter": lambda ram: ram.level == 0, **changes}
    return (State(**fields), Good.states[1])


def change(**fields):
    return type("Changed", (Good,), fields)()


def test_a_good_package_has_no_faults_and_gives_the_engine_what_it_needs():
    package = Good()
    assert faults(package) == []
    assert package.rom.name == "rom.md" and package.rom.is_file()
    assert package.console_buttons[:4] == ("B", "A", "MODE", "START")
    assert package.ram_type(level=2, x=9)._asdict() == {"level": 2, "x": 9}
    assert [package.state_of(package.ram_type(level, 0)) for level in (0, 1, 2)] == [0, -1, 1]
    assert package.state_index("ending") == 1
    assert [state.buttons for state in package.states] == [None, None], "those of the package"
    assert faults(change(states=state(buttons=((), ("START",), ["A", "B"])))) == []
    with pytest.raises(Problem, match=r"no state 'boss'.*title, ending"):
        package.state_index("boss")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": 3}, "name must be a word"),
        ({"title": " "}, "title must be a text"),
        ({"variables": {}}, "variables must be a dictionary"),
        ({"variables": {"level": (1, "|u1")}}, "variables must be a dictionary"),
        ({"variables": Good.variables | {"x y": Variable(0, "|u1")}}, "variable 'x y' is not a name"),
        ({"variables": Good.variables | {"class": Variable(0, "|u1")}}, "variable 'class' is not a name"),
        ({"variables": Good.variables | {"x": Variable(-1, "|u1")}}, "variable 'x' has the address -1"),
        (
            {"variables": Good.variables | {"x": Variable(0xFF0268, "u2")}},
            "variable 'x' has the unknown type 'u2'",
        ),
        ({"states": Good.states[:1]}, "states must be a list of at least two"),
        ({"states": ("title", "ending")}, "states must be a list of at least two"),
        ({"states": (*Good.states, Good.states[0])}, "two states have the name 'title'"),
        ({"states": state(name="Title 1")}, "'Title 1', which is not lower case"),
        ({"states": state(goal="")}, "state 'title' needs its goal"),
        ({"states": state(enter=True)}, "state 'title': enter must be a function"),
        ({"states": state(reward=1)}, "state 'title': reward must be a function"),
        ({"states": state(enter=lambda ram: ram.levle == 0)}, r"state 'title': enter fails .*'levle'"),
        (
            {"states": state(enter=lambda ram: ram.level)},
            "state 'title': enter must give True or False, not 0",
        ),
        ({"states": state(reward=lambda ram: 1 / ram.x)}, "state 'title': reward fails .*ZeroDivisionError"),
        ({"states": state(reward=lambda ram: float("nan"))}, "state 'title': reward must give a finite"),
        ({"states": state(dead=lambda ram: None)}, "state 'title': dead must give True or False, not None"),
        ({"buttons": ()}, "buttons must be a list of tuples"),
        ({"buttons": ("B",)}, "buttons must be a list of tuples"),
        ({"buttons": ((), ("SELECT",))}, "the console has no button 'SELECT' .*START"),
        ({"buttons": ((), ("B", "B"))}, "repeats a button"),
        ({"buttons": (("A", "B"), ("B", "A"))}, "buttons repeats a combination"),
        ({"states": state(buttons=())}, "state 'title': buttons must be a list of tuples"),
        ({"states": state(buttons="B")}, "state 'title': buttons must be a list of tuples"),
        ({"states": state(buttons=("B",))}, "state 'title': buttons must be a list of tuples"),
        ({"states": state(buttons=((), ("SELECT",)))}, "the console has no button 'SELECT' .*START"),
        ({"states": state(buttons=((), ("B", "B")))}, "repeats a button"),
        ({"states": state(buttons=((), ()))}, "state 'title': buttons repeats a combination"),
        ({"holds": ()}, "holds must be a list"),
        ({"holds": (0, 1)}, "holds must be a list"),
        ({"holds": (1, 1)}, "holds must be a list"),
        ({"holds": (1.5,)}, "holds must be a list"),
        ({"holds": (1, 3_601)}, "holds must be a list .* from 1 to 3,600"),
        ({"transit_limit": 10**9}, "transit_limit must be a number of frames, from 1 to 36,000"),
        ({"integration": "a/folder"}, "integration must be a path"),
        ({"buttons": ((), (["A"],))}, r"the console has no button \['A'\]"),
        ({"cell": lambda self, ram: exit(0)}, "cell fails where all variables are 0: SystemExit: 0"),
        ({"cell": lambda self, ram: (2**63,)}, "cell must give a tuple of plain integers of at most 64 bits"),
        ({"states": state(reward=lambda ram: 10**400)}, "state 'title': reward must give a finite"),
        ({"transit_limit": 0}, "transit_limit must be"),
        ({"hints": {"title": "1:B"}}, "hints must be a dictionary"),
        ({"hints": {"boss": ["1:B"]}}, "hints for the unknown state 'boss'"),
        ({"hints": {"title": ["1:B", "1:SELECT"]}}, "hint 2 of state 'title': .*SELECT"),
        ({"hints": {"title": [7]}}, "hint 1 of state 'title': 7 is not text"),
        ({"cell": lambda self, ram: [ram.x]}, "cell must give a tuple of plain integers"),
        ({"cell": lambda self, ram: (ram.x / 8,)}, "cell must give a tuple of plain integers"),
        ({"cell": GamePackage.cell}, "cell is missing"),
        ({"name": "No-Such-Game"}, "stable-retro ships no game 'No-Such-Game'"),
    ],
)
def test_every_fault_is_named(fields, said):
    (found,) = faults(change(**fields))
    assert re.search(said, found), found


def test_all_missing_fields_are_named_at_once():
    class Empty(GamePackage):
        title = "Empty"

    assert faults(Empty()) == [
        f"{name} is missing" for name in ("name", "variables", "states", "buttons", "holds")
    ]


def test_the_packages_of_the_house_go_by_their_folders_names():
    assert "airstriker" in available_packages()
    assert load_package("airstriker").title == "Airstriker"
    assert load_package("retro.games.airstriker:Airstriker").title == "Airstriker"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("no_such", "no game package 'no_such'.*airstriker"),
        ("a/b.py", "'a/b.py' names no game package.*module:Class"),
        ("mine:", "names no game package"),
        ("no_such:Game", "no module 'no_such'"),
        ("retro.no_such:Game", r"no module 'retro\.no_such'"),
        ("mine:Game", "module 'mine' has no 'Game'.*Lazy, Mine, Other"),
        ("mine:Path", "mine:Path is not a subclass of GamePackage"),
        ("mine:GamePackage", "mine:GamePackage is not a subclass"),
        ("mine:Other", r"Other\(\) fails: TypeError"),
        ("mine:Mine", "package mine:Mine is malformed: name is missing; .*holds is missing"),
        ("needy:Game", "module 'needy' needs the module 'no_such_library'"),
        ("broken:Game", "module 'broken' cannot be imported: SyntaxError"),
        ("leaving:Game", "module 'leaving' cannot be imported: SystemExit: 3"),
        ("mine:Lazy", r"mine\.py:10: the package fails: ZeroDivisionError"),
    ],
)
def test_what_cannot_be_loaded_is_named(spec, said, tmp_path, monkeypatch):
    lines = (
        "from pathlib import Path",
        "from retro.packages import GamePackage",
        "class Mine(GamePackage):",
        "    pass",
    )
    other = ("class Other(GamePackage):", "    def __init__(self, game):", "        pass")
    lazy = ("class Lazy(Mine):", "    states = property(lambda self: 1 / 0)")
    (tmp_path / "mine.py").write_text("\n".join((*lines, *other, "", *lazy)))
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)")
    (tmp_path / "needy.py").write_text("import no_such_library")
    (tmp_path / "broken.py").write_text("class Game(:")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("mine", "needy", "broken", "leaving"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(Problem, match=said):
        load_package(spec)


def test_a_game_of_ones_own_lies_beside_its_package(tmp_path, monkeypatch):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from retro.packages import GamePackage, State, Variable\n"
        "class Own(GamePackage):\n"
        "    name, title, holds, buttons = 'Own-Nes-v0', 'Own', (1,), ((), ('A',))\n"
        "    variables = {'mode': Variable(0, '|u1')}\n"
        "    states = (State('title', 'go', lambda ram: ram.mode == 1), "
        "State('end', 'rest', lambda ram: ram.mode == 2))\n"
        "    def cell(self, ram):\n"
        "        return ()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own", raising=False)
    with pytest.raises(Problem, match=r"ships no game 'Own-Nes-v0'.*data\.json"):
        load_package("own:Own")
    (folder / "data.json").write_text("{}")
    with pytest.raises(Problem, match=r"scenario\.json: cannot be read"):
        load_package("own:Own")
    (folder / "scenario.json").write_text("{")
    with pytest.raises(Problem, match=r"scenario\.json:1: not JSON"):
        load_package("own:Own")
    for name in ("scenario.json", "metadata.json"):
        (folder / name).write_text("{}")
    (folder / "rom.txt").write_bytes(b"of no console")
    with pytest.raises(Problem, match=r"no rom\.<extension>"):
        load_package("own:Own")
    (folder / "rom.nes").write_bytes(b"NES")
    package = load_package("own:Own")
    assert package.rom == folder / "rom.nes"
    assert "A" in package.console_buttons and "C" not in package.console_buttons
