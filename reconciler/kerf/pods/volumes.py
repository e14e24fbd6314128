"""What a pod's volumes demand of its node: alternatives, each a set of requirements; and why a volume cannot be had.

Also which storage driver attaches each of them. Source: scheduling reference §7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kerf.model.snapshot import Snapshot
from kerf.pods.requirements import contradicts, filled, term_requirements
from kerf_api import labels
from kerf_api.requirements import DOES_NOT_EXIST, EMPTY, IN, Requirements, requirement

#: A volume as its driver sees it: the driver's name, and the key of the claim by which pods ask for the volume.
Attachment = tuple[str, str]

#: Cross products of volumes' alternatives are cut here; no region has more zones.
_MOST_ALTERNATIVES = 64
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
#: Kubernetes says so of a claim once the claim and its volume name each other.
_BOUND = "pv.kubernetes.io/bind-completed"
_EBS = "ebs.csi.aws.com"
#: The labels of a PersistentVolume that bind it to nodes, and how nodes spell them; several values have `__` between.
_PLACES = {
    labels.ZONE: labels.ZONE,
    labels.REGION: labels.REGION,
    "failure-domain.beta.kubernetes.io/zone": labels.ZONE,
    "failure-domain.beta.kubernetes.io/region": labels.REGION,
}
#: Provisioners that were part of Kubernetes, and the drivers that serve their volumes now.
_MIGRATED = {
    "kubernetes.io/aws-ebs": _EBS,
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}


def volume_demands(snapshot: Snapshot, pod: Pod) -> tuple[Requirements, ...]:
    """The alternatives of a pod's volumes together; `(EMPTY,)` when they demand nothing.

    Raises ValueError, with words for a person, when a volume is missing, lost, going, or must be bound first.
    """
    alternatives: tuple[Requirements, ...] = (EMPTY,)
    for name, class_name, is_ephemeral in _claims(pod):
        own = _alternatives(snapshot, pod, name, class_name, is_ephemeral)
        pairs = [(a, b) for a in alternatives for b in own]
        good = [a & b for a, b in pairs if a.conflict(b) is None]
        if not good:
            raise ValueError(f'persistentvolumeclaim "{name}" and its other volumes have no node in common')
        alternatives = tuple(good[:_MOST_ALTERNATIVES])
    return alternatives


def attachments(snapshot: Snapshot, pod: Pod) -> frozenset[Attachment]:
    """The volumes that some driver attaches to the pod's node. What cannot be found is not among them."""
    found: set[Attachment] = set()
    for name, class_name, _ in _claims(pod):
        key = f"{pod.metadata.namespace}/{name}"
        driver = _driver(snapshot, snapshot.volume_claims.get(key), class_name)
        if driver:
            found.add((driver, key))
    return frozenset(found)


def _claims(pod: Pod) -> Iterator[tuple[str, str | None, bool]]:
    """Claim names of a pod with, for ephemeral volumes, the storage class."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name, None, False
        elif volume.ephemeral is not None:
            template = volume.ephemeral.volume_claim_template
            yield f"{pod.metadata.name}-{volume.name}", template.spec.storage_class_name, True


# --- where volumes can be -----------------------------------------------------------------------------------------
def _alternatives(
    snapshot: Snapshot, pod: Pod, name: str, class_name: str | None, is_ephemeral: bool
) -> tuple[Requirements, ...]:
    claim = snapshot.volume_claims.get(f"{pod.metadata.namespace}/{name}")
    if claim is None and not is_ephemeral:
        raise ValueError(f'persistentvolumeclaim "{name}" not found')
    if claim is not None:
        _check(claim)
        if is_ephemeral and not _made_for(claim, pod):
            raise ValueError(
                f'persistentvolumeclaim "{name}" was not created for the pod: delete the claim or rename the volume'
            )
        if claim.spec.volume_name:
            return _of_volume(snapshot, claim)
    wanted = claim.class_name if claim is not None else class_name
    return _of_class(_storage_class(snapshot, wanted), wanted, name)


def _made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim of an ephemeral volume is the pod's own."""
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


def _check(claim: PersistentVolumeClaim) -> None:
    """Raises ValueError when the claim will give its pod no volume, or when the volume is not known yet."""
    meta, words = claim.metadata, f'persistentvolumeclaim "{claim.metadata.name}"'
    if meta.unreadable:
        raise ValueError(f"{words} cannot be read: {meta.unreadable}")
    if meta.deleting:
        raise ValueError(f"{words} is being deleted")
    volume = claim.spec.volume_name
    if claim.status.phase == "Lost":
        raise ValueError(f'{words} has lost its volume "{volume}": restore the volume, or delete the claim')
    if volume and _BOUND not in meta.annotations:
        raise ValueError(f'{words} is not bound to its volume "{volume}" yet')


