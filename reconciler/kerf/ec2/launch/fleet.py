"""A fleet request: one CreateFleet call for claims that the same types hold, with the types, zones and prices to choose
from.

The request is written to its claims before the call, so it is a function of the claims and the facts alone: the same
claims at the same attempt make the same request. Source: AWS provider reference §2.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from kerf.ec2 import images, placement, tags
from kerf.ec2.instance_types.capacity import EFA_RESOURCE
from kerf.ec2.instance_types.type_labels import TENANCIES, TENANCY
from kerf.ec2.launch import candidates, templates
from kerf.ec2.launch.candidates import Candidates
from kerf.ec2.launch.templates import Place, Variant
from kerf.model.aws.cloud import ClusterFacts, FleetRequest, LaunchTemplate, Override, PlacementGroup
from kerf.model.aws.instance_type import Catalogue, Offering, OfferingKey
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.v1.conditions import FALSE, READY, TRUE, get
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import Entry
from kerf_api.v1.nodeclaim import NodeClaim

CAPACITY, NOT_READY, CREATE = "capacity", "not_ready", "create"

#: EC2 takes no more overrides in one fleet request.
MAX_OVERRIDES = 300
#: An object's annotations may hold 256 KiB in all; a request that is larger could not be written to its claims.
MAX_BYTES = 200 * 1024

_UNAVAILABLE = "all requested instance types were unavailable during launch"
_NO_OFFERINGS = "no capacity offerings are currently available given the constraints"


@dataclass(frozen=True, slots=True)
class FleetProblem:
    """Why there is no request. `capacity`: nothing to be had, so the claim is given up; `not_ready`: the node class
    must change first, likewise; `create`: the claim waits with `Launched=Unknown`, this reason and message."""

    kind: str
    reason: str
    message: str


def equal_launch(claim: NodeClaim) -> Hashable:
    """Equal for claims that one request serves, whatever is sold and in stock."""
    rows = (_row(e) for e in claim.spec.requirements if names_types(e))
    requests = ((name, str(amount)) for name, amount in claim.spec.resources.requests.items())
    return similar_launch(claim), tuple(sorted(rows)), tuple(sorted(requests))


def similar_launch(claim: NodeClaim) -> Hashable:
    """Equal for claims that one request may serve: they differ in no more than the instance types that they allow and
    the resources that they request."""
    spec = claim.spec
    return (
        spec.node_class_ref,
        tuple(sorted(_row(e) for e in spec.requirements if not names_types(e))),
        tuple(sorted(claim.metadata.labels.items())),
        tuple(sorted((t.key, t.value, t.effect) for t in spec.taints)),
        tuple(sorted((t.key, t.value, t.effect) for t in spec.startup_taints)),
        claim.metadata.annotations.get(labels.MIN_VALUES_RELAXED, "false"),
        _repriced(claim),
    )


def names_types(entry: Entry) -> bool:
    """Whether the entry only says which instance types a NodeClaim allows."""
    return entry.key == labels.INSTANCE_TYPE and entry.min_values is None


def _row(entry: Entry) -> tuple[str, str, tuple[str, ...], int]:
    return entry.key, entry.operator, tuple(entry.values), entry.min_values or 0


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """What the launches of a class go by.

    Nothing is launched into `full_subnets`; of the others of a zone that with most `free_addresses` is named.
    `placement_group` is the one that the class selects, as far as it is known.
    """

    node_class: EC2NodeClass
    catalogue: Catalogue
    cluster: ClusterFacts
    settings: Settings
    out_of_stock: Mapping[OfferingKey, datetime]
    now: datetime
    full_subnets: Collection[str] = ()
    free_addresses: Mapping[str, int] = field(default_factory=dict)
    placement_group: PlacementGroup | None = None


def facts_of(
    snapshot: Snapshot, node_class: EC2NodeClass, types: Catalogue, free_addresses: Mapping[str, int] | None = None
) -> LaunchFacts | None:
    """What is known for launches of a class, of these types; None while the cluster is not known."""
    if snapshot.cluster is None:
        return None
    return LaunchFacts(
        node_class=node_class,
        catalogue=types,
        cluster=snapshot.cluster,
        settings=snapshot.settings,
        out_of_stock=snapshot.out_of_stock,
        now=snapshot.now,
        full_subnets=snapshot.full_subnets(node_class.name),
        placement_group=snapshot.placement_group(node_class.name),
        free_addresses=free_addresses or {},
    )


def plan(claims: Sequence[NodeClaim], facts: LaunchFacts, *, attempt: int = 0) -> FleetRequest | FleetProblem:
    """The fleet call for claims of one `similar_launch` that the same types hold (`holding.py`), one instance each; or
    why there can be none.

    `attempt` makes another group (and client token) of the same claims after a call that failed permanently.
    """
    members = sorted(claims, key=lambda claim: claim.name)
    claim, node_class = members[0], facts.node_class
    unready = _unready(node_class, facts.catalogue, facts.placement_group)
    if unready is not None:
        return unready
    try:
        wants = wanted(claim)
        chosen = _choose(claim, wants, facts)
        if isinstance(chosen, FleetProblem):
            return chosen
        capacity_type = _capacity_type(wants, chosen)
        build = partial(_template, claim, facts, wants, capacity_type)
        chosen = candidates.of_capacity_type(chosen, capacity_type)
        overrides, used = _overrides(build, chosen, facts, networked=claim.requests()[EFA_RESOURCE] > 0)
    except ValueError as error:  # a malformed requirement, quantity or user data
        return FleetProblem(CREATE, "LaunchFailed", f"Error getting launch template configs: {error}")
    if not overrides:
        return FleetProblem(CREATE, "LaunchFailed", _NO_OFFERINGS)
    group = group_of(members, attempt)
    own = {**tags.launch(node_class, claim.pool_name, facts.cluster.name), labels.LAUNCH_GROUP: group}
    relaxed = claim.metadata.annotations.get(labels.MIN_VALUES_RELAXED) == "true"
    return FleetRequest(
        group=group,
        capacity_type=capacity_type,
        members=tuple(member.name for member in members),
        templates=used,
        overrides=overrides,
        tags=dict(sorted(own.items())),
        context="" if relaxed else node_class.spec.context or "",
        prioritized=_repriced(claim),
    )


def _repriced(claim: NodeClaim) -> bool:
    """Whether the claim was planned with prices that EC2 knows nothing of, so that it must not go by its own."""
    return claim.metadata.annotations.get(labels.PRICE_OVERLAY) == "true"


def group_of(claims: Sequence[NodeClaim], attempt: int) -> str:
    """The launch group of these claims: 32 hexadecimal digits."""
    identity = [attempt, sorted((claim.name, claim.metadata.uid) for claim in claims)]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]


def _unready(node_class: EC2NodeClass, catalogue: Catalogue, group: PlacementGroup | None) -> FleetProblem | None:
    """Why the class may not be launched from now; None when it may."""
    if node_class.metadata.deleting:
        return FleetProblem(CAPACITY, "NodeClassTerminating", f"EC2NodeClass {node_class.name} is being deleted")
    ready = get(node_class.status.conditions, READY)
    if ready is not None and ready.status == FALSE:
        return FleetProblem(NOT_READY, "NodeClassNotReady", ready.message or ready.reason)
    if ready is None or ready.status != TRUE:
        return FleetProblem(CREATE, "NodeClassReadinessUnknown", "NodeClass is in Ready=Unknown")
    if ready.observed_generation != node_class.metadata.generation:
        return FleetProblem(NOT_READY, "NodeClassNotReady", "the node class has changed since it was last ready")
    forbidden = tags.restricted(node_class.spec.tags)
    if forbidden:
        return FleetProblem(
            NOT_READY, "NodeClassNotReady", f"tags that only the controller sets: {', '.join(forbidden)}"
        )
    return _incomplete(node_class, catalogue, group)


def _incomplete(node_class: EC2NodeClass, catalogue: Catalogue, group: PlacementGroup | None) -> FleetProblem | None:
    """What a launch needs and has not been found."""
    status = node_class.status
    if node_class.spec.placement_group_selector is not None and group is None:
        return FleetProblem(NOT_READY, "NodeClassNotReady", "the placement group of the node class is not known")
    if not status.instance_profile:
        return FleetProblem(NOT_READY, "NodeClassNotReady", "the node class has no instance profile")
    if not catalogue:
        return FleetProblem(CREATE, "InstanceTypeResolutionFailed", "no instance types found")
    if not status.subnets:
        return FleetProblem(CREATE, "SubnetResolutionFailed", "no subnets found")
    if not status.security_groups:
        return FleetProblem(CREATE, "LaunchFailed", "no security groups found")
    return None


def wanted(claim: NodeClaim) -> Requirements:
    """The claim's requirements; one that says nothing of the capacity type means on-demand. Raises ValueError."""
    rows = claim.requirements()
    if labels.CAPACITY_TYPE in rows:
        return rows
    return rows & (requirement(labels.CAPACITY_TYPE, IN, (labels.ON_DEMAND,)),)


