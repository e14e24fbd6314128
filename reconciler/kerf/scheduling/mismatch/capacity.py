"""The capacity of a watched node: what other pods took of it, and whether it holds a pod beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kerf.model.claims import planned_pods
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.selectors import selector_of
from kerf.model.memory import Step, Turn
from kerf.model.snapshot import Snapshot
from kerf.pods.host_ports import clash, host_ports
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf.scheduling.mismatch.watching import Watched, node_of
from kerf.scheduling.placing.pod_parts import has_terms
from kerf_api.resources import Resources, total
from kerf_api.v1.nodeclaim import NodeClaim


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity of a watched node as planned, `expected`, what the pods there take of it, and those of them that it
    was not made for; some of these are `ruling`: they may keep others away."""

    expected: Resources
    running: Resources
    strangers: Sequence[Pod]
    ruling: Sequence[Pod]

    @classmethod
    def of(cls, turn: Turn, one: Watched, promised: Sequence[Pod]) -> Capacity | None:
        """`promised` are pods that are expected there. None when amounts are not readable."""
        there: Capacity | None = turn.one(CAPACITIES, turn.noted, one.claim.name)
        coming = _strangers(one.claim, promised)
        if there is None or not coming:
            return there
        try:
            running = there.running + total(pods.requests(pod) for pod in coming)
        except ValueError:
            return None
        ruling = [*there.ruling, *filter(_rules, coming)]
        return cls(there.expected, running, [*there.strangers, *coming], ruling)

    def taken(self, pod: Pod) -> bool:
        """Whether other pods took the capacity: as planned, the node does not hold this pod beside them."""
        if not self.strangers:
            return False
        try:
            if not (self.running + pods.requests(pod)).fits(self.expected):
                return True
        except ValueError:
            return True
        ports = host_ports(pod)
        others = self.strangers if _rules(pod) else self.ruling
        return any(clash(ports, host_ports(other)) or _apart(pod, other) or _apart(other, pod) for other in others)


def _rules(pod: Pod) -> bool:
    """Whether a pod may keep others away, by host ports or by constraints about them."""
    return has_terms(pod) or bool(host_ports(pod))


def fits(pod: Pod, one: Watched, running: Resources) -> bool:
    """Whether a node as it is has the capacity for a pod of a CapacityBuffer, which the kube-scheduler never tries."""
    node = one.node
    tolerated = all(pods.tolerates(pod, taint) for taint in one.foreign)
    selected = all(node.metadata.labels.get(key) == value for key, value in pod.spec.node_selector.items())
    try:
        return tolerated and selected and (running + pods.requests(pod)).fits(Resources.parse(node.status.allocatable))
    except ValueError:
        return True


def _apart(pod: Pod, other: Pod) -> bool:
    """Whether rules of a pod about other pods may keep it from the node of this one."""
    affinity = pod.spec.affinity
    away = affinity.pod_anti_affinity.required if affinity is not None and affinity.pod_anti_affinity else ()
    spread = [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]
    selectors = [*(term.label_selector for term in away), *(one.label_selector for one in spread)]
    return any(selector_of(one, pod.metadata.labels, ()).matches(other.metadata.labels) for one in selectors)


def _strangers(claim: NodeClaim, found: Iterable[Pod]) -> list[Pod]:
    """The pods among these that a node was not made for; daemon pods aside."""
    planned = planned_pods(claim)
    return [
        pod
        for pod in found
        if not pods.terminal(pod)
        and not pods.of_daemon_set(pod)
        and not pods.of_node(pod)
        and pod_mark(pod.metadata.uid) not in planned
    ]


def _capacity(snapshot: Snapshot, name: str) -> tuple[Capacity | None, None]:
    """With the pods that are on the node of a NodeClaim, and the strangers that others expect there."""
    claim = snapshot.node_claims[name]
    node = node_of(snapshot, claim)
    if node is None:
        return None, None
    on = snapshot.pods.on(node.name)
    bound, coming = _strangers(claim, on), _strangers(claim, snapshot.pods.expected_on(node.name))
    try:
        running = total(pods.requests(pod) for pod in (*on, *coming) if not pods.terminal(pod))
        expected = Resources.parse(claim.status.allocatable)
    except ValueError:
        return None, None
    strangers = [*bound, *coming]
    return Capacity(expected, running, strangers, [pod for pod in strangers if _rules(pod)]), None


CAPACITIES: Step[Snapshot, Capacity | None] = Step(
    "capacity of watched nodes", "node_claims", _capacity, speaks=lambda _: False
)
