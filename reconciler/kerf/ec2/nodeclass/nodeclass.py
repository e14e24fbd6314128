"""An EC2NodeClass's status: what AWS made of its selectors, and whether nodes can be launched from it.

A pure function from the class and what is known to its complete next status; the same facts give the same status, so
nothing is written while nothing changes. Source: AWS provider reference §6, API reference §10.4.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from kerf.ec2 import families, images, tags
from kerf.ec2.nodeclass import profile_verdicts, unmatched, validation
from kerf.ec2.userdata import userdata
from kerf.model.aws.cloud import CapacityReservation, ClassFacts, ClusterFacts, SecurityGroup, Subnet
from kerf.model.settings import Settings
from kerf_api.kubelet import rules as kubelet_rules
from kerf_api.v1 import conditions
from kerf_api.v1.conditions import AWAITING, FALSE, NODECLASS_DEPENDENTS, RESERVATIONS_READY, TRUE, UNKNOWN
from kerf_api.v1.ec2nodeclass import (
    EC2NodeClass,
    EC2NodeClassStatus,
    ResolvedImage,
    ResolvedReservation,
    ResolvedSecurityGroup,
    ResolvedSubnet,
)
from kerf_api.v1.meta import Condition

Verdict = tuple[str, str, str]
#: What a dry run says of the class with this status; None while it says nothing.
Tried = Callable[[EC2NodeClassStatus], Verdict | None]

_DEPENDENCIES = ("AMIsReady", "InstanceProfileReady", "SecurityGroupsReady", "SubnetsReady")


def status(
    node_class: EC2NodeClass,
    facts: ClassFacts | None,
    *,
    cluster: ClusterFacts | None,
    settings: Settings,
    now: datetime,
    tried: Tried = lambda new: validation.SUCCEEDED,
) -> EC2NodeClassStatus:
    """The complete next status.

    `facts` of another generation count as none: until fresh ones come, what is known stays and Ready is not True.
    Without the gate `reserved_capacity` the status lists no reservation. `tried` is asked, with what is new, when
    nothing else is wrong.
    """
    old, generation = node_class.status, node_class.metadata.generation
    reserved_capacity = settings.gates.reserved_capacity
    known = old.conditions if reserved_capacity else conditions.drop(old.conditions, RESERVATIONS_READY)
    dependents = (*NODECLASS_DEPENDENTS, *((RESERVATIONS_READY,) if reserved_capacity else ()))
    rows = conditions.initial(known, dependents, node_class.metadata.creation_timestamp)
    if node_class.metadata.deleting:
        return replace(old, conditions=conditions.bump(rows, generation))
    if facts is None or facts.generation != generation:
        return replace(old, conditions=conditions.with_root(rows, dependents, generation=generation, now=now))
    new = _resolved(node_class, facts)
    if reserved_capacity:
        rows = _put(rows, RESERVATIONS_READY, (TRUE, RESERVATIONS_READY, ""), generation, now)
    else:
        new = replace(new, capacity_reservations=())
    for type_, verdict in _parts(node_class, facts, new):
        rows = _put(rows, type_, verdict, generation, now)
    planned = profile_for(node_class, cluster)[0] if cluster is not None else ""
    before, isolated = conditions.get(rows, profile_verdicts.CONDITION), settings.isolated_vpc
    profile = profile_verdicts.of(
        node_class, facts, profile=new.instance_profile, planned=planned, isolated_vpc=isolated, before=before
    )
    rows = _put(rows, profile_verdicts.CONDITION, profile, generation, now)
    valid = _validation(node_class, facts, cluster, rows, settings, partial(tried, new))
    rows = _put(rows, validation.CONDITION, valid, generation, now)
    return replace(new, conditions=conditions.with_root(rows, dependents, generation=generation, now=now))


def as_resolved(node_class: EC2NodeClass, facts: ClassFacts | None) -> EC2NodeClass | None:
    """The class with images, networks and profile as AWS gave them, whatever others have written to its status. None
    while AWS has not answered for its present generation."""
    if facts is None or facts.generation != node_class.metadata.generation:
        return None
    found = replace(_resolved(node_class, facts), conditions=node_class.status.conditions)
    return replace(node_class, status=found)


def profile_for(node_class: EC2NodeClass, cluster: ClusterFacts) -> tuple[str, str, dict[str, str]]:
    """Name, path and tags of the instance profile that a class with `spec.role` gets; another role, another name."""
    role = (node_class.spec.role or "").rpartition("/")[2]
    identity = "\n".join((cluster.region, node_class.name, node_class.metadata.uid, role))
    number = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "big")
    return (
        f"{cluster.name}_{number}",
        profile_path(node_class, cluster),
        tags.profile(node_class, cluster.name, cluster.region),
    )


def profile_path(node_class: EC2NodeClass, cluster: ClusterFacts) -> str:
    """The path under which all instance profiles of a class live."""
    return f"{profiles_path(cluster.region, cluster.name)}{node_class.metadata.uid}/"


def profiles_path(region: str, cluster_name: str) -> str:
    """The path under which the instance profiles of all node classes of a cluster live."""
    return f"/karpenter/{region}/{cluster_name}/"


def subnets(found: Iterable[Subnet], listed: Iterable[ResolvedSubnet] = ()) -> tuple[ResolvedSubnet, ...]:
    """As the status lists them: most free addresses first, then by ID.

    The counts move with every launch, and a launch takes the first of its zone. So an order that is `listed` already
    stays for as long as it serves: nothing is written because of a few addresses, nor in turns by two controllers that
    would read different counts.
    """
    by_id = {subnet.id: subnet for subnet in found}
    rows = [by_id[row.id] for row in listed if row.id in by_id]
    if len(rows) != len(by_id) or not _serves(rows):
        rows = sorted(by_id.values(), key=lambda subnet: (-subnet.free_addresses, subnet.id))
    return tuple(ResolvedSubnet(id=s.id, zone=s.zone, zone_id=s.zone_id) for s in rows)


def _serves(rows: Iterable[Subnet]) -> bool:
    """Whether the first of each zone has at least half as many free addresses as any other there."""
    first: dict[str, Subnet] = {}
    return all(2 * first.setdefault(row.zone, row).free_addresses >= row.free_addresses for row in rows)


def security_groups(found: Iterable[SecurityGroup]) -> tuple[ResolvedSecurityGroup, ...]:
    """As the status lists them: by ID."""
    return tuple(ResolvedSecurityGroup(id=g.id, name=g.name) for g in sorted(found, key=lambda group: group.id))


def reservations(found: Iterable[CapacityReservation]) -> tuple[ResolvedReservation, ...]:
    """As the status lists them: by ID. How many machines are left is left out; that changes with every launch."""
    return tuple(
        ResolvedReservation(
            availability_zone=one.zone,
            id=one.id,
            instance_match_criteria=one.criteria,
            instance_type=one.instance_type,
            owner_id=one.owner,
            end_time=one.ends,
            interruptible=one.interruptible,
            reservation_type=one.type,
            state="expiring" if one.expiring else "active",
        )
        for one in sorted(found, key=lambda reservation: reservation.id)
    )


def _resolved(node_class: EC2NodeClass, facts: ClassFacts) -> EC2NodeClassStatus:
    profile = node_class.spec.instance_profile or facts.instance_profile
    if not profile and profile_verdicts.CONDITION in facts.problems:
        profile = node_class.status.instance_profile  # IAM did not answer: what was known stays
    return EC2NodeClassStatus(
        subnets=subnets(facts.subnets, node_class.status.subnets),
        security_groups=security_groups(facts.security_groups),
        amis=images.listed(facts.images),
        capacity_reservations=reservations(facts.reservations),
        instance_profile=profile,
    )


def _parts(node_class: EC2NodeClass, facts: ClassFacts, new: EC2NodeClassStatus) -> Iterable[tuple[str, Verdict]]:
    """Each selector's condition and its verdict."""
    found: dict[str, Sequence[ResolvedImage | ResolvedSubnet | ResolvedSecurityGroup]] = {
        "AMIsReady": new.amis,
        "SubnetsReady": new.subnets,
        "SecurityGroupsReady": new.security_groups,
    }
    for type_, values in found.items():
        yield (
            type_,
            (TRUE, type_, "")
            if values
            else (FALSE, *(facts.problems.get(type_) or unmatched.problem(type_, node_class))),
        )
    yield "PlacementGroupReady", _placement_group(node_class, facts)


