"""Pods, NodePools and NodeClaims that make schedulers work hard: how long a pass takes, and how much memory."""
