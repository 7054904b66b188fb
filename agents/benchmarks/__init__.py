"""FIXED: what the agents play."""
