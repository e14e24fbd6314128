"""The tests. `python -m tests.tiers` runs every tier that this machine can run."""
