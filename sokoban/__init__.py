"""Sokoban, shared by the tracks: levels, rules, environments, a solver, a generator and pictures."""
