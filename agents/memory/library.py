"""OPEN: a skill library: programs are added and never taken away, and found again by what they are for."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agents.memory.functions import Function, module_source
from agents.memory.retrieval import rank
from agents.memory.versions import diff_texts


class Skill(NamedTuple):
    """A program, and what it is for."""

    function: Function
    task: str
    """What it was written for, in words."""
    sleep: int
    """Of the sleep that added it, from 0."""

    @property
    def description(self) -> str:
        """What queries are compared with."""
        return f"{self.function.name} {self.function.docstring} {self.task}"


class SkillLibrary:
    """The log of all skills, which alone is stored: what can be called and what queries find follow from it.

    Of skills that have one name the latest is called.
    """

    def __init__(self, log: Iterable[Skill] = ()) -> None:
        self.log = list(log)

    @property
    def public(self) -> list[str]:
        """The names of the skills that agents may call."""
        return [name for name, skill in self.skills.items() if skill.function.public]

    @property
    def skills(self) -> dict[str, Skill]:
        """By name, in the order in which the names came."""
        return {skill.function.name: skill for skill in self.log}

    def add(self, skill: Skill) -> str:
        """Add a skill; returns the diff of the module, "" (and adds nothing) if its function is there."""
        known = self.skills.get(skill.function.name)
        if known is not None and known.function == skill.function:
            return ""
        before = self.source()
        self.log.append(skill)
        return diff_texts(before, self.source(), "library", len(self.log))

    def source(self) -> str:
        """The module of all skills, "" if there are none."""
        return module_source(skill.function for skill in self.skills.values())

    def retrieve(self, query: str, count: int) -> list[Skill]:
        """The skills that a query means most, best first; then the latest that share no word with it.

        Helpers are not among them.
        """
        skills = [skill for skill in self.skills.values() if skill.function.public]
        places = [place for place, _ in rank(query, [skill.description for skill in skills])]
        latest = [place for place in reversed(range(len(skills))) if place not in places]
        return [skills[place] for place in [*places, *latest][:count]]

    def copy(self) -> "SkillLibrary":
        """One that grows on its own."""
        return SkillLibrary(self.log)

    def to_json(self) -> dict[str, Any]:
        return {"log": [{**skill._asdict(), "function": skill.function._asdict()} for skill in self.log]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "SkillLibrary":
        return cls(Skill(**{**skill, "function": Function(**skill["function"])}) for skill in value["log"])
