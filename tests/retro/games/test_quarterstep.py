"""Quarterstep's ROM against its model, frame by frame, and against its sources."""

import hashlib
import json
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import Problem
from retro.games.quarterstep import Quarterstep, build, levels, model
from retro.games.quarterstep.optimum import optimum
from retro.games.quarterstep.picture import background
from retro.inputs import parse_inputs
from retro.packages import load_package

ROM_SHA1 = "78ad3dcd4efd4be3445385e96ea22500f11907e3"  # without the header; the game is frozen


class Pair:
    """The ROM and the model, run side by side."""

    def __init__(self):
        self.emulator, self.game, self.saved = Quarterstep().open(), model.Game(), []
        self.seen = set()

    def power_on(self):
        self.emulator.power_on()
        self.game = model.Game()

    def step(self, buttons):
        self.emulator.step(buttons)
        before, real, expected = self.game.values, self.emulator.values(), self.game.step(buttons)
        assert tuple(real) == tuple(expected), (self.game.frame, buttons, before)
        happened = {"lag": real.lag, "door opens": before.door == 1 and real.door == 0, "portal": False}
        happened["portal"] = abs(real.x - before.x) > 64 and before.mode == real.mode == model.PLAY
        self.seen |= {(before.level, name) for name, value in happened.items() if value}
        self.seen.add((before.level, real.mode))
        return real

    def load(self, place):
        """Go on from the fastest movie after `place` frames."""
        state, values = self.saved[place]
        self.emulator.load(state)
        self.game = model.Game()
        self.game.frame, self.game.values = place, values


@pytest.fixture(scope="module")
def pair():
    pair = Pair()
    pair.saved.append((pair.emulator.save(), pair.game.values))
    for buttons in fastest():
        pair.step(buttons)
        pair.saved.append((pair.emulator.save(), pair.game.values))
    yield pair
    pair.emulator.close()


def fastest():
    return parse_inputs(optimum()["inputs"], Quarterstep().console_buttons)


def starts():
    """The frames of the fastest movie at which levels begin."""
    return [frame for name, frame in optimum()["splits"].items() if name.startswith("level")]


def actions(random, frames):
    """Random buttons (bit 1 is none), mostly the six that matter, held for a while."""
    found = []
    while len(found) < frames:
        action = (
            int(random.choice(model.ACTIONS)) if random.random() < 0.85 else int(random.integers(512)) & ~2
        )
        found += [action] * int(random.integers(1, 25))
    return found[:frames]


# ---- the ROM is the model ----------------------------------------------------------------------------------


def test_the_fastest_movie_enters_each_state_when_it_says(pair):
    package, entered = Quarterstep(), {}
    pair.power_on()
    for frame, buttons in enumerate(fastest(), 1):
        state = package.state_of(pair.step(buttons))
        if state >= 0:
            entered.setdefault(package.states[state].name, frame)
    assert entered == optimum()["splits"]
    assert list(entered) == [state.name for state in package.states]
    assert entered["ending"] == optimum()["frames"] == len(fastest())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_inputs_from_anywhere_on_the_fastest_movie(pair, data):
    place = data.draw(st.integers(0, optimum()["frames"] - 1))
    buttons = st.sampled_from(model.ACTIONS) | st.integers(0, 511).map(lambda bits: bits & ~2)
    pair.load(place)
    for held, frames in data.draw(st.lists(st.tuples(buttons, st.integers(1, 20)), max_size=12)):
        for _ in range(frames):
            pair.step(held)


def test_long_random_play_of_every_level_meets_all_that_can_happen(pair):
    random = np.random.default_rng(1)
    for level, start in enumerate(starts(), 1):
        for _ in range(12):
            pair.load(start + int(random.integers(optimum()["levels"][level - 1]["frames"])))
            for buttons in actions(random, 120):
                pair.step(buttons)
    for level in range(1, 6):
        assert (level, model.CLEAR) in pair.seen
        assert ((level, "lag") in pair.seen) == (level in (2, 5))
        assert ((level, "portal") in pair.seen) == (level == 4)
        assert ((level, "door opens") in pair.seen) == (level == 3)
        assert ((level, model.DYING) in pair.seen) == (level in (1, 3, 5))


def test_three_deaths_lead_back_to_the_title(pair):
    pair.load(starts()[0])
    deaths = []
    while pair.game.values.mode != model.TITLE:
        now = pair.step(model.RIGHT)
        deaths.append(now.deaths)
        if now.mode == model.PLAY and now.level == 1 and now.x > 600:
            pytest.fail("walked over the spikes")
    assert sorted(set(deaths)) == [0, 1, 2, 3] and deaths[-1] == 0
    assert pair.step(model.START).level == 1