def _of_volume(snapshot: Snapshot, claim: PersistentVolumeClaim) -> tuple[Requirements, ...]:
    volume = snapshot.volumes.get(claim.spec.volume_name)
    if volume is None or volume.metadata.deleting:
        raise ValueError(f'persistentvolume "{claim.spec.volume_name}" is missing or being deleted')
    places = _labelled(volume)
    found = [place & term for term in _affinity_terms(volume) for place in places if place.conflict(term) is None]
    if not found:
        raise ValueError(
            f'persistentvolume "{claim.spec.volume_name}" can be on no node: its node affinity has no match'
        )
    return tuple(found)


def _affinity_terms(volume: PersistentVolume) -> list[Requirements]:
    """The alternatives of its node affinity; an empty term selects no node."""
    required = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    if required is None:
        return [EMPTY]
    # the kube-scheduler compares a volume with labels alone
    found = [term_requirements(term).without(labels.NAME_FIELD) for term in filled(required.node_selector_terms)]
    return [term.without(labels.HOSTNAME) for term in found] if _is_local(volume) else found


def _labelled(volume: PersistentVolume) -> tuple[Requirements, ...]:
    """The nodes that its labels of zone and region allow: those with the same labels, and those that have none at all.

    A label with an empty value among its values counts for nothing. Source: the kube-scheduler's plugin VolumeZone.
    """
    rows = []
    for key in sorted(volume.metadata.labels.keys() & _PLACES.keys()):
        values = [value.strip() for value in volume.metadata.labels[key].split("__")]
        if all(values):
            rows.append(requirement(_PLACES[key], IN, values))
    if not rows:
        return (EMPTY,)
    none = Requirements(requirement(key, DOES_NOT_EXIST, ()) for key in (labels.ZONE, labels.REGION))
    together = Requirements(rows)
    return (none,) if contradicts(rows, together) else (together, none)


def _is_local(volume: PersistentVolume) -> bool:
    """A volume of the node itself (`local`, `hostPath`): a new node has its own."""
    return volume.spec.local is not None or volume.spec.host_path is not None


def _of_class(found: StorageClass | None, wanted: str | None, claim_name: str) -> tuple[Requirements, ...]:
    if found is None:
        why = "there is no default StorageClass" if wanted is None else f'"{wanted}" not found'
        raise ValueError(f'persistentvolumeclaim "{claim_name}" has no storage class ({why})')
    if found.volume_binding_mode != "WaitForFirstConsumer":
        raise ValueError(
            f'persistentvolumeclaim "{claim_name}" must be bound first (its StorageClass binds immediately)'
        )
    terms = [
        Requirements(requirement(e.key, IN, e.values) for e in term.match_label_expressions)
        for term in found.allowed_topologies
    ]
    return tuple(terms) or (EMPTY,)


# --- classes and drivers ------------------------------------------------------------------------------------------
def _storage_class(snapshot: Snapshot, wanted: str | None) -> StorageClass | None:
    """The class of this name; of a claim that names none (None) the default one."""
    return snapshot.storage_classes.get(_default_class(snapshot.storage_classes.values()) if wanted is None else wanted)


def _default_class(classes: Iterable[StorageClass]) -> str:
    """The newest class that is marked as default; empty when there is none."""
    marked = [c for c in classes if c.metadata.annotations.get(_DEFAULT_CLASS) == "true"]
    ages = {c.metadata.name: c.metadata.creation_timestamp for c in marked}
    ordered = sorted(ages, key=lambda n: (((t := ages[n]) is not None and t.timestamp()) or 0.0, n))
    return ordered[-1] if ordered else ""


def _driver(snapshot: Snapshot, claim: PersistentVolumeClaim | None, class_name: str | None) -> str:
    """The driver of a claim's volume: the volume's own, or the one that its class makes volumes with; else empty."""
    if claim is not None:
        volume = snapshot.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            in_tree = _EBS if volume.spec.aws_elastic_block_store is not None else ""
            return volume.spec.csi.driver if volume.spec.csi is not None else in_tree
        class_name = claim.class_name
    found = _storage_class(snapshot, class_name)
    return _MIGRATED.get(found.provisioner, found.provisioner) if found is not None else ""