def _choose(claim: NodeClaim, wanted: Requirements, facts: LaunchFacts) -> Candidates | FleetProblem:
    """The candidates after all filters, cheapest first."""
    settings = facts.settings
    found: Candidates = candidates.available(facts.catalogue, wanted, claim.requests(), facts.out_of_stock, facts.now)
    found = candidates.reserved_first(found)
    if not candidates.has_min_values(wanted):
        found = candidates.without_exotic(found)
        found = candidates.without_dear_spot(found)
    if not found:
        return FleetProblem(CAPACITY, "InsufficientCapacity", _UNAVAILABLE)
    found = candidates.cheapest(found, settings.max_instance_types)
    missing = candidates.missing_min_values(found, wanted)
    if missing is not None and settings.min_values_policy == "Strict":
        message = f"truncating instance types to {len(found)}: too few values of {missing} for its minValues"
        return FleetProblem(CAPACITY, "InsufficientCapacity", message)
    return found


def _capacity_type(wanted: Requirements, chosen: Candidates) -> str:
    """Reserved where it is allowed and to be had, else spot, else on-demand."""
    there = {o.capacity_type for candidate in chosen for o in candidate.offerings}
    allowed = wanted.allowed(labels.CAPACITY_TYPE)
    first = (kind for kind in (labels.RESERVED, labels.SPOT) if kind in there and allowed.has(kind))
    return next(first, labels.ON_DEMAND)


