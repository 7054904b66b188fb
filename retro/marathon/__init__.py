"""Searches without end: from power-on to the ending, and then faster and faster."""
