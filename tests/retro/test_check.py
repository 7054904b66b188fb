"""The checker: the guide's example is sound, and mistakes that only play shows are named."""

import re
import sys
from pathlib import Path

import pytest

from harness.track import ROOT
from retro import check
from retro.check import run_check
from retro.packages import load_package
from retro.random_play import survey

FRAMES = 2_500
GUIDE = ROOT / "docs" / "retro_packages.md"


def example() -> str:
    """The package in the guide."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return next(block for block in blocks if "class FirstLevel" in block)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes a module of this text, and forgets it afterwards."""
    monkeypatch.syspath_prepend(tmp_path)

    def module(name: str, text: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return f"{name}:FirstLevel"

    return module


def test_the_guides_example_passes(write, capsys):
    spec = write("first_level", example())
    assert run_check(spec, frames=FRAMES) == 0
    said = capsys.readouterr().out
    assert "FAIL" not in said
    assert re.search(r"title +│ +359 ", said) and re.search(r"level-1 +│ +\d{3} ", said)
    assert "random play never reached level-2" in said
    assert "came out the same in two fresh processes" in said


def test_the_guides_code_that_looks_at_work_ram_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(next(block for block in blocks if "work_ram" in block), names)
    names["emulator"].close()
    assert re.fullmatch(r"\['0x\w+'(, '0x\w+')*\]\n", capsys.readouterr().out)


def test_one_seed_plays_one_game(write):
    package = load_package(write("seeded", example()))
    one, same, other = (survey(package, seed, 1_500) for seed in (1, 1, 2))
    assert one.visits == same.visits and one.inputs == same.inputs and one.ram_hash == same.ram_hash
    assert one.visits != other.visits
    assert one.frames >= 1_500
    assert one.inputs[0] == 0 and len(one.inputs) > 359


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "ram.level == 2",
            "ram.row >= 2",
            r"FAIL: the states level-1 and level-2 hold at once, first in frame \d+",
        ),
        (
            "ram.x // 15\n",
            "*[ram.x] * ram.level\n",
            "FAIL: cell gives 3 numbers, and 2 elsewhere, first in frame",
        ),
        (
            "ram.x // 15\n",
            "(ram.x / 15 if ram.level else 0)\n",
            "FAIL: cell gives .* not a tuple of plain integers",
        ),
        (
            "ram.delay / 150",
            "ram.delay / (ram.level - 1)",
            r"FAIL: \S*/mistaken.py:\d+: level-1: reward fails in frame .* ZeroDivisionError",
        ),
        ("- ram.delay / 150", "* float('inf' if ram.level else 0)", "FAIL: the reward of level-1 is inf"),
        ('"x": Variable(0xFF0268', '"x": Variable(0xFF1000', "warning: the variable x never changed"),
        (
            "ram.blink > 0",
            "ram.blink > 99",
            "FAIL: no state holds for 600 frames after power-on.* never reached title, level-1, level-2",
        ),
        (
            "enter=lambda ram: ram.level == 1",
            "enter=lambda ram: ram.level == 1 and ram.lives or ram.level == 1",
            "FAIL: level-1: enter gives 3, which is neither True nor False",
        ),
        (
            "ram.lives < 3",
            "ram.level and ram.lives < 3 or None if ram.level else False",
            "FAIL: level-1: dead gives None, which is neither True nor False",
        ),
        (
            "ram.x // 15\n",
            "2 ** ram.x\n",
            "FAIL: cell gives .* not a tuple of plain integers of at most 64 bits",
        ),
        (
            "ram.x // 15\n",
            "self.__dict__.setdefault('n', [0]).append(0) or len(self.n)\n",
            r"FAIL: cell gives \(0, 0, \d+\), and \(0, 0, \d+\) when it is called again",
        ),
        (
            "ram.x // 15\n",
            "exit(0) if ram.level else 0\n",
            r"FAIL: \S*/mistaken.py:\d+: cell fails in frame .* SystemExit: 0",
        ),
        ("0xFF0268", "0xFE0268", "FAIL: .*x"),
        ('("B",)', '("SELECT",)', "FAIL: package .* malformed: the console has no button 'SELECT'"),
    ],
)
def test_mistakes_that_play_shows_are_named(old, new, said, write, capsys):
    text = example()
    assert text.count(old) == 1
    spec = write("mistaken", text.replace(old, new))
    assert run_check(spec, frames=900) == (1 if said.startswith("FAIL") else 0)
    # Where lines are wrapped depends on the length of paths.
    shown, wanted = (re.sub(r"\s+", "", text) for text in (capsys.readouterr().out, said))
    assert re.search(wanted, shown), shown


@pytest.mark.parametrize(
    ("late", "file"), [("while ram.blink: pass", "stuck.py"), ("while True: pass", "stuck.py")]
)
def test_a_function_that_does_not_return_is_named_with_its_line(late, file, write, capsys, monkeypatch):
    monkeypatch.setattr(check, "PATIENCE", 1.0)
    text = example().replace("        return ram.row", f"        {late}\n        return ram.row")
    number = next(line for line, part in enumerate(text.splitlines(), 1) if late in part)
    assert run_check(write("stuck", text), frames=900) == 1
    shown = re.sub(r"\s+", "", capsys.readouterr().out)
    assert f"{file}:{number}:thepackagehaskeptthisprocesswaitingfor1s:thisdoesnotreturn" in shown


def test_a_game_that_chance_plays_is_not_deterministic(write, capsys):
    """A package whose console drops presses, each process others."""
    noisy = """
    def open(self):
        import os
        emulator = super().open()
        step = emulator.step
        emulator.step = lambda buttons, frames=1: step(buttons * (os.urandom(1)[0] % 2), frames)
        return emulator
"""
    assert run_check(write("noisy", example() + noisy), frames=FRAMES) == 1
    shown = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert re.search(
        "FAIL: (the same inputs in two fresh processes differ by frame|inputs found through)", shown
    )
