"""The proof of Quarterstep's fewest frames that is kept in optimum.json."""

from retro.games.quarterstep import Quarterstep, model
from retro.games.quarterstep.optimum import OPTIMUM, assemble, optimum, prove
from retro.inputs import parse_inputs


def test_level_4_is_proven_again():
    """The others take a minute: python -m retro.games.quarterstep.optimum"""
    assert prove(4) == optimum()["levels"][3]


def test_the_kept_proof_hangs_together():
    kept = optimum()
    assert OPTIMUM.is_file() and kept["frames"] == kept["splits"]["ending"]
    entered = list(kept["splits"].values())
    fixed = model.CLEAR_FRAMES + model.DRAW_FRAMES
    assert entered[0] == model.BOOT_FRAMES + model.DRAW_FRAMES
    assert entered[1] == entered[0] + 1 + model.DRAW_FRAMES
    for level, start, end in zip(kept["levels"], entered[1:], entered[2:], strict=False):
        assert end - start == level["frames"] + fixed
        others = [frames for frames in level["policies"].values() if frames is not None]
        assert all(frames > level["frames"] for frames in others)


def test_levels_of_other_inputs_assemble_to_their_own_length():
    buttons = Quarterstep().console_buttons
    ways = [parse_inputs(level["inputs"], buttons) for level in optimum()["levels"]]
    ways[3] = [0] * 10 + ways[3]
    assert len(assemble(ways)[0]) == optimum()["frames"] + 10
