"""FIXED: the scripted agent: a competent but forgetful programmer, aimless when left to single actions."""

from collections.abc import Callable, Mapping

from agents.llm.chat_app import Refused
from agents.scripted import asleep, awake, voyager
from agents.scripted.asked import Asked

ANSWERS: Mapping[str, Callable[[Asked], str]] = {
    "wake": awake.play,
    "sleep.opo": asleep.write_guide,
    "sleep.speedrunner": asleep.keep_codebook,
    "sleep.speedrunner_no_cl": asleep.keep_codebook,
    "sleep.asi": asleep.find_skills,
    "voyager.curriculum": voyager.set_task,
    "voyager.code": voyager.write_program,
    "voyager.critic": voyager.judge,
}
"""By the kind of a prompt."""


def answer(asked: Asked) -> str:
    """The answer to a prompt; the same prompt always gets the same.

    Raises:
        Refused: a kind of prompt that the script does not know.
    """
    if asked.kind not in ANSWERS:
        raise Refused(400, f"the script knows no prompts of the kind {asked.kind!r}")
    return ANSWERS[asked.kind](asked)