def test_a_level_does_not_depend_on_what_was_before_it(pair):
    """After a death, and after waiting on the title, level 1 takes the same inputs to the same end."""
    first = parse_inputs(optimum()["levels"][0]["inputs"], Quarterstep().console_buttons)
    pair.power_on()
    while pair.game.values.mode != model.TITLE:
        pair.step(0)
    for _ in range(37):
        pair.step(model.A)
    pair.step(model.START)
    while pair.game.values.mode != model.DYING:
        pair.step(model.RIGHT)
    while pair.game.values.mode != model.PLAY:
        pair.step(model.LEFT)
    for place, buttons in enumerate(first, 1):
        assert (pair.step(buttons).mode == model.CLEAR) == (place == len(first))


def test_buttons_that_do_nothing_in_play_do_nothing(pair):
    others = sum(1 << place for place in (0, 2, 3, 4, 5))  # B, SELECT, START, UP, DOWN
    for start in starts():
        pair.load(start)
        for _ in range(8):
            pair.step(others)
        assert (pair.game.values.vx, pair.game.values.grounded) == (0, 1)


# ---- the ROM and its sources -------------------------------------------------------------------------------


def test_the_rom_is_the_one_that_was_proven():
    rom = Quarterstep().rom.read_bytes()
    assert rom[:16] == b"NES\x1a\x01\x01\x01\x08" + bytes(8)
    assert hashlib.sha1(rom[16:]).hexdigest() == ROM_SHA1
    assert (Quarterstep().integration / "rom.sha").read_text().strip() == ROM_SHA1
    assert hashlib.sha256(rom).hexdigest() == optimum()["rom_sha256"]


@pytest.mark.skipif(shutil.which("ca65") is None, reason="needs ca65 and ld65 of cc65")
def test_the_sources_build_the_rom():
    assert build.build() == Quarterstep().rom.read_bytes()


def test_a_missing_assembler_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Problem, match=r"ca65 is not installed\..* install cc65"):
        build.build()


def test_the_maps_in_the_rom_are_those_of_the_text():
    rom = Quarterstep().rom.read_bytes()
    meanings = {0: ".SQ", 1: "E", 2: "^", 3: "P", 4: "*", 5: "L", 6: "v", 8: "#", 9: "#", 10: "D"}
    rows = [line for line in levels.LEVELS.read_text().splitlines() if line.startswith("#")]
    assert len(rows) == 7 * 15
    for number, row in enumerate(rows):
        screen, place = divmod(number, 15)
        tiles = rom[16 + screen * 256 + place * 16 :][:16]
        assert all(letter in meanings[tile] for letter, tile in zip(row, tiles, strict=True))


def test_the_integration_says_what_the_package_says():
    package = load_package("quarterstep")
    assert package.integration.name == package.name
    info = json.loads((package.integration / "data.json").read_text())["info"]
    assert {name: (entry["address"], entry["type"]) for name, entry in info.items()} == dict(
        package.variables
    )
    assert tuple(info) == model.Values._fields


def test_the_drawn_background_is_what_the_console_shows(pair):
    """Every colour of ours stands for one of the console's, but where the player is."""
    for start, level in zip([21, *starts()], range(6), strict=True):
        pair.load(start)
        pair.step(0)
        pair.step(0)
        shown = pair.emulator.screen().reshape(-1, 3).astype(int) @ (65536, 256, 1)
        drawn = background(level)[8:232, 8:248].reshape(-1, 3).astype(int) @ (65536, 256, 1)
        rows, columns = np.mgrid[8:232, 8:248].reshape(2, -1)
        x, y = pair.game.values.x // 4, pair.game.values.y // 4
        outside = (abs(columns - x - 4) > 5) | (abs(rows - y - 4) > 5)
        pairs = set(zip(shown[outside].tolist(), drawn[outside].tolist(), strict=True))
        assert len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs}) > 3


# ---- reading levels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("screen 1 1", "screen 2 1", "heading of screen 1"),
        ("screen 1 1 TAKE-OFF", "", "heading of screen 1"),
        ("#S.......#....##", "#S.......#....#", "not 16 tiles"),
        ("#S.......#....##", "#S.......#..x.##", "not 16 tiles"),
        ("#S.......#....##", "#........#....##", "screen 1: 0 of S"),
        ("#S.......#....##", "#S..S....#....##", "screen 1: 2 of S"),
        ("#S.......#....##", "#S.......#....#.", "screen 1: it is not closed in"),
        ("#S.........LD.E#", "#S.........LD..#", "screen 3: 0 of E"),
        ("#S.........LD.E#", "#S........DLD.E#", "screen 3: 2 of D"),
    ],
)
def test_malformed_levels_are_named(old, new, reason):
    text = levels.LEVELS.read_text()
    assert text.count(old) == 1
    with pytest.raises(Problem, match=reason):
        levels.parse(text.replace(old, new), levels.LEVELS)


@given(st.integers(0, 2300), st.text("#.SE^v*PLDQ \nscreen0123456", max_size=8))
def test_damaged_levels_are_problems_or_screens(place, text):
    whole = levels.LEVELS.read_text()
    try:
        found = levels.parse(whole[:place] + text + whole[place + len(text) :], levels.LEVELS)
    except Problem:
        return
    assert all(screen.tiles.shape == (15, 16) for screen in found)
