"""OPEN: the ways in which agents learn, by name."""

from agents.methods.asi import Asi
from agents.methods.base import Method
from agents.methods.opo import Opo
from agents.methods.react import React
from agents.methods.speedrunner import SpeedRunner, SpeedRunnerNoCL
from agents.methods.voyager import Voyager

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (React, Opo, SpeedRunner, SpeedRunnerNoCL, Asi, Voyager)
}
"""By the name that alone decides what a run does."""
