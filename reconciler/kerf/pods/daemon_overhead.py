"""What daemon sets take of a node: which of them would run there, their requests and their host ports.

One pod stands for each daemon set: the newest that it controls, else its template. Source: scheduling reference §4.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from kerf.model.boundaries import broken
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import DaemonSet, NodeSelectorTerm, Pod, Toleration
from kerf.model.plan import Reason
from kerf.pods.host_ports import HostPort, host_ports
from kerf.pods.requirements import (
    filled,
    required_terms,
    selector_requirements,
    selects_nothing,
    term_requirements,
    tolerates_all,
)
from kerf_api import labels, quantity
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.resources import Resources
from kerf_api.v1.meta import Taint

_SOFT = Toleration(operator="Exists", effect="PreferNoSchedule")
#: The tolerations that the DaemonSet controller adds to each pod, whatever its template has.
_ADDED = tuple(
    Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect)
    for effect, names in (
        ("NoExecute", ("not-ready", "unreachable")),
        ("NoSchedule", ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")),
    )
    for name in names
)
_ON_THE_HOST = Toleration(key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule")
#: What a new node will be by the time daemon pods look at it.
_GROWN_UP = Requirements(requirement(key, IN, ("true",)) for key in (labels.REGISTERED, labels.INITIALIZED))


@dataclass(frozen=True, slots=True, eq=False)
class Daemon:
    """One daemon set's pod. `terms` are alternatives: each is its node selector and one required affinity term.

    `pod` has the labels, the namespace and the (anti-)affinity of the pods.
    """

    key: str
    requests: Resources
    tolerations: tuple[Toleration, ...]
    terms: tuple[Requirements, ...]
    ports: tuple[HostPort, ...]
    pod: Pod

    def accepts(self, taints: Iterable[Taint]) -> bool:
        """Whether it tolerates a node's taints; a soft one never stops it."""
        return tolerates_all((*self.tolerations, _SOFT), taints)

    def terms_for(self, template: Requirements) -> tuple[Requirements, ...]:
        """The alternatives that a NodePool's template can serve: none by a node's name, which no new node has."""
        ready = template & _GROWN_UP
        return tuple(term for term in self.terms if ready.compatible(term, labels.WELL_KNOWN))

    def fits_labels(self, node_labels: Requirements, taints: Iterable[Taint]) -> bool:
        """Whether it would run on an existing node, by any alternative."""
        return self.accepts(taints) and any(map(node_labels.compatible, self.terms))


def daemons_of(
    daemon_sets: Mapping[str, DaemonSet], newest: Mapping[str, Pod], *, ignore_devices: bool
) -> tuple[Daemon, ...]:
    """All daemon sets by key; `newest` maps keys to the newest controlled pod.

    For a pod that cannot be read the template stands; a DaemonSet whose template cannot be read either is left out. So
    are those whose node affinity selects no node and, with `ignore_devices`, those that claim devices.
    """
    found = (
        _readable(key, daemon_sets[key], newest.get(key), ignore_devices=ignore_devices) for key in sorted(daemon_sets)
    )
    return tuple(daemon for daemon in found if daemon is not None)


def _readable(key: str, daemon_set: DaemonSet, living: Pod | None, *, ignore_devices: bool) -> Daemon | None:
    try:
        if selects_nothing(_speaker(daemon_set, None)):
            return None
        if ignore_devices and pods.claims_devices(_speaker(daemon_set, living)):
            return None
        return _daemon(key, daemon_set, living)
    except Exception:  # `daemon_problems` reports a template, `sites` reports a pod
        return _readable(key, daemon_set, None, ignore_devices=ignore_devices) if living is not None else None


def daemon_problems(daemon_sets: Mapping[str, DaemonSet]) -> dict[str, Reason]:
    """The reasons for which the templates of some daemon sets cannot be read, by key."""
    found = {}
    for key in sorted(daemon_sets):
        try:
            _daemon(key, daemon_sets[key], None)
        except Exception as error:
            found[key] = broken(error)
    return found


def _daemon(key: str, daemon_set: DaemonSet, living: Pod | None) -> Daemon:
    if daemon_set.metadata.unreadable:
        raise ValueError(f"cannot be read: {daemon_set.metadata.unreadable}")
    pod = _speaker(daemon_set, living)
    terms = required_terms(_speaker(daemon_set, None)) or _unnamed(pod) or (NodeSelectorTerm(),)
    base = selector_requirements(pod.spec.node_selector)
    requests = pods.requests(pod)
    absurd = next((name for name, amount in requests.items() if amount >= quantity.LARGEST), "")
    if absurd:  # its pods run nowhere, so nodes need no room for them
        raise ValueError(f"its pods request an amount of {absurd} that no node has")
    return Daemon(
        key,
        requests,
        (*pod.spec.tolerations, *_ADDED, *((_ON_THE_HOST,) if pod.spec.host_network else ())),
        tuple(base & term_requirements(term) for term in terms),
        host_ports(pod),
        replace(pod, metadata=replace(pod.metadata, namespace=daemon_set.metadata.namespace)),
    )


def _unnamed(pod: Pod) -> tuple[NodeSelectorTerm, ...]:
    """The terms of a controlled pod without the fields: its controller has bound it to its own node by them."""
    return filled(replace(term, match_fields=()) for term in required_terms(pod))


def _speaker(daemon_set: DaemonSet, living: Pod | None) -> Pod:
    """The pod that stands for a daemon set."""
    template = daemon_set.spec.template
    return living if living is not None else Pod(metadata=template.metadata, spec=template.spec)
