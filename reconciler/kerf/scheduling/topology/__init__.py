"""The rule of topology constraints, and what the groups of a solve count."""
