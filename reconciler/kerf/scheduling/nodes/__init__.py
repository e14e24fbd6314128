"""Nodes that exist or are on their way, as places for pods."""
