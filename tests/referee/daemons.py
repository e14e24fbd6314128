"""What daemon sets will take of a node that is not there yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from api import labels
from api.resources import EMPTY, Resources
from api.v1.meta import Taint
from reconciler.model.objects import Pod
from reconciler.model.snapshot import Snapshot
from tests.referee.needs import HostPort, claims_devices, host_ports, requests
from tests.referee.selecting import affinity_holds, selector_holds, untolerated

_GROWN_UP = {labels.REGISTERED: "true", labels.INITIALIZED: "true"}


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

    def ports_to_come(self, taints: Iterable[Taint], found: Mapping[str, str], there: Iterable[Pod]) -> set[HostPort]:
        """The host ports of those that will run on a node, and have no pod there yet."""
        taken, running = set[HostPort](), {key for pod in there for key in owners(pod)}
        for key, template, own in self._known:
            comes = bool(own.ports) and key not in running and not untolerated(template, taints)
            if comes and selector_holds(template, found) and affinity_holds(template, "", found):
                taken |= own.ports
        return taken

    def most(self, taints: Iterable[Taint], outcomes: Iterable[Mapping[str, str]]) -> Share:
        """The most they may take of a node that ends up with one of these label sets, resource by resource."""
        found = Share()
        for outcome in outcomes:
            own = self.share(taints, outcome)
            found = Share(found.requests.maximum(own.requests), found.ports | own.ports)
        return found


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
