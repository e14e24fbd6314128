"""Deployments, DaemonSets, volumes, garbage collection, deleted Namespaces."""
