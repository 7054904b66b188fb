"""FIXED: LLM agents that learn online."""

from harness.errors import quiet_interrupts

quiet_interrupts()
