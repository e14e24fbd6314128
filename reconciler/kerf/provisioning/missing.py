"""Objects that a pod or a NodePool names and that are missing or not ready: no edit of Kerf's makes them right.

Each becomes a cause and a patch without values: create the object, or correct a field whose right value only the user
knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.storage import OLD_CLASS, PersistentVolumeClaim
from kerf.model.snapshot import Snapshot
from kerf.provisioning import contradictions, hindrances
from kerf.provisioning.contradictions import CLASS_NAME, REQUIREMENTS
from kerf.scheduling.answers.patches import (
    CORRECT,
    CREATE,
    EDIT,
    WAIT,
    Cause,
    Field,
    FieldRef,
    Patch,
    owner_ref,
    within,
)
from kerf.scheduling.offerings.stock import OUT_OF_STOCK
from kerf.scheduling.refusals.spelling import near
from kerf_api import labels
from kerf_api.v1 import conditions
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.nodepool import NodePool

#: The field of an EC2NodeClass that each of its conditions is about.
_FIELDS: Final[Mapping[str, str]] = {
    "AMIsReady": "spec.amiSelectorTerms",
    "SubnetsReady": "spec.subnetSelectorTerms",
    "SecurityGroupsReady": "spec.securityGroupSelectorTerms",
    "InstanceProfileReady": "spec.role",
    "CapacityReservationsReady": "spec.capacityReservationSelectorTerms",
    "PlacementGroupReady": "spec.placementGroupSelector",
}
#: By operating system, an alias whose images have it.
_IMAGES: Final[Mapping[str, str]] = {"linux": "al2023@latest", "windows": "windows2022@latest"}


# --- what a pod names -------------------------------------------------------------------------------------------
def cause_of(snapshot: Snapshot, pod: Pod) -> Cause | None:
    """The first object that the pod names and that is missing."""
    found = next(_absent(snapshot, pod), None)
    return found[0] if found is not None else None


def patches_of(snapshot: Snapshot, pod: Pod) -> tuple[Patch, ...]:
    """What to create for that."""
    found = next(_absent(snapshot, pod), None)
    return (found[1],) if found is not None else ()


def gates(pod: Pod) -> tuple[Cause, Patch]:
    """Of a pod with scheduling gates."""
    ref = owner_ref(pod, "spec.schedulingGates")
    names = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    text = f"the pod: remove its scheduling gates ({names}), or wait for the controller that removes them"
    return Cause(f"its scheduling gates: {names}", (ref,)), Patch(EDIT, ref.kind, ref.name, text, (Field(ref.path),))


def _absent(snapshot: Snapshot, pod: Pod) -> Iterator[tuple[Cause, Patch]]:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            key = f"{pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
            claim = snapshot.volume_claims.get(key)
            if claim is None:
                yield _to_create("PersistentVolumeClaim", key, owner_ref(pod, "spec.volumes"))
            elif not claim.spec.volume_name:
                yield from _without_class(snapshot, claim, key)
    name = pod.spec.node_selector.get(labels.NODEPOOL)
    if name is not None and name not in snapshot.node_pools:
        named_by, meant = owner_ref(pod, within("spec.nodeSelector", labels.NODEPOOL)), near(name, snapshot.node_pools)
        yield _to_create("NodePool", name, named_by, meant)


def _without_class(snapshot: Snapshot, claim: PersistentVolumeClaim, key: str) -> Iterator[tuple[Cause, Patch]]:
    name, old = claim.class_name, OLD_CLASS in claim.metadata.annotations
    if name and name not in snapshot.storage_classes:  # the empty one asks for no class
        path = within("metadata.annotations", OLD_CLASS) if old else "spec.storageClassName"
        yield _to_create("StorageClass", name, FieldRef("PersistentVolumeClaim", key, path))


def _to_create(kind: str, name: str, named_by: FieldRef, meant: str | None = None) -> tuple[Cause, Patch]:
    """The object that does not exist, and the field that names it; `meant` is an object with almost that name."""
    cause = Cause(
        f"{kind} {name} does not exist: {named_by.kind} {named_by.name} names it", (FieldRef(kind, name), named_by)
    )
    hint = f" (did you mean {meant}?)" if meant is not None else ""
    text = f"create {kind} {name}, or correct {named_by.path} of {named_by.kind} {named_by.name}{hint}"
    return cause, Patch(CREATE, kind, name, text)


def without_pools(snapshot: Snapshot) -> tuple[Cause, Patch] | None:
    """The cause where there is no NodePool to make nodes from; a Snapshot has none of another controller."""
    if any(pool.managed for pool in snapshot.node_pools.values()):
        return None
    text = "create a NodePool whose nodeClassRef names an EC2NodeClass; Kerf ignores NodePools of other controllers"
    return Cause("there is no NodePool that Kerf manages", ()), Patch(CREATE, "NodePool", "", text)


def patches_of_system(pod: Pod, pool: str) -> tuple[Patch, ...]:
    """The NodePool to create for a pod whose operating system no node of the likeliest NodePool has."""
    wanted = next((v for key, v in pod.spec.node_selector.items() if labels.normalise(key) == labels.OS), "")
    example = _IMAGES.get(wanted)
    if example is None:
        return ()
    system = wanted.capitalize()
    text = f"create a NodePool with an EC2NodeClass for {system} (spec.amiSelectorTerms with alias {example})"
    return (Patch(CREATE, "NodePool", "", f"{text}; NodePool {pool} has nodes of another operating system"),)


# --- what a NodePool names --------------------------------------------------------------------------------------
def cause_of_pool(snapshot: Snapshot, pool: NodePool, verdict: str) -> Cause:
    """Of a NodePool that no node can be made from, whatever the pod."""
    found = next(hindrances.of(snapshot, pool), None)
    if found is not None:
        return Cause(f"NodePool {pool.name}: {found.text}", (FieldRef("NodePool", pool.name),))
    contrary = _contrary(snapshot, pool)
    if contrary is not None:
        return Cause(f"NodePool {pool.name}: {contrary.text}", contrary.fields)
    return Cause(f"NodePool {pool.name}: {verdict}", tuple(_refs(snapshot, pool)))


def patches_of_pool(snapshot: Snapshot, pool: NodePool, verdict: str) -> tuple[Patch, ...]:
    """What a user has to set right; nothing for a NodePool that is being deleted."""
    if pool.metadata.deleting or pool.static:
        return ()
    found = next(hindrances.of(snapshot, pool), None)
    if found is not None:
        return (Patch(CORRECT, "NodePool", pool.name, f"for NodePool {pool.name}: {found.fix}"),)
    if OUT_OF_STOCK in verdict:
        text = f"wait until EC2 has capacity again, or allow more in {REQUIREMENTS} of NodePool {pool.name}"
        return (Patch(WAIT, "NodePool", pool.name, text),)
    contrary = _contrary(snapshot, pool)
    if contrary is not None:
        return (_to_resolve(snapshot, pool, contrary),)
    ref = next(_refs(snapshot, pool), None)
    if ref is None:
        text = f"NodePool {pool.name}: wait until it is ready"
        return (Patch(WAIT, "NodePool", pool.name, text),)
    return (Patch(CORRECT, ref.kind, ref.name, f"{ref.kind} {ref.name}: correct {ref.path}", (Field(ref.path),)),)


def _contrary(snapshot: Snapshot, pool: NodePool) -> contradictions.Contradiction | None:
    """What leaves the NodePool no instance type, where its conditions report nothing."""
    if pool.metadata.deleting or pool.static or (pool.class_name in snapshot.node_classes and not _ready(pool)):
        return None
    return contradictions.of(snapshot, pool)


def _to_resolve(snapshot: Snapshot, pool: NodePool, contrary: contradictions.Contradiction) -> Patch:
    if contrary.missing_class and snapshot.node_classes:
        text = f"NodePool {pool.name}: correct {CLASS_NAME}, or create EC2NodeClass {contrary.missing_class}"
        return Patch(CORRECT, "NodePool", pool.name, text, (Field(CLASS_NAME),))
    if contrary.missing_class:
        text = f"create EC2NodeClass {contrary.missing_class}, or correct {CLASS_NAME} of NodePool {pool.name}"
        return Patch(CREATE, "EC2NodeClass", contrary.missing_class, text)
    if contrary.passes:
        return Patch(WAIT, "NodePool", pool.name, f"for NodePool {pool.name}: {contrary.fix}")
    first = contrary.fields[0]
    text = ", or ".join(f"{one.kind} {one.name}: correct {one.path}" for one in contrary.fields)
    return Patch(CORRECT, first.kind, first.name, text, (Field(first.path),))


def _ready(pool: NodePool) -> bool:
    ready = conditions.get(pool.status.conditions, conditions.READY)
    return ready is not None and ready.status == conditions.TRUE


def _refs(snapshot: Snapshot, pool: NodePool) -> Iterator[FieldRef]:
    node_class = snapshot.node_classes.get(pool.class_name)
    if node_class is None:
        yield FieldRef("NodePool", pool.name, CLASS_NAME)
        yield FieldRef("EC2NodeClass", pool.class_name)
        return
    broken = list(_of_class(node_class))
    yield from broken
    if not broken and _ready(pool):
        yield FieldRef("NodePool", pool.name, REQUIREMENTS)


def _of_class(node_class: EC2NodeClass) -> Iterator[FieldRef]:
    for one in node_class.status.conditions:
        if one.status == conditions.FALSE and one.type in _FIELDS:
            yield FieldRef("EC2NodeClass", node_class.name, _FIELDS[one.type])
