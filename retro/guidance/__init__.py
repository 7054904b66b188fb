"""Guidance of the search: a table of moves, and a policy trained beside it. See docs/retro_guidance.md."""
