"""OPEN: what agents remember from one episode to the next."""
