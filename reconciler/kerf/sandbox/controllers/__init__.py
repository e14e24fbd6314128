"""Deployments, DaemonSets, volumes, garbage collection."""
