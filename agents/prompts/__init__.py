"""OPEN: the prompts of the methods, as templates."""
