"""Speedruns of console games, found by search: from power-on to a verified movie."""
