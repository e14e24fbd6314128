"""Cheaper nodes for the same pods: the search for moves, their savings and consequences."""
