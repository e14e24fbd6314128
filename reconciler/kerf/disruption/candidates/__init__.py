"""Nodes that may be disrupted: what each costs to disrupt, and how many at a time."""
