"""Nodes as the referee sees them, real, on their way or planned: what each may end up as, and who is there.

A node that is not there yet is judged by every (type, zone, capacity type) that it may become.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kerf.model.aws.instance_type import InstanceType, Offering
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot, StateNode
from kerf_api import labels
from kerf_api.requirements import Requirements
from kerf_api.resources import Resources
from kerf_api.v1.meta import Taint
from kerf_api.v1.nodeclaim import NodeClaim
from tests.referee.answers import Answer, Violation
from tests.referee.daemons import Daemons
from tests.referee.needs import HostPort
from tests.referee.overlays import overlaid
from tests.referee.selecting import affinity_holds, selector_holds

Labels = Mapping[str, str]
_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_NOBODY_KNOWS = "a name that nobody knows yet"


#: Labels of nodes whose names Kubernetes has replaced.
_PRESENT: Final = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
}


@dataclass(eq=False)
class Place:
    """A node. `outcomes` are the label sets it may end up with; `rooms` what it may hold, by the name of a type.

    `staying` pods are there already; `leaving` ones too, but they are on their way out: no spread counts them. `coming`
    are those of the answer, `waiting` those that come when others are gone, before any planned node is there. One that
    is `planned` is there when pods that leave within a minute are gone. `daemon_ports` are taken by daemon sets to
    come, whose pods are `awaited`; `rooms` are less what these take. A node that is `launched` gets them by
    `arriving.settle`. Pods must tolerate a `cordon` like the taints, but no spread reads it. Those that run with some
    outcomes only are `possible`.
    """

    name: str
    outcomes: Sequence[Labels]
    taints: tuple[Taint, ...]
    rooms: Mapping[str, Resources] = field(default_factory=dict)
    daemon_ports: frozenset[HostPort] = frozenset()
    staying: list[Pod] = field(default_factory=list)
    leaving: list[Pod] = field(default_factory=list)
    waiting: list[Pod] = field(default_factory=list)
    coming: list[Pod] = field(default_factory=list)
    planned: bool = False
    launched: bool = False
    cordon: tuple[Taint, ...] = ()
    awaited: list[Pod] = field(default_factory=list)
    possible: list[Pod] = field(default_factory=list)
    _domains: dict[str, frozenset[str]] = field(default_factory=dict)

    def domains(self, key: str) -> frozenset[str]:
        """The values that a label may have here; none where the node has no such label.

        The key may be spelled as before Kubernetes 1.17: nodes have both labels.
        """
        key = _PRESENT.get(key, key)
        if key == labels.HOSTNAME:
            return frozenset((self.name,))
        if key not in self._domains:
            self._domains[key] = frozenset(o[key] for o in self.outcomes if key in o)
        return self._domains[key]

    def domain(self, key: str) -> str | None:
        """The one value that a label surely has; None when there is no such value."""
        found, key = self.domains(key), _PRESENT.get(key, key)
        if len(found) != 1 or (key != labels.HOSTNAME and not all(key in o for o in self.outcomes)):
            return None
        return next(iter(found))

    def has(self, key: str) -> bool:
        """Whether a label surely has a value, though it may be open which."""
        key = _PRESENT.get(key, key)
        return key == labels.HOSTNAME or all(key in outcome for outcome in self.outcomes)

    def selected_by(self, pod: Pod) -> bool:
        """Whether the pod's demands on labels are surely met."""
        return all(selector_holds(pod, o) and affinity_holds(pod, self.name, o) for o in self.outcomes)


# --- what exists ------------------------------------------------------------------------------------------------
def existing(
    snapshot: Snapshot,
    daemons: Daemons,
    by_key: Mapping[str, Pod],
    answer: Answer,
    exclude: frozenset[str],
    found: list[Violation],
) -> list[Place]:
    """The nodes that are there or on their way, with what the answer puts on them."""
    places = {key: _place(snapshot, daemons, state, by_key) for key, state in snapshot.state_nodes.items()}
    for pod, target in answer.placed.items():
        if target not in places or target in exclude or snapshot.state_nodes[target].deleting:
            found.append(Violation("target", f"{pod} is placed on {target}, which is no target"))
        else:
            places[target].coming.append(by_key[pod])
    for pod, refusal in answer.unplaced.items():
        target = getattr(refusal, "target", "")
        if target in places:
            places[target].waiting.append(by_key[pod])
    return list(places.values())


def _place(snapshot: Snapshot, daemons: Daemons, state: StateNode, by_key: Mapping[str, Pod]) -> Place:
    claim = state.claim
    if state.node is None and claim is not None and not claim.status.allocatable:
        place = _unlaunched(snapshot, daemons, state, claim)
    else:
        cordon = (_CORDONED,) if state.node is not None and state.node.spec.unschedulable else ()
        own = {labels.HOSTNAME: state.name, **state.labels}
        place = Place(state.name, (own,), state.taints, {state.name: state.allocatable}, launched=True, cordon=cordon)
    if state.node is not None:
        name = state.node.name
        there = [p for p in (*snapshot.pods.on(name), *snapshot.pods.expected_on(name)) if p.key not in by_key]
        there = [p for p in there if p.status.phase not in ("Failed", "Succeeded")]
        place.staying = [p for p in there if not p.metadata.deleting]
        place.leaving = [p for p in there if p.metadata.deleting]
    return place


