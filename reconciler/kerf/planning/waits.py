"""The startup times of instances and nodes in a cluster, from the conditions of its NodeClaims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from kerf.sandbox.weather import Weather
from kerf_api.v1.nodeclaim import NodeClaim

_USUAL: Final = Weather()
#: A longer startup has another cause, such as a manual step; it is left out.
_LONGEST_SECONDS: Final = 900.0


def observed(claims: Iterable[NodeClaim]) -> Weather:
    """Return the default times of the sandbox, replaced by the medians of the NodeClaims where these are known."""
    found = list(claims)
    boot = _median(_between(one, "Launched", "Registered") for one in found)
    ready = _median(_between(one, "Registered", "Initialized") for one in found)
    launch = _USUAL.launch_seconds
    return Weather(
        boot_seconds=_USUAL.boot_seconds if boot is None else max(boot - launch, 0.0),
        ready_seconds=_USUAL.ready_seconds if ready is None else ready,
    )


def _between(claim: NodeClaim, first: str, second: str) -> float | None:
    """Return the seconds between the transitions of two conditions; None when unknown or too long."""
    ends = [one.last_transition_time for type_ in (first, second) if (one := claim.condition(type_)) is not None]
    if len(ends) < 2 or ends[0] is None or ends[1] is None or not (claim.is_true(first) and claim.is_true(second)):
        return None
    seconds = (ends[1] - ends[0]).total_seconds()
    return seconds if 0 <= seconds <= _LONGEST_SECONDS else None


def _median(seconds: Iterable[float | None]) -> float | None:
    known: Sequence[float] = [one for one in seconds if one is not None]
    return median(known) if known else None
