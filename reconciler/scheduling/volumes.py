"""What a pod's volumes demand of its node: alternatives, each a set of requirements; and why a volume cannot be had.

Source: scheduling reference §7.1 and §7.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from api import labels
from api.requirements import EMPTY, IN, Requirements, requirement
from reconciler.model.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from reconciler.model.snapshot import Snapshot
from reconciler.scheduling.requirements_of import term_requirements

#: Cross products of volumes' alternatives are cut here; nobody has more zones.
_MOST_ALTERNATIVES = 64
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def volume_demands(snapshot: Snapshot, pod: Pod) -> tuple[Requirements, ...]:
    """The alternatives of a pod's volumes together; `(EMPTY,)` when they demand nothing.

    Raises ValueError, with words for a person, when a volume is missing, going, or must be bound first.
    """
    alternatives: tuple[Requirements, ...] = (EMPTY,)
    for name, class_name, is_ephemeral in _claims(pod):
        own = _alternatives(snapshot, pod, name, class_name, is_ephemeral)
        pairs = [(a, b) for a in alternatives for b in own]
        good = [a & b for a, b in pairs if a.conflict(b) is None]
        alternatives = tuple(good[:_MOST_ALTERNATIVES] or [a & b for a, b in pairs[:1]])
    return alternatives


def _claims(pod: Pod) -> Iterator[tuple[str, str | None, bool]]:
    """Claim names of a pod with, for ephemeral volumes, the storage class."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name, None, False
        elif volume.ephemeral is not None:
            template = volume.ephemeral.volume_claim_template
            yield f"{pod.metadata.name}-{volume.name}", template.spec.storage_class_name, True


def _alternatives(
    snapshot: Snapshot, pod: Pod, name: str, class_name: str | None, is_ephemeral: bool
) -> tuple[Requirements, ...]:
    claim = snapshot.volume_claims.get(f"{pod.metadata.namespace}/{name}")
    if claim is None and not is_ephemeral:
        raise ValueError(f'persistentvolumeclaim "{name}" not found')
    if claim is not None and claim.metadata.unreadable:
        raise ValueError(f'persistentvolumeclaim "{name}" cannot be read: {claim.metadata.unreadable}')
    if claim is not None and claim.metadata.deleting:
        raise ValueError(f'persistentvolumeclaim "{name}" is being deleted')
    if claim is not None and claim.spec.volume_name:
        return _of_volume(snapshot, claim)
    wanted = claim.spec.storage_class_name if claim is not None else class_name
    return _of_class(_storage_class(snapshot, wanted, name), name)


def _of_volume(snapshot: Snapshot, claim: PersistentVolumeClaim) -> tuple[Requirements, ...]:
    volume = snapshot.volumes.get(claim.spec.volume_name)
    if volume is None or volume.metadata.deleting:
        raise ValueError(f'persistentvolume "{claim.spec.volume_name}" is missing or being deleted')
    required = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    terms = required.node_selector_terms if required is not None else ()
    found = (term_requirements(term) for term in terms)
    return tuple(t.without(labels.HOSTNAME) if _is_local(volume) else t for t in found) or (EMPTY,)


def _is_local(volume: PersistentVolume) -> bool:
    """A volume of the node itself (`local`, `hostPath`): a new node has its own."""
    return volume.spec.local is not None or volume.spec.host_path is not None


def _storage_class(snapshot: Snapshot, wanted: str | None, claim_name: str) -> StorageClass:
    if wanted is None:
        wanted = _default_class(snapshot.storage_classes.values())
    found = snapshot.storage_classes.get(wanted)
    if found is None:
        raise ValueError(f'persistentvolumeclaim "{claim_name}" has no storage class ("{wanted}" not found)')
    return found


def _default_class(classes: Iterable[StorageClass]) -> str:
    """The newest class that is marked as default; empty when there is none."""
    marked = [c for c in classes if c.metadata.annotations.get(_DEFAULT_CLASS) == "true"]
    ages = {c.metadata.name: c.metadata.creation_timestamp for c in marked}
    ordered = sorted(ages, key=lambda n: (((t := ages[n]) is not None and t.timestamp()) or 0.0, n))
    return ordered[-1] if ordered else ""


def _of_class(storage_class: StorageClass, claim_name: str) -> tuple[Requirements, ...]:
    if storage_class.volume_binding_mode != "WaitForFirstConsumer":
        raise ValueError(f'persistentvolumeclaim "{claim_name}" must be bound first (its class binds immediately)')
    terms = [
        Requirements(requirement(e.key, IN, e.values) for e in term.match_label_expressions)
        for term in storage_class.allowed_topologies
    ]
    return tuple(terms) or (EMPTY,)
