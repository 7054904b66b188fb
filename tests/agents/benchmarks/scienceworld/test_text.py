"""The game's text taken apart."""

from hypothesis import given
from hypothesis import strategies as st

from agents.benchmarks.scienceworld.text import STOP_WORDS, exits_of, items_of, plain, room_of

HALLWAY = """This room is called the hallway. In it, you see: 
\tthe agent
\ta substance called air
You also see:
\tA door to the kitchen (that is open)
\tA door to the art studio (that is closed)"""  # noqa: W291


def test_places_and_exits() -> None:
    assert room_of(HALLWAY) == "hallway"
    assert room_of("This outside location is called the outside. Here you see: \n\tan axe") == "outside"
    assert room_of("") == ""
    assert exits_of(HALLWAY) == {"kitchen": True, "art studio": False}


def test_items() -> None:
    assert items_of("In your inventory, you see:\n\tan orange\n\ta glass cup (containing nothing)") == [
        "an orange",
        "a glass cup (containing nothing)",
    ]
    assert items_of("") == []


def test_actions_are_read_as_the_game_reads_them() -> None:
    assert plain("  Focus  on\tthe Red\nBox ") == "focus on red box"
    assert plain("RESET the TASK") == "reset task"
    assert plain("open d\u00f6or \ud800") == "open d?or ?"


@given(st.text(st.characters(), max_size=300))
def test_any_text_becomes_a_line_the_game_can_take(text: str) -> None:
    line = plain(text)
    assert line.isascii() and line.isprintable() and len(line) <= 200
    assert line == " ".join(line.split()) and not STOP_WORDS & set(line.split())
    assert plain(line) == line
