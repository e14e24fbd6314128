"""Explain one node: its stage, its possible disruptions with their blockers, and the earliest time of each."""
