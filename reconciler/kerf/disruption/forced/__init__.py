"""Disruption without budgets: interruption, impairment, expiration, repair, and surplus nodes of static NodePools."""
