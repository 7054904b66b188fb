"""OPEN: the ways in which agents learn, by name."""

from agents.methods.base import Method
from agents.methods.react import React

METHODS: dict[str, type[Method]] = {method.name: method for method in (React,)}
"""By the name that alone decides what a run does."""
