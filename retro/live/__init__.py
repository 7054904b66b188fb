"""The live view of a search: what an engine publishes, a relay that uploads it, a backend that shows it."""