def _unlaunched(snapshot: Snapshot, daemons: Daemons, state: StateNode, claim: NodeClaim) -> Place:
    requirements = claim.requirements() & Requirements.of_labels(claim.metadata.labels)
    rooms: dict[str, Resources] = {}
    outcomes: list[Labels] = []
    for one in _listed(snapshot, claim):
        for name, sold in launchable(one, claim.requests()).items():
            own = outcomes_of(snapshot, requirements, {}, sold, ())
            if own:
                outcomes += own
                rooms[name] = sold.allocatable - daemons.most(claim.spec.taints, own).requests
    surely, perhaps = daemons.pods_to_come(state.taints, outcomes)
    return Place(state.name, outcomes, state.taints, rooms, awaited=surely, possible=perhaps)


def _listed(snapshot: Snapshot, claim: NodeClaim) -> Iterable[InstanceType]:
    """The types that a claim may be launched as; those of its pool while they are of the same class."""
    pool = snapshot.node_pools.get(claim.pool_name)
    if pool is not None and pool.class_name == claim.spec.node_class_ref.name:
        return overlaid(snapshot, pool)
    return snapshot.catalogues.get(claim.spec.node_class_ref.name, ())


# --- what a node may become ---------------------------------------------------------------------------------------
def launchable(one: InstanceType, requests: Resources) -> dict[str, InstanceType]:
    """What a launch may make of a type for so much: the type itself, and apart from it each offering with a capacity of
    its own, by a name that tells them apart. The system keeps as much there as it does of the type."""
    plain = tuple(o for o in one.offerings if o.capacity is None)
    if len(plain) == len(one.offerings):
        return {one.name: one}
    found = {one.name: replace(one, offerings=plain)} if plain else {}
    for offer in one.offerings:
        if offer.capacity is not None:
            kept = one.capacity - one.allocatable
            room = Resources({**one.allocatable, **{r: amount - kept[r] for r, amount in offer.capacity.items()}})
            found[f"{one.name} in {offer.zone} as {offer.capacity_type}"] = replace(
                one, allocatable=room, offerings=(offer,)
            )
    return {n: k for n, k in found.items() if all(k.allocatable[r] >= amount for r, amount in requests.items())}


def outcomes_of(
    snapshot: Snapshot, requirements: Requirements, own: Labels, one: InstanceType, defined: Collection[str]
) -> list[Labels]:
    """The label sets of a node of this type under the requirements, one for each offering; `own` are its pool's.

    A key that neither type nor offering settles has the value that the claim will be given: the only one that is
    left, and for a label of the user's the least. A row that only excludes values gives no label, unless the pool
    `defined` the key.
    """
    if requirements.conflict(one.requirements) is not None:
        return []
    rows = {k: row for k, row in requirements.items() if k in defined or not row.complement}
    left = {k: row.any_value() for k, row in rows.items() if _settled(k, row.complement, len(row.values))}
    typed = {k: min(row.values) for k, row in one.requirements.items() if not row.complement and len(row.values) == 1}
    base = {labels.HOSTNAME: _NOBODY_KNOWS, **{k: v for k, v in left.items() if v is not None}, **typed}
    return [{**base, **_market(offer), **own} for offer in offers(snapshot, requirements, one)]


def _settled(key: str, complement: bool, count: int) -> bool:
    users_own = key not in labels.WELL_KNOWN and not labels.is_restricted(key)
    return users_own or (not complement and count == 1)


def _market(offer: Offering) -> dict[str, str]:
    zone_id = {labels.ZONE_ID: offer.zone_id} if offer.zone_id else {}
    return {labels.ZONE: offer.zone, labels.CAPACITY_TYPE: offer.capacity_type, **zone_id, **_reservation(offer)}


def _reservation(offer: Offering) -> dict[str, str]:
    """Only a machine in a capacity reservation has these labels."""
    one = offer.reservation
    if one is None:
        return {}
    prefix = "karpenter.k8s.aws/capacity-reservation"
    told = "true" if one.interruptible else "false"
    return {f"{prefix}-id": one.id, f"{prefix}-type": one.type, f"{prefix}-interruptible": told}


def offers(snapshot: Snapshot, requirements: Requirements, one: InstanceType) -> Iterable[Offering]:
    """What of a type can be had under the requirements."""
    return [
        o
        for o in one.offerings
        if o.available
        and not snapshot.out_of_stock_now(o)
        and requirements.allowed(labels.ZONE).has(o.zone)
        and requirements.allowed(labels.CAPACITY_TYPE).has(o.capacity_type)
        and (not o.zone_id or requirements.allowed(labels.ZONE_ID).has(o.zone_id))
        and all(_reserved_as(requirements, key, _reservation(o).get(key)) for key in labels.RESERVATION_LABELS)
    ]


def _reserved_as(requirements: Requirements, key: str, value: str | None) -> bool:
    if key not in requirements:
        return True
    if value is None:
        return requirements[key].operator in ("NotIn", "DoesNotExist")
    return requirements[key].has(value)
