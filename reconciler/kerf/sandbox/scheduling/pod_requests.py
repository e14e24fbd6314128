"""Requests of a pod as the kube-scheduler and the kubelet add them up, from the manifest.

A pod without a node counts with its spec. A pod on a node counts with the largest of its spec, the resources that its
containers have, and those that the kubelet has allocated; of a resize that is infeasible the spec does not count.
Source: Kubernetes, module component-helpers, package resource.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kerf_api.quantity import amount

Amounts = dict[str, int]
Manifest = Mapping[str, Any]

_PLAIN = ("cpu", "memory", "ephemeral-storage")
_PREFIXES = ("hugepages-", "attachable-volumes-")


def incoming(pod: Manifest) -> Amounts:
    """Requests of a pod that has no node yet."""
    spec = pod["spec"]
    return _of(spec, _wanted, amounts((spec.get("resources") or {}).get("requests")))


def bound(pod: Manifest) -> Amounts:
    """Requests of a pod on its node, a resize under way included."""
    spec, status = pod["spec"], pod.get("status") or {}
    rows = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    states: dict[str, Manifest] = {row["name"]: row for row in rows if row.get("resources") is not None}
    level = amounts((spec.get("resources") or {}).get("requests"))
    if not states and status.get("resources") is None:
        return _of(spec, _wanted, level)
    infeasible = _infeasible(status)

    def effective(container: Manifest) -> Amounts:
        wanted, state = _wanted(container), states.get(container["name"])
        return wanted if state is None else _in_force(wanted, state["resources"], state, infeasible)

    if status.get("resources") is not None:
        in_force = _in_force(level, status["resources"], status, infeasible)
        level = {name: in_force.get(name, 0) for name in level}
    return _of(spec, effective, level)


def amounts(quantities: Manifest | None) -> Amounts:
    return {name: amount(name, text) for name, text in (quantities or {}).items()}


def restarts(container: Manifest) -> bool:
    """Whether an init container runs as long as its pod."""
    return bool(container.get("restartPolicy") == "Always")


def _wanted(container: Manifest) -> Amounts:
    return amounts((container.get("resources") or {}).get("requests"))


def _in_force(wanted: Amounts, actual: Manifest, allocated: Manifest, infeasible: bool) -> Amounts:
    """The largest of what was asked for, what is in effect and what is allocated."""
    result = {} if infeasible else dict(wanted)
    _raise_to(result, amounts(actual.get("requests")))
    _raise_to(result, amounts(allocated.get("allocatedResources")))
    return result


def _infeasible(status: Manifest) -> bool:
    pending = (c for c in status.get("conditions") or () if c.get("type") == "PodResizePending")
    return next((c.get("reason") == "Infeasible" for c in pending), False)


def _of(spec: Manifest, of_container: Callable[[Manifest], Amounts], level: Amounts) -> Amounts:
    """Containers and sidecars together, or the peak while init containers run; then pod-level requests, overhead."""
    result: Amounts = {}
    for container in spec.get("containers") or ():
        _add(result, of_container(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        if restarts(container):
            own = of_container(container)
            _add(result, own)
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            phase = _wanted(container)
            _add(phase, sidecars)
            _raise_to(peak, phase)
    _raise_to(result, peak)
    result |= {name: value for name, value in level.items() if name in _PLAIN[:2] or name.startswith("hugepages-")}
    _add(result, amounts(spec.get("overhead")))
    return {name: value for name, value in result.items() if value and _counts(name)}


def _counts(name: str) -> bool:
    """Whether the kube-scheduler counts this resource."""
    return name in _PLAIN or "/" in name or name.startswith(_PREFIXES)


def _add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, value in least.items():
        total[name] = max(total.get(name, 0), value)
