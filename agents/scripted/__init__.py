"""FIXED: a server without a model that answers every method's prompts from a script."""
