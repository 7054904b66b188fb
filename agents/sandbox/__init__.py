"""FIXED: model-written code runs in a worker process that has locked itself."""
