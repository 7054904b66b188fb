"""Airstriker's package against the game: the way through all states, and what its documentation measures."""

import re

import pytest

from harness.track import ROOT
from retro.emulator import Emulator, mask
from retro.games.airstriker import Airstriker
from retro.games.airstriker.timing import _VARIABLES, MENUS, Loops, measure, run_inputs, stretches
from retro.inputs import parse_inputs


@pytest.fixture
def emulator():
    emulator = Emulator(Airstriker().rom, _VARIABLES)
    yield emulator
    emulator.close()


def test_a_run_enters_every_state_in_order_and_loses_no_game_loop(emulator):
    package, inputs = Airstriker(), run_inputs()
    found = list(stretches(emulator))
    entered = [name for name, _, _ in found if name != "transit"]
    assert entered == [state.name for state in package.states]
    assert sum(frames for _, frames, _ in found) == len(inputs) == 5458 < 5797
    assert found[-1] == ("ending", 1, 0)
    assert all(lost == 0 for name, _, lost in found if name.startswith("level"))


def test_of_the_states_one_holds_at_a_time_and_no_frame_of_the_run_is_death(emulator):
    package, state = Airstriker(), -1
    emulator.power_on()
    for buttons in run_inputs():
        emulator.step(buttons)
        ram = emulator.values()
        assert sum(state.enter(ram) for state in package.states) < 2
        state = max(state, package.state_of(ram))
        assert state < 0 or not package.states[state].dead(ram)


def test_the_ending_is_the_games_own(emulator):
    """Its text is written within a frame, and it stays until the title screen comes back."""
    package = Airstriker()
    for buttons in run_inputs():
        emulator.step(buttons)
    for _ in range(200):
        assert package.states[package.state_of(emulator.values())].name == "ending"
        emulator.step(0)
    # Three lines of yellow text in the middle of the screen, and nothing of a level: no ship, no stars.
    screen = emulator.screen().astype(int)
    yellow = (screen[..., 0] > 200) & (screen[..., 1] > 200) & (screen[..., 2] < 50)
    assert set(yellow.any(axis=1).nonzero()[0]) - set(range(8)) <= set(range(96, 125))
    assert ((screen.sum(axis=2) > 0) == yellow)[8:].all()


def test_a_ship_that_does_nothing_dies_and_a_loud_game_is_given_up(emulator):
    package = Airstriker()
    states = {state.name: state for state in package.states}
    for buttons in parse_inputs(MENUS[False], emulator.buttons):
        emulator.step(buttons)
    died = None
    for frame in range(500):
        ram = emulator.values()
        if states["level-1a"].dead(ram):
            died = died or frame
        assert died is None or states["level-1a"].dead(ram)
        emulator.step(0)
    assert 200 < died < 300
    emulator.power_on()
    for buttons in parse_inputs(MENUS[True], emulator.buttons):
        assert not states["title"].dead(emulator.values())
        emulator.step(buttons)
    assert states["title"].dead(emulator.values())
    assert package.state_of(emulator.values()) == -1


def test_no_button_before_the_title_changes_anything(emulator):
    emulator.power_on()
    emulator.step(0, 359)
    untouched = emulator.ram_hash()
    emulator.power_on()
    emulator.step(0)
    for frame in range(358):
        emulator.step(mask(["START", "B", "DOWN"], emulator.buttons) if frame % 2 else 0)
    assert emulator.ram_hash() == untouched


def test_music_and_fire_cost_what_the_documentation_says(emulator):
    text = (ROOT / "docs" / "retro_airstriker.md").read_text()
    rows = re.findall(r"\| (on|off) \| (yes|no) \| (\d+) \| (\d+) \|", text)
    assert len(rows) == 4
    for music, fire, lost, at_note in rows:
        assert measure(emulator, music == "on", fire == "yes") == Loops(400, int(lost), int(at_note))
