"""Pods that are put on nodes in the making before all others: with devices, on reservations, together."""
