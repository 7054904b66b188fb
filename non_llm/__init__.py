"""Track non_llm: train an agent from scratch to solve Boxoban levels. Only `speedrun.py` is open."""

from harness.errors import quiet_interrupts

quiet_interrupts()
