"""What stands between a pull request with records and the board: `python -m harness.submission`."""
