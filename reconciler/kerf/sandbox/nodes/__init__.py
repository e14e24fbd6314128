"""Kubelets, and nodes that come up other than planned."""
