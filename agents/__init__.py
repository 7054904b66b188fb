"""FIXED: LLM agents that learn online."""
