"""How many volumes a node can attach: each driver says so in the node's CSINode; a volume counts once on a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.storage import PersistentVolumeClaim
from kerf.model.snapshot import Snapshot
from tests.referee.places import Place
from tests.referee.volumes import claims_of, storage_class

EBS = "ebs.csi.aws.com"


def problems(snapshot: Snapshot, place: Place) -> Iterator[str]:
    """The drivers whose limit the coming pods break. What is there already may be too much, if they bring no more."""
    found = snapshot.csi_nodes.get(place.name) if place.name in snapshot.nodes else None
    there = _volumes(snapshot, [*place.staying, *place.leaving])
    together = there | _volumes(snapshot, place.coming)
    for driver in found.spec.drivers if found is not None else ():
        most = driver.allocatable.count if driver.allocatable is not None else None
        before = sum(name == driver.name for _, name in there)
        after = sum(name == driver.name for _, name in together)
        if most is not None and after > max(most, before):
            yield f"{after} volumes of {driver.name} where {most} can be"


def _volumes(snapshot: Snapshot, pods: Iterable[Pod]) -> set[tuple[str, str]]:
    """The claims of these pods, each with the driver that attaches its volume."""
    found = set[tuple[str, str]]()
    for pod in pods:
        for name, wanted in claims_of(pod):
            key = f"{pod.metadata.namespace}/{name}"
            driver = _driver(snapshot, snapshot.volume_claims.get(key), wanted)
            if driver:
                found.add((key, driver))
    return found


def _driver(snapshot: Snapshot, claim: PersistentVolumeClaim | None, wanted: str | None) -> str:
    if claim is not None and claim.spec.volume_name in snapshot.volumes:
        spec = snapshot.volumes[claim.spec.volume_name].spec
        if spec.csi is not None:
            return spec.csi.driver
        return EBS if spec.aws_elastic_block_store is not None else ""
    found = storage_class(snapshot, wanted if claim is None else claim.spec.storage_class_name)
    made_by = found.provisioner if found is not None else ""
    return EBS if made_by == "kubernetes.io/aws-ebs" else made_by
