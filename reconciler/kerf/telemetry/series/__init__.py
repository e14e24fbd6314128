"""Metrics and their values, as Prometheus reads them."""