def _subnets(node_class: EC2NodeClass, full: Collection[str], free: Mapping[str, int]) -> dict[str, str]:
    """The subnet to launch into, by zone: the roomiest, and among equals the one that is listed first."""
    roomiest: dict[str, str] = {}
    for subnet in node_class.status.subnets:
        best = roomiest.get(subnet.zone)
        if subnet.id not in full and (best is None or free.get(subnet.id, 0) > free.get(best, 0)):
            roomiest[subnet.zone] = subnet.id
    return roomiest


def _tenancy(wanted: Requirements) -> str:
    """On hardware that is shared, unless only that of one's own is allowed."""
    return next((kind for kind in TENANCIES if wanted.allowed(TENANCY).has(kind)), TENANCIES[0])


def _template(
    claim: NodeClaim, facts: LaunchFacts, wanted: Requirements, capacity_type: str, variant: Variant
) -> LaunchTemplate:
    """One template of the claim's launch. Raises ValueError when the class's user data is malformed."""
    return templates.build(
        claim,
        facts.node_class,
        facts.cluster,
        variant,
        capacity_type=capacity_type,
        reserved_capacity=facts.settings.gates.reserved_capacity,
        place=_place(facts, wanted),
    )


def _place(facts: LaunchFacts, wanted: Requirements) -> Place:
    """The hardware that the claim asks for, the group that the class does, and the claim's partition of it."""
    tenancy, group = _tenancy(wanted), facts.placement_group
    if facts.node_class.spec.placement_group_selector is None or group is None:
        return Place(tenancy)
    return Place(tenancy, group.id, placement.partition(group, wanted))


def _overrides(
    build: Callable[[Variant], LaunchTemplate], chosen: Candidates, facts: LaunchFacts, *, networked: bool
) -> tuple[tuple[Override, ...], tuple[LaunchTemplate, ...]]:
    """Every (type, zone) to choose from, cheapest first, and the templates they use, by name.

    `build` makes a template. Raises ValueError when the class's user data is malformed.
    """
    subnets = _subnets(facts.node_class, facts.full_subnets, facts.free_addresses)
    table = images.table(facts.node_class.status.amis)
    made: dict[Hashable, LaunchTemplate] = {}
    rows: list[tuple[int, Override]] = []
    for candidate in chosen:
        type_ = candidate.type
        image_id, pods, reserved = images.pick(type_.requirements, table), type_.capacity["pods"], type_.reserved
        if image_id is None:
            continue
        efa = type_.capacity[EFA_RESOURCE] if networked else 0
        for offering in (o for o in candidate.offerings if o.zone in subnets):
            held = offering.reservation
            shape = (image_id, pods, reserved, efa, held.id if held is not None else "")
            if shape not in made:
                made[shape] = build(Variant(image_id, pods, reserved, held, efa))
            rows.append((offering.on_demand, _override(offering, subnets[offering.zone], made[shape])))
    rows.sort(key=lambda row: (row[1].price, row[0], row[1].instance_type, row[1].zone))
    return _limited([row for _, row in rows], {template.name: template for template in made.values()})


def _override(offering: Offering, subnet_id: str, template: LaunchTemplate) -> Override:
    return Override(
        instance_type=offering.instance_type,
        zone=offering.zone,
        subnet_id=subnet_id,
        image_id=template.image_id,
        template=template.name,
        price=offering.price,
        zone_id=offering.zone_id,
    )


def _limited(
    rows: Sequence[Override], known: Mapping[str, LaunchTemplate]
) -> tuple[tuple[Override, ...], tuple[LaunchTemplate, ...]]:
    """The cheapest overrides that EC2 and an annotation can take, and the templates they use."""
    kept: list[Override] = []
    used: dict[str, LaunchTemplate] = {}
    size = 0
    for row in rows[:MAX_OVERRIDES]:
        new = row.template not in used
        cost = _OVERRIDE_BYTES + (_bytes(known[row.template]) if new else 0)
        if kept and size + cost > MAX_BYTES:
            continue
        size += cost
        kept.append(row)
        used[row.template] = known[row.template]
    return tuple(kept), tuple(used[name] for name in sorted(used))


#: More than one override takes as JSON.
_OVERRIDE_BYTES = 300


def _bytes(template: LaunchTemplate) -> int:
    return len(json.dumps(template.user_data)) + 2048
