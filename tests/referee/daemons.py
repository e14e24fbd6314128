"""What daemon sets will take of a node that is not there yet, and which of their pods are missing on one that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from kerf.model.kubernetes.objects import DaemonSet, Pod, Toleration
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.resources import EMPTY, Resources
from kerf_api.v1.meta import Taint
from tests.referee.needs import HostPort, claims_devices, host_ports, requests
from tests.referee.selecting import affinity_holds, selector_holds, untolerated

_GROWN_UP = {labels.REGISTERED: "true", labels.INITIALIZED: "true"}
#: The tolerations that the DaemonSet controller adds to each pod.
_ADDED = tuple(
    Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect)
    for effect, names in (
        ("NoExecute", ("not-ready", "unreachable")),
        ("NoSchedule", ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")),
    )
    for name in names
)


@dataclass(frozen=True, slots=True)
class Share:
    """Resources and host ports."""

    requests: Resources = EMPTY
    ports: frozenset[HostPort] = frozenset()


class Daemons:
    """The daemon sets of a cluster: the template says where a pod runs, the latest pod (else the template) what of.

    The latest pod shows what admission makes of the template. Daemon sets that claim devices are left out while such
    claims are ignored.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        latest = _latest(snapshot) if snapshot.daemon_sets else {}
        self._known: list[tuple[str, Pod, Share]] = []
        self._stand_ins = {key: _stand_in(key, one) for key, one in snapshot.daemon_sets.items()}
        for key, daemon_set in snapshot.daemon_sets.items():
            template = Pod(metadata=daemon_set.metadata, spec=daemon_set.spec.template.spec)
            pod = latest.get(key, template)
            if snapshot.settings.ignore_dra_requests and claims_devices(pod):
                continue
            self._known.append((key, template, Share(requests(pod), host_ports(pod))))

    def share(self, taints: Iterable[Taint], outcome: Mapping[str, str]) -> Share:
        """What those take that run on a node with these taints and labels."""
        found = Share()
        grown = {**outcome, **_GROWN_UP} if self._known else {}
        for _, template, own in self._known:
            welcome = not untolerated(template, taints)
            if welcome and selector_holds(template, grown) and affinity_holds(template, "", grown):
                found = Share(found.requests + own.requests, found.ports | own.ports)
        return found

    def pods_to_come(
        self, taints: Iterable[Taint], outcomes: Sequence[Mapping[str, str]]
    ) -> tuple[list[Pod], list[Pod]]:
        """A pod of each set that will surely run on a new node, whichever label set it ends up with; and of the others
        that run with some of them."""
        grown = [{**one, **_GROWN_UP} for one in outcomes]
        surely = {key for key, _ in self._running(taints, grown)}
        perhaps = {key for one in grown for key, _ in self._running(taints, [one])} - surely
        return [self._stand_ins[key] for key in sorted(surely)], [self._stand_ins[key] for key in sorted(perhaps)]

    def missing(
        self, taints: Iterable[Taint], outcome: Mapping[str, str], there: Iterable[Pod]
    ) -> list[tuple[Pod, Share]]:
        """A pod of each set that runs on nodes like this one and has no pod there, and the share of each."""
        running = {key for pod in there for key in owners(pod)}
        grown = {**outcome, **_GROWN_UP} if labels.NODEPOOL in outcome else outcome
        return [(self._stand_ins[key], share) for key, share in self._running(taints, [grown]) if key not in running]

    def _running(self, taints: Iterable[Taint], outcomes: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, Share]]:
        """Those that taints and every label set let run."""
        taints = tuple(taints)
        for key, _, share in self._known if outcomes else ():
            pod = self._stand_ins[key]
            if not untolerated(pod, taints) and all(
                selector_holds(pod, one) and affinity_holds(pod, "", one) for one in outcomes
            ):
                yield key, share

    def most(self, taints: Iterable[Taint], outcomes: Iterable[Mapping[str, str]]) -> Share:
        """The most they may take of a node that ends up with one of these label sets, resource by resource."""
        found = Share()
        for outcome in outcomes:
            own = self.share(taints, outcome)
            found = Share(found.requests.maximum(own.requests), found.ports | own.ports)
        return found


def _stand_in(key: str, daemon_set: DaemonSet) -> Pod:
    """A pod as the DaemonSet controller makes it of the template."""
    template, own = daemon_set.spec.template, daemon_set.metadata
    named = msgspec.structs.replace(template.metadata, name=f"a pod of {key}", namespace=own.namespace)
    tolerations = (*template.spec.tolerations, *_ADDED)
    return Pod(metadata=named, spec=msgspec.structs.replace(template.spec, tolerations=tolerations))


def _latest(snapshot: Snapshot) -> dict[str, Pod]:
    """Each daemon set's latest pod by the set's key."""
    found: dict[str, Pod] = {}
    bound = (pod for on_node in snapshot.pods.by_node.values() for pod in on_node.values())
    for pod in sorted((p for p in bound if p.metadata.owner_references and not p.metadata.deleting), key=_age):
        found.update(dict.fromkeys(owners(pod), pod))
    return found


def owners(pod: Pod) -> list[str]:
    """The keys of the daemon sets that own a pod."""
    rows = pod.metadata.owner_references
    return [f"{pod.metadata.namespace}/{owner.name}" for owner in rows if owner.kind == "DaemonSet"]


def _age(pod: Pod) -> tuple[float, str]:
    made = pod.metadata.creation_timestamp
    return (made.timestamp() if made is not None else 0.0), pod.key
