"""Where a pod's volumes can be: bound ones where their PersistentVolume is, others where their class may make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kerf.model.kubernetes.objects import NodeSelectorTerm, Pod
from kerf.model.kubernetes.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from tests.referee.places import Place
from tests.referee.selecting import expressions_hold

_OLD, _LEVELS = "failure-domain.beta.kubernetes.io", ("zone", "region")
_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def problems(snapshot: Snapshot, pod: Pod, node_labels: Mapping[str, str]) -> Iterator[str]:
    """Why the pod's volumes cannot be had on a node with these labels."""
    made = {f"{pod.metadata.name}-{volume.name}" for volume in pod.spec.volumes if volume.ephemeral is not None}
    for name, wanted in claims_of(pod):
        claim = snapshot.volume_claims.get(f"{pod.metadata.namespace}/{name}")
        if claim is None and name not in made:
            yield f"there is no volume claim {name}"
        elif claim is not None and claim.metadata.deleting:
            yield f"the volume claim {name} is being deleted"
        elif claim is not None and claim.status.phase == "Lost":
            yield f"the volume of the claim {name} is lost"
        elif claim is not None and claim.spec.volume_name:
            yield from _bound(snapshot, claim, node_labels)
        else:
            old = "volume.beta.kubernetes.io/storage-class"
            if claim is not None:
                wanted = claim.metadata.annotations.get(old, claim.spec.storage_class_name)
            yield from _unbound(snapshot, name, wanted, node_labels)


def claims_of(pod: Pod) -> Iterator[tuple[str, str | None]]:
    """The names of a pod's claims; of an ephemeral volume also the class that its pod asks for."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name, None
        elif volume.ephemeral is not None:
            wanted = volume.ephemeral.volume_claim_template.spec.storage_class_name
            yield f"{pod.metadata.name}-{volume.name}", wanted


def _bound(snapshot: Snapshot, claim: PersistentVolumeClaim, node_labels: Mapping[str, str]) -> Iterator[str]:
    volume = snapshot.volumes.get(claim.spec.volume_name)
    if volume is None or volume.metadata.deleting:
        yield f"there is no volume {claim.spec.volume_name}"
        return
    if "pv.kubernetes.io/bind-completed" not in claim.metadata.annotations:
        yield f"the volume claim {claim.metadata.name} is not bound yet to the volume that it names"
    if any(not _allows(key, text, node_labels) for key, text in volume.metadata.labels.items()):
        yield f"the volume {claim.spec.volume_name} is labelled with another place"
    required = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    if required is not None and not any(_admits(volume, term, node_labels) for term in required.node_selector_terms):
        yield f"the volume {claim.spec.volume_name} is elsewhere"


def _allows(key: str, text: str, node_labels: Mapping[str, str]) -> bool:
    """Whether one label of a volume lets the node have it: of its zone or region, in the old spelling or the new."""
    where, separator, what = key.partition("/")
    if not separator or what not in ("zone", "region") or where not in ("topology.kubernetes.io", _OLD):
        return True
    named = {one.strip() for one in text.split("__")}
    nowhere = node_labels.keys().isdisjoint(f"{d}/{w}" for d in ("topology.kubernetes.io", _OLD) for w in _LEVELS)
    return "" in named or nowhere or node_labels.get(key, node_labels.get(f"topology.kubernetes.io/{what}")) in named


def _admits(volume: PersistentVolume, term: NodeSelectorTerm, node_labels: Mapping[str, str]) -> bool:
    """Whether a term of its affinity does: one that asks for nothing does not, and nobody reads its fields.

    A volume that is part of a node binds nobody to that node: its pods move without it, as Karpenter has it.
    """
    if not term.match_expressions and not term.match_fields:
        return False
    of_node = volume.spec.local is not None or volume.spec.host_path is not None
    read = (e for e in term.match_expressions if not (of_node and e.key == labels.HOSTNAME))
    return expressions_hold(read, node_labels)


def shared(snapshot: Snapshot, places: Iterable[Place]) -> Iterator[str]:
    """Claims for one pod that a pod is to use beside another, wherever the two are."""
    users: dict[str, list[tuple[str, bool]]] = {}
    for place in places:
        for pods, comes in ((place.coming, True), (place.staying, False), (place.leaving, False)):
            for pod in (one for one in pods if one.spec.volumes):
                for volume in pod.spec.volumes:
                    if volume.persistent_volume_claim is not None:
                        key = f"{pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
                        users.setdefault(key, []).append((pod.key, comes))
    for key, found in users.items():
        claim = snapshot.volume_claims.get(key)
        alone = claim is not None and "ReadWriteOncePod" in claim.spec.access_modes
        if alone and len(found) > 1 and any(comes for _, comes in found):
            yield f"{key} is for one pod, and used by {' and '.join(sorted(name for name, _ in found))}"


def _unbound(snapshot: Snapshot, name: str, wanted: str | None, node_labels: Mapping[str, str]) -> Iterator[str]:
    found = storage_class(snapshot, wanted)
    if found is None:
        yield f"the volume claim {name} has no storage class"
    elif found.volume_binding_mode != "WaitForFirstConsumer":
        yield f"the volume claim {name} is to be bound before its pod has a node"
    elif found.allowed_topologies and not any(
        all(node_labels.get(labels.normalise(e.key)) in e.values for e in term.match_label_expressions)
        for term in found.allowed_topologies
    ):
        yield f"the storage class {found.metadata.name} makes no volumes there"


def storage_class(snapshot: Snapshot, wanted: str | None) -> StorageClass | None:
    """The class of this name; the newest default one for who names none."""
    if wanted is not None:
        return snapshot.storage_classes.get(wanted)
    marked = [c for c in snapshot.storage_classes.values() if c.metadata.annotations.get(_DEFAULT) == "true"]
    return max(marked, key=_age, default=None)


def _age(one: StorageClass) -> tuple[float, str]:
    made = one.metadata.creation_timestamp
    return (made.timestamp() if made is not None else 0.0), one.metadata.name
