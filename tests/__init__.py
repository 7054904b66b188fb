"""The tests: a package, for spawned processes not to find a library's of the same name."""
