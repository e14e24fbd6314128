"""What the API server lets through in a NodeClaim and no client of the API could read.

Karpenter has no run-time check of NodeClaims; the controller writes nearly all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kerf_api.lint.problem import Problem
from kerf_api.lint.reading.reading import unreadable_durations, unreadable_quantities


def check(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Every run-time fault of a NodeClaim whose defaults are filled in."""
    places = ("spec", "expireAfter"), ("spec", "terminationGracePeriod")
    yield from unreadable_durations(manifest, "KERF-NC-101", *places)
    yield from unreadable_quantities(manifest, "KERF-NC-102", ("spec", "resources", "requests"))