def _placement_group(node_class: EC2NodeClass, facts: ClassFacts) -> Verdict:
    """A class that asks for a group launches nothing outside it: without one resolved it is not ready."""
    if node_class.spec.placement_group_selector is None:
        return (TRUE, "PlacementGroupReady", "")
    if facts.placement_group is not None:
        return (TRUE, "PlacementGroupReady", f"{facts.placement_group.strategy} {facts.placement_group.id}")
    return (
        FALSE,
        *facts.problems.get(
            "PlacementGroupReady",
            ("PlacementGroupResolutionFailed", "the placement group has not been resolved"),
        ),
    )


def _validation(
    node_class: EC2NodeClass,
    facts: ClassFacts,
    cluster: ClusterFacts | None,
    rows: tuple[Condition, ...],
    settings: Settings,
    tried: Callable[[], Verdict | None],
) -> Verdict | None:
    """The first check that fails, in Karpenter's order; None while the cluster's own facts are not known."""
    spec, family = node_class.spec, families.of(node_class.family)
    if cluster is None:
        return None
    if family is families.AL2023 and not cluster.service_cidr:
        return (FALSE, "ClusterCIDRResolutionFailed", "the cluster's service CIDR is not known")
    kubelet = kubelet_rules.problem(spec.kubelet, family.name, allowed=settings.gates.node_class_cel)
    if kubelet is not None:
        return (FALSE, *kubelet)
    states = [found for type_ in _DEPENDENCIES if (found := conditions.get(rows, type_)) is not None]
    for state in (FALSE, UNKNOWN):
        waiting = [f"{c.type}={c.status}" for c in states if c.status == state]
        if waiting:
            return (state, "DependenciesNotReady", ", ".join(waiting))
    if (types := facts.problems.get(validation.CONDITION)) is not None:  # they cannot be worked out
        return (FALSE, *types)
    restricted = tags.restricted(spec.tags)
    if restricted:
        return (FALSE, "TagValidationFailed", f"tags that only the controller sets: {', '.join(restricted)}")
    fault = userdata.fault(node_class.family, spec.user_data or "", spec.instance_store_policy == "RAID0")
    if fault is not None:
        return (FALSE, *fault)
    return _settled(tried(), conditions.get(rows, validation.CONDITION), node_class.metadata.generation)


def _settled(verdict: Verdict | None, before: Condition | None, generation: int) -> Verdict | None:
    """The verdict on a class that could not be tried, or not yet: what a dry run said before stays."""
    if before is None or before.reason not in validation.TOLD:
        return verdict or (UNKNOWN, AWAITING, "a dry run of a launch is not complete yet")
    valid = before.status == TRUE and before.observed_generation == generation
    return None if valid and verdict is not None and verdict[0] == UNKNOWN else verdict


def _put(
    rows: tuple[Condition, ...], type_: str, verdict: Verdict | None, generation: int, now: datetime
) -> tuple[Condition, ...]:
    if verdict is None:
        return rows
    state, reason, message = verdict
    return conditions.put(rows, type_, state, reason, generation=generation, now=now, message=message)
