"""The rules of the kube-scheduler about the volumes of a pod: bound claims, zones, attachments, exclusive use.

Source: Kubernetes, plugins VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone of the kube-scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.sandbox.api import selectors
from kerf.sandbox.api.api_server import ApiServer
from kerf.sandbox.scheduling import node_rules
from kerf.sandbox.scheduling.neighbours import Objection
from kerf.sandbox.scheduling.node_views import NodeView, NodeViews, Resident
from kerf.sandbox.scheduling.pod_requests import Manifest
from kerf_api.quantity import parse

#: The driver that makes EBS volumes, and what it was called while it was part of Kubernetes.
EBS, IN_TREE = "ebs.csi.aws.com", "kubernetes.io/aws-ebs"
BOUND = "pv.kubernetes.io/bind-completed"
_SELECTED = "volume.kubernetes.io/selected-node"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_GA = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_ZONAL = (*_GA, *_GA.values())
_LIMIT = "node(s) exceed max volume count"
_CONFLICT = "node(s) had no available disk"
_IN_USE = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(frozen=True, slots=True)
class _Used:
    """A claim that a pod uses; `own` says that the pod's volume makes the claim."""

    name: str
    own: bool


class VolumeRules:
    """See the module. Reads claims, volumes, classes and attachments from the API server."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def objections(self, pod: Manifest, nodes: NodeViews) -> list[Objection]:
        """The rules that hold for the volumes of this pod now."""
        used, disks = list(_used(pod)), _inline(pod)
        rules: list[Objection] = [lambda node, guests: _disk_conflict(disks, node, guests)] if disks else []
        if not used:
            return rules
        claims: list[tuple[_Used, Manifest]] = []
        for one in used:
            claim = self._find(kinds.PVC, pod["metadata"]["namespace"], one.name)
            if problem := _unusable(pod, one, claim):
                return [lambda _node, _guests: problem]
            claims.append((one, claim or {}))
        rules += [self._exclusive(pod, claims, nodes), self._limits(pod, [claim for _, claim in claims])]
        rules.append(self._reachable([claim for _, claim in claims]))
        return [*rules, self._zones([claim for one, claim in claims if not one.own])]

    # --- exclusive use --------------------------------------------------------------------------------------------
    def _exclusive(self, pod: Manifest, claims: Sequence[tuple[_Used, Manifest]], nodes: NodeViews) -> Objection:
        """A ReadWriteOncePod claim that a bound pod uses is closed to every other pod; nominated pods do not count."""
        names = {
            one.name for one, c in claims if not one.own and "ReadWriteOncePod" in (c["spec"].get("accessModes") or ())
        }
        namespace = pod["metadata"]["namespace"]

        def uses(other: Resident) -> bool:
            own = other.demand.namespace == namespace
            return own and any(one.name in names and not one.own for one in _used(other.manifest))

        taken = bool(names) and any(uses(other) for node in nodes.known() for other in node.pods.values())
        return lambda _node, _guests: _IN_USE if taken else ""

    # --- attachments ----------------------------------------------------------------------------------------------
    def _limits(self, pod: Manifest, claims: Sequence[Manifest]) -> Objection:
        attached = self._attached()

        def objection(node: NodeView, guests: Sequence[Resident]) -> str:
            csi_node = self._find(kinds.CSI_NODE, "", node.name)
            limits = _limits(csi_node)
            wanted = dict(filter(None, (self._attachment(claim, csi_node) for claim in claims)))
            if not limits or not wanted:
                return ""
            there = dict(
                row for other in (*node.pods.values(), *guests) for row in self._attachments(other.manifest, csi_node)
            )
            lingering = {key: driver for key, driver in attached.get(node.name, {}).items() if key not in there}
            counts = Counter([*there.values(), *lingering.values()])
            new = Counter(driver for key, driver in wanted.items() if key not in there)
            full = any(driver in limits and counts[driver] + more > limits[driver] for driver, more in new.items())
            return _LIMIT if full else ""

        return objection

    def _attachments(self, pod: Manifest, csi_node: Manifest | None) -> Iterator[tuple[str, str]]:
        for one in _used(pod):
            claim = self._find(kinds.PVC, pod["metadata"]["namespace"], one.name)
            row = self._attachment(claim, csi_node) if claim is not None else None
            if row is not None:
                yield row

    def _attachment(self, claim: Manifest, csi_node: Manifest | None) -> tuple[str, str] | None:
        """(unique name, driver) of the volume behind a claim; None if no driver counts it."""
        volume = self._find(kinds.PV, "", claim["spec"].get("volumeName") or "")
        if volume is None:
            storage = self._find(kinds.STORAGE_CLASS, "", _class_of(claim))
            driver = storage.get("provisioner", "") if storage is not None else ""
            driver = driver if driver != IN_TREE else EBS if csi_node is not None else ""
            return (
                (f"{driver}/new-{claim['metadata']['namespace']}/{claim['metadata']['name']}", driver)
                if driver
                else None
            )
        source, disk = volume["spec"].get("csi"), volume["spec"].get("awsElasticBlockStore")
        if source is not None and source.get("driver") and source.get("volumeHandle"):
            return f"{source['driver']}/{source['volumeHandle']}", source["driver"]
        if disk is not None and csi_node is not None:
            return f"{EBS}/{disk['volumeID'].rpartition('/')[2]}", EBS
        return None

    def _attached(self) -> dict[str, dict[str, str]]:
        """By node, the volumes that are attached there, with their drivers."""
        found: dict[str, dict[str, str]] = {}
        for record in self._server.records(kinds.VOLUME_ATTACHMENT):
            spec = record.manifest["spec"]
            volume = self._find(kinds.PV, "", spec["source"].get("persistentVolumeName") or "")
            handle = ((volume or {"spec": {}})["spec"].get("csi") or {}).get("volumeHandle")
            if handle and spec.get("attacher"):
                found.setdefault(spec["nodeName"], {})[f"{spec['attacher']}/{handle}"] = spec["attacher"]
        return found

    # --- bound and unbound claims ---------------------------------------------------------------------------------
    def _reachable(self, claims: Sequence[Manifest]) -> Objection:
        """Bound volumes have to be within reach of the node; the others have to be found or made there."""
        bound = [self._find(kinds.PV, "", c["spec"]["volumeName"]) for c in claims if _is_bound(c)]
        waiting = [c for c in claims if not _is_bound(c)]
        if any(c["spec"].get("volumeName") or not self._waits(c) for c in waiting):
            return lambda _node, _guests: _UNBOUND

        def objection(node: NodeView, _guests: Sequence[Resident]) -> str:
            if any(volume is None for volume in bound):
                return "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
            if not all(_within_reach(volume, node) for volume in bound if volume is not None):
                return "node(s) had volume node affinity conflict"
            return "" if self._bindable(waiting, node) else "node(s) didn't find available persistent volumes to bind"

        return objection

    def _waits(self, claim: Manifest) -> bool:
        storage = self._find(kinds.STORAGE_CLASS, "", _class_of(claim))
        return storage is not None and storage.get("volumeBindingMode") == "WaitForFirstConsumer"

    def _bindable(self, claims: Sequence[Manifest], node: NodeView) -> bool:
        taken: set[str] = set()
        for claim in sorted(claims, key=_size):
            chosen = (claim["metadata"].get("annotations") or {}).get(_SELECTED)
            if chosen is not None and chosen != node.name:
                return False
            volume = self.available(claim, node, taken) if chosen is None else None
            if volume is not None:
                taken.add(volume["metadata"]["name"])
            elif not self._provisions(claim, node):
                return False
        return True

    def available(self, claim: Manifest, node: NodeView, taken: Iterable[str] = ()) -> Manifest | None:
        """The smallest volume that waits for such a claim within reach of the node."""
        found: list[Manifest] = []
        for record in self._server.records(kinds.PV):
            volume, owner = record.manifest, record.manifest["spec"].get("claimRef")
            own = owner is not None and _owns(owner, claim)
            if volume["metadata"]["name"] in taken or (owner is not None and not own) or not _matches(claim, volume):
                continue
            if own:
                return volume if _within_reach(volume, node) else None
            free = (volume.get("status") or {}).get("phase") == "Available"
            if free and _suits(claim, volume) and _within_reach(volume, node):
                found.append(volume)
        return min(found, key=lambda volume: (_capacity(volume), volume["metadata"]["name"]), default=None)

    def _provisions(self, claim: Manifest, node: NodeView) -> bool:
        storage = self._find(kinds.STORAGE_CLASS, "", _class_of(claim))
        if storage is None or storage.get("provisioner", "") in ("", "kubernetes.io/no-provisioner"):
            return False
        terms = storage.get("allowedTopologies") or ()
        return not terms or any(
            all(node.labels.get(row["key"]) in row["values"] for row in term.get("matchLabelExpressions") or ())
            for term in terms
        )

    # --- zones ----------------------------------------------------------------------------------------------------
    def _zones(self, claims: Sequence[Manifest]) -> Objection:
        """Labels of a volume that name its zone or region bind as its node affinity does."""
        volumes = [self._find(kinds.PV, "", c["spec"]["volumeName"]) for c in claims if c["spec"].get("volumeName")]
        rows = [
            (key, set(value.split("__")))
            for volume in volumes
            for key, value in ((volume or {"metadata": {}})["metadata"].get("labels") or {}).items()
            if key in _ZONAL
        ]

        def objection(node: NodeView, _guests: Sequence[Resident]) -> str:
            if not any(key in node.labels for key in _ZONAL):
                return ""
            met = all(node.labels.get(key, node.labels.get(_GA.get(key, key))) in values for key, values in rows)
            return "" if met else "node(s) had no available volume zone"

        return objection

    def _find(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        record = self._server.find(kind, namespace, name) if name else None
        return record.manifest if record is not None else None


# --- pods and claims --------------------------------------------------------------------------------------------
def _used(pod: Manifest) -> Iterator[_Used]:
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim") is not None:
            yield _Used(volume["persistentVolumeClaim"]["claimName"], False)
        elif volume.get("ephemeral") is not None:
            yield _Used(f"{pod['metadata']['name']}-{volume['name']}", True)


def _inline(pod: Manifest) -> frozenset[str]:
    """EBS volumes that the pod names itself."""
    disks = (volume.get("awsElasticBlockStore") for volume in pod["spec"].get("volumes") or ())
    return frozenset(disk["volumeID"] for disk in disks if disk is not None)


def _disk_conflict(disks: frozenset[str], node: NodeView, guests: Sequence[Resident]) -> str:
    others = (*node.pods.values(), *guests)
    return _CONFLICT if any(disks & _inline(other.manifest) for other in others) else ""


def _unusable(pod: Manifest, used: _Used, claim: Manifest | None) -> str:
    """Why a claim keeps its pod from every node; empty if it does not."""
    if claim is None:
        return f'persistentvolumeclaim "{used.name}" not found'
    if (claim.get("status") or {}).get("phase") == "Lost":
        return f'persistentvolumeclaim "{used.name}" bound to non-existent persistentvolume'
    if "deletionTimestamp" in claim["metadata"]:
        return f'persistentvolumeclaim "{used.name}" is being deleted'
    owners = claim["metadata"].get("ownerReferences") or ()
    if used.own and not any(o.get("controller") and o.get("uid") == pod["metadata"]["uid"] for o in owners):
        return f'PersistentVolumeClaim "{used.name}" was not created for the pod'
    return ""


def _is_bound(claim: Manifest) -> bool:
    return bool(claim["spec"].get("volumeName")) and BOUND in (claim["metadata"].get("annotations") or {})


def _class_of(thing: Manifest) -> str:
    """The class of a claim or a volume."""
    annotations = thing["metadata"].get("annotations") or {}
    return str(annotations.get(_OLD_CLASS) or thing["spec"].get("storageClassName") or "")


# --- volumes ----------------------------------------------------------------------------------------------------
def _limits(csi_node: Manifest | None) -> dict[str, int]:
    drivers = (csi_node or {"spec": {}})["spec"].get("drivers") or ()
    rows = {driver["name"]: (driver.get("allocatable") or {}).get("count") for driver in drivers}
    return {name: count for name, count in rows.items() if count is not None}


def _within_reach(volume: Manifest, node: NodeView) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or node_rules.any_term(required.get("nodeSelectorTerms") or (), None, node.labels)


def _owns(owner: Mapping[str, str], claim: Manifest) -> bool:
    meta = claim["metadata"]
    same = (owner.get("namespace"), owner.get("name")) == (meta["namespace"], meta["name"])
    return same and owner.get("uid", meta["uid"]) in ("", meta["uid"])


def _size(claim: Manifest) -> Fraction:
    return parse(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _capacity(volume: Manifest) -> Fraction:
    return parse((volume["spec"].get("capacity") or {}).get("storage", "0"))


def _matches(claim: Manifest, volume: Manifest) -> bool:
    modes = [thing["spec"].get("volumeMode") or "Filesystem" for thing in (claim, volume)]
    return _capacity(volume) >= _size(claim) and modes[0] == modes[1] and "deletionTimestamp" not in volume["metadata"]


def _suits(claim: Manifest, volume: Manifest) -> bool:
    selector = claim["spec"].get("selector")
    labels = volume["metadata"].get("labels") or {}
    modes = set(claim["spec"].get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ())
    return modes and _class_of(claim) == _class_of(volume) and (selector is None or selectors.selects(selector, labels))
