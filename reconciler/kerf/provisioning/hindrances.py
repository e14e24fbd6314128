"""What keeps Kerf from getting nodes from a NodePool although every field of it is right: a missing permission, an
exhausted account, an EC2NodeClass that is being deleted, nodes that are never initialized."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kerf.ec2 import refused_launches
from kerf.ec2.errors import UNAUTHORIZED
from kerf.ec2.nodeclass import profile_verdicts
from kerf.model import failures
from kerf.model.claims import launched_since
from kerf.model.failures import STUCK
from kerf.model.snapshot import Snapshot
from kerf.scheduling.facts import joining
from kerf_api.v1 import conditions
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodepool import NodePool

#: The conditions of an EC2NodeClass that AWS is asked for.
_ASKED: Final = (*conditions.NODECLASS_DEPENDENTS, conditions.RESERVATIONS_READY)


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why no node comes of a NodePool, in words without a subject; what helps; since when; and whether it keeps the
    EC2NodeClass from being Ready."""

    text: str
    fix: str
    since: datetime | None = None
    of_class: bool = False

    def __str__(self) -> str:
        return f"{self.text}; {self.fix}"


def of(snapshot: Snapshot, pool: NodePool) -> Iterator[Hindrance]:
    """The hindrances of a NodePool, the most certain first. Attempts that may come off by themselves are none."""
    node_class = snapshot.node_classes.get(pool.class_name)
    if node_class is not None and node_class.metadata.deleting:
        fix = f"let spec.template.spec.nodeClassRef of NodePool {pool.name} name another EC2NodeClass"
        text = f"EC2NodeClass {pool.class_name} is being deleted"
        yield Hindrance(text, fix, node_class.metadata.deletion_timestamp, of_class=True)
    own = failures.of(snapshot.failures, f"nodepool/{pool.name}")
    makes = (one for one in own if one.verb in (failures.CREATE, failures.LAUNCH))
    asks = (
        () if node_class is not None and _ready(node_class) else failures.of_class(snapshot.failures, pool.class_name)
    )
    for about_class, found in ((False, makes), (True, asks)):
        stuck = (one for one in found if one.outcome in STUCK)
        yield from (Hindrance(one.text, one.fix, one.since, about_class) for one in stuck)
    if not any(one.verb == failures.LAUNCH for one in own):
        yield from _unauthorized(snapshot, pool)
    if node_class is not None:
        yield from _unanswered(node_class)
    yield from _refused(snapshot, pool)
    if joining.late_unanswered(snapshot, pool.name):
        yield from _not_initialized(snapshot, pool)


def _unauthorized(snapshot: Snapshot, pool: NodePool) -> Iterator[Hindrance]:
    """A launch that AWS does not authorize, by the oldest NodeClaim that waits for it."""
    waiting = (one for one in snapshot.claims_by_pool.get(pool.name, ()) if not one.metadata.deleting)
    launches = (one for claim in waiting if (one := claim.condition("Launched")) is not None)
    denied = (one for one in launches if one.reason == UNAUTHORIZED)
    first = min(denied, key=lambda one: (one.last_transition_time or snapshot.now, one.message), default=None)
    if first is not None:
        yield Hindrance(f"launches fail: {conditions.words(first)}", failures.IAM_FIX, first.last_transition_time)


def _ready(node_class: EC2NodeClass) -> bool:
    """Whether nodes of the class can be launched as it is now, if by earlier answers of AWS."""
    ready = conditions.get(node_class.status.conditions, conditions.READY)
    if ready is None or ready.status != conditions.TRUE:
        return False
    return ready.observed_generation in (0, node_class.metadata.generation)


def _refused(snapshot: Snapshot, pool: NodePool) -> Iterator[Hindrance]:
    """What the account lacks, unless a node has been launched since: of another capacity type or zone, say."""
    found = refused_launches.refused(snapshot.launch_failures.values(), snapshot.now, pool.name)
    claims = snapshot.claims_by_pool.get(pool.name, ())
    left = [one for one in found if one.fix and not launched_since(claims, one.latest)]
    if left:
        fixes = "; ".join(dict.fromkeys(one.fix for one in left))
        text = "; ".join(one.text for one in left)
        yield Hindrance(f"EC2 refuses launches: {text}", fixes, min(one.since for one in left))


def _unanswered(node_class: EC2NodeClass) -> Iterator[Hindrance]:
    """A question about the class that AWS does not answer: no field of the class is wrong as far as that is known."""
    for one in node_class.status.conditions:
        text = f"EC2NodeClass {node_class.name}: {conditions.words(one)}"
        if one.status == conditions.FALSE and one.reason == profile_verdicts.ACCESS_DENIED:
            yield Hindrance(text, failures.IAM_FIX, one.last_transition_time, of_class=True)
        if one.type in _ASKED and one.status == conditions.UNKNOWN and one.reason != conditions.AWAITING:
            fix = "correct what the error names; kerf preflight checks the account and the permissions"
            yield Hindrance(text, fix, one.last_transition_time, of_class=True)


def _not_initialized(snapshot: Snapshot, pool: NodePool) -> Iterator[Hindrance]:
    for claim in sorted(snapshot.claims_by_pool.get(pool.name, ()), key=lambda one: one.name):
        late = joining.late_at(claim)
        broken = conditions.first_broken(claim.status.conditions, ("Initialized",))
        if late is not None and late <= snapshot.now and broken is not None:
            fix = f"kerf why nodeclaim {claim.name} shows the cause"
            words = f"the node of NodeClaim {claim.name} is not initialized: {conditions.words(broken)}"
            yield Hindrance(words, fix, broken.last_transition_time)
