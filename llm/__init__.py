"""Sokoban by RL fine-tuning of a language model."""

from harness.errors import quiet_interrupts

quiet_interrupts()
