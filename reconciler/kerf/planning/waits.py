"""The startup times of instances and nodes in a cluster, from the conditions of its NodeClaims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from kerf.model.claims import seconds_between
from kerf.sandbox.weather import Weather
from kerf_api.v1.nodeclaim import NodeClaim

_USUAL: Final = Weather()


def observed(claims: Iterable[NodeClaim]) -> Weather:
    """Return the default times of the sandbox, replaced by the medians of the NodeClaims where these are known."""
    found = list(claims)
    boot = _median(seconds_between(one, "Launched", "Registered") for one in found)
    ready = _median(seconds_between(one, "Registered", "Initialized") for one in found)
    launch = _USUAL.launch_seconds
    return Weather(
        boot_seconds=_USUAL.boot_seconds if boot is None else max(boot - launch, 0.0),
        ready_seconds=_USUAL.ready_seconds if ready is None else ready,
    )


def _median(seconds: Iterable[float | None]) -> float | None:
    known: Sequence[float] = [one for one in seconds if one is not None]
    return median(known) if known else None
