"""Benchmarks: how fast, how small, how cheap. `python -m benchmarks` runs the quick ones and prints a table."""
