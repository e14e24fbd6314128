"""The startup times of instances, nodes and pods in a cluster, from the conditions of its NodeClaims and pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from kerf.model.claims import LONGEST_STARTUP, seconds_between
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import of_daemon_set, of_node
from kerf.sandbox.weather import Weather
from kerf_api.v1.nodeclaim import NodeClaim

_USUAL: Final = Weather()
#: The seconds of a pod whose start and readiness have the same time: conditions have whole seconds.
_FASTEST_START: Final = 0.5


def observed(claims: Iterable[NodeClaim], pods: Iterable[Pod] = ()) -> Weather:
    """Return the default times of the sandbox, replaced by medians of the cluster where these are known."""
    found = list(claims)
    boot = _median(seconds_between(one, "Launched", "Registered") for one in found)
    ready = _median(seconds_between(one, "Registered", "Initialized") for one in found)
    start = _median(started_in(pod) for pod in pods)
    launch = _USUAL.launch_seconds
    return Weather(
        boot_seconds=_USUAL.boot_seconds if boot is None else max(boot - launch, 0.0),
        ready_seconds=_USUAL.ready_seconds if ready is None else ready,
        pod_start_seconds=_USUAL.pod_start_seconds if start is None else max(start, _FASTEST_START),
    )


def started_in(pod: Pod) -> float | None:
    """Return the seconds from a pod's binding to its readiness; None unless it is ready and belongs to a workload.

    None as well above 15 minutes: such a pod became ready again after something else.
    """
    at = {one.type: one.last_transition_time for one in pod.status.conditions if one.status == "True"}
    bound, ready = at.get("PodScheduled"), at.get("Ready")
    if bound is None or ready is None or of_daemon_set(pod) or of_node(pod):
        return None
    seconds = (ready - bound).total_seconds()
    return seconds if 0 <= seconds <= LONGEST_STARTUP else None


def _median(seconds: Iterable[float | None]) -> float | None:
    known: Sequence[float] = [one for one in seconds if one is not None]
    return median(known) if known else None
