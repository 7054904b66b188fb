"""FIXED: whether functions may be kept: they pass the gate, load together, and can play an episode."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agents.benchmarks.base import Environment, Episode
from agents.core.actions import Primitive, SkillCall, parse_action
from agents.memory.functions import Function
from agents.methods.serving import Served, view
from agents.prompts.prompts import say
from agents.sandbox.gate import check
from agents.sandbox.host import Sandbox, SkillError


def load_faults(changed: Iterable[Function], source: str, sandbox: Sandbox) -> list[str]:
    """Why the changed functions cannot be kept in a module, in words for the model that wrote them.

    None = they can, and the module is loaded in the sandbox.
    """
    changed = list(changed)
    faults = [
        say("faulty_function", name=function.name, fault=fault)
        for function in changed
        for fault in check(function.source, sandbox.limits, docstrings=True)
    ]
    if faults:
        return faults
    try:
        loaded = {function.name for function in sandbox.load(source)}
    except SkillError as error:
        return [say("no_load", fault=str(error))]
    lost = [function.name for function in changed if function.public and function.name not in loaded]
    return [say("lost", name=name) for name in lost]


@dataclass(frozen=True)
class Practice:
    """An episode, played by a list of actions."""

    success: bool
    steps: int
    """Primitive steps."""
    called: tuple[str, ...]
    """Names of the skills that were called, in order."""
    faults: tuple[str, ...]
    """What went wrong, in words for the model that wrote the list; it ends at the first."""


def practise(
    environment: Environment,
    sandbox: Sandbox,
    episode: Episode,
    actions: Sequence[str],
    skills: Sequence[str],
) -> Practice:
    """Play an episode from its beginning: primitive actions, and calls of `skills` loaded in the sandbox."""
    environment.reset(episode)
    called: list[str] = []
    faults: list[str] = []
    for number, text in enumerate(actions, 1):
        if environment.done:
            break
        fault = _act(environment, sandbox, text, skills, called)
        if fault:
            faults.append(say("faulty_entry", number=number, text=text, fault=fault))
            break
    return Practice(environment.success, environment.steps, tuple(called), tuple(faults))


def _act(
    environment: Environment, sandbox: Sandbox, text: str, skills: Sequence[str], called: list[str]
) -> str:
    """Do one entry of a list; returns what went wrong, "" = nothing."""
    action = parse_action(f"Action: {text}", skills)
    if isinstance(action, Primitive):
        environment.step(action.text)
        return ""
    if not isinstance(action, SkillCall):
        return action.reason
    called.append(action.name)
    served = Served(environment)
    try:
        sandbox.call(action.name, action.args, action.kwargs, served, view(environment))
    except SkillError as error:
        return say("failed_call", steps=len(served.taken), fault=str(error))
    return "" if served.taken else say("idle_call")
