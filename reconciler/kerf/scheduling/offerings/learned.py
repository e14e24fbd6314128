"""The differences between a Node and the plan that it was made by, field by field, and the facts that follow from them.

Facts of sizes (allocatable, attachable volumes) hold for the instance type with the image and the hash of the
EC2NodeClass; facts of traits (a taint that the NodePool does not declare, a label that never came) for the hash of the
NodePool, once two nodes have shown them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kerf.model import mismatches
from kerf.model.kubernetes.objects import Node
from kerf.model.mismatches import LABEL, TAINT, Size, Trait
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.resources import Resources
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import Taint
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

#: A fact about attachable volumes is a size with this prefix and the name of the driver.
_ALWAYS: Final = ("cpu", "memory", "ephemeral-storage", "pods")
ATTACHABLE: Final = "attachable/"
_OWN_TAINTS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", f"{labels.GROUP}/", f"{labels.KERF}/")


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of a Node that is other than planned."""

    field: str
    actual: str
    expected: str

    def __str__(self) -> str:
        return f"{self.field} is {self.actual}, expected {self.expected}"


def foreign_taints(claim: NodeClaim, node: Node) -> tuple[Taint, ...]:
    """Taints that keep pods off, and that neither the NodePool nor Kubernetes puts on nodes."""
    declared = (*claim.spec.taints, *claim.spec.startup_taints)
    return tuple(
        taint
        for taint in node.spec.taints
        if taint.effect in ("NoSchedule", "NoExecute")
        and not taint.key.startswith(_OWN_TAINTS)
        and not any(taint.matches(own) for own in declared)
    )


def differences(claim: NodeClaim, node: Node) -> tuple[Difference, ...]:
    """In the order: allocatable, taints, labels."""
    return (*_allocatable(claim, node), *_taints(claim, node), *_labels(claim, node))


def lacking(claim: NodeClaim, node: Node) -> Mapping[str, int]:
    """By resource, the allocatable of a Node where it is less than planned; of rare resources those that it needs."""
    expected, actual = Resources.parse(claim.status.allocatable), Resources.parse(node.status.allocatable)
    named = sorted(expected.keys() & {*_ALWAYS, *claim.requests()})
    return {name: actual[name] for name in named if actual[name] < expected[name]}


def missing_labels(claim: NodeClaim, node: Node) -> tuple[str, ...]:
    """The labels of a NodeClaim that its Node does not have."""
    return tuple(sorted(key for key in claim.metadata.labels if key not in node.metadata.labels))


def undeclared(taint: Taint) -> Difference:
    """A taint of a Node that no plan has."""
    return Difference("taint", str(taint), "none")


def missing(claim: NodeClaim, key: str) -> Difference:
    """A label of a NodeClaim that its Node does not have."""
    return Difference(f"label {key}", "missing", claim.metadata.labels[key] or '""')


def _allocatable(claim: NodeClaim, node: Node) -> Iterator[Difference]:
    expected, actual = claim.status.allocatable, node.status.allocatable
    for name in lacking(claim, node):
        yield Difference(f"allocatable {name}", str(actual.get(name, "0")), str(expected[name]))


def _taints(claim: NodeClaim, node: Node) -> Iterator[Difference]:
    yield from map(undeclared, foreign_taints(claim, node))


def _labels(claim: NodeClaim, node: Node) -> Iterator[Difference]:
    for key in missing_labels(claim, node):
        yield missing(claim, key)


# --- what Kerf learns of a node ---------------------------------------------------------------------------------
def size_of(snapshot: Snapshot, claim: NodeClaim, node: Node) -> Size | None:
    """The fact that a node teaches about its instance type; None when it has all that was planned."""
    csi = snapshot.csi_nodes.get(node.name)
    limits = {f"{ATTACHABLE}{driver}": most for driver, most in (csi.attachable if csi is not None else {}).items()}
    amounts = {**lacking(claim, node), **limits}
    type_ = node.metadata.labels.get(labels.INSTANCE_TYPE, "") or claim.metadata.labels.get(labels.INSTANCE_TYPE, "")
    hashed = claim.metadata.annotations.get(labels.NODECLASS_HASH, "")
    if not amounts or not type_ or not claim.status.image_id:
        return None
    return Size(instance_type=type_, image=claim.status.image_id, hash=hashed, amounts=amounts, at=snapshot.now)


def traits_of(snapshot: Snapshot, claim: NodeClaim, node: Node) -> Iterator[Trait]:
    hashed = claim.metadata.annotations.get(labels.NODEPOOL_HASH, "")
    rows = [(TAINT, str(taint)) for taint in foreign_taints(claim, node)]
    rows += [(LABEL, key) for key in missing_labels(claim, node)]
    for kind, text in rows:
        yield Trait(kind=kind, text=text, hash=hashed, nodes=(node.name,), at=snapshot.now)


# --- facts in use -----------------------------------------------------------------------------------------------
def sizes_for(snapshot: Snapshot, node_class: EC2NodeClass | None) -> Mapping[str, Mapping[str, int]]:
    """By instance type, the learned amounts that hold for a node class as it is now: the least that was seen."""
    facts = snapshot.class_facts.get(node_class.name) if node_class is not None else None
    if node_class is None or facts is None:
        return {}
    images = {image.id for image in facts.images}
    hashed = node_class.metadata.annotations.get(labels.NODECLASS_HASH, "")
    found: dict[str, dict[str, int]] = {}
    for size in _sizes(snapshot):
        if size.hash == hashed and size.image in images:
            own = found.setdefault(size.instance_type, {})
            for name, amount in size.amounts.items():
                own[name] = min(amount, own.get(name, amount))
    return found


def taints_for(snapshot: Snapshot, pool: NodePool) -> tuple[Taint, ...]:
    """Taints that nodes of a NodePool get although it does not declare them."""
    return tuple(taint for text in _traits(snapshot, pool, TAINT) if (taint := _taint(text)) is not None)


def labels_missing_for(snapshot: Snapshot, pool: NodePool) -> tuple[str, ...]:
    """Labels that nodes of a NodePool never get although it promises them."""
    return _traits(snapshot, pool, LABEL)


def _sizes(snapshot: Snapshot) -> Iterator[Size]:
    for name in sorted(snapshot.node_pools):
        pool = snapshot.node_pools[name]
        if labels.MISMATCHES in pool.metadata.annotations:
            yield from mismatches.believable(mismatches.remembered(pool), snapshot.now).sizes


def _traits(snapshot: Snapshot, pool: NodePool, kind: str) -> tuple[str, ...]:
    if labels.MISMATCHES not in pool.metadata.annotations:
        return ()
    hashed = pool.metadata.annotations.get(labels.NODEPOOL_HASH, "")
    known = mismatches.believable(mismatches.remembered(pool), snapshot.now).traits
    return tuple(t.text for t in known if t.kind == kind and t.hash == hashed and t.is_proven)


def _taint(text: str) -> Taint | None:
    """The reverse of a taint's text, `key=value:effect` or `key:effect`."""
    rest, colon, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return Taint(key=key, value=value, effect=effect) if colon and key else None
