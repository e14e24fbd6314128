"""The context of solves: what is remembered of nodes and pods between turns is what would be read anew.

Nodes, their claims and pods come, change and go in any order, malformed ones among them, while time passes.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kerf.model import kinds
from kerf.model.cluster import Cluster
from kerf.model.kubernetes.objects import (
    Affinity,
    ClaimSource,
    Container,
    ContainerPort,
    LabelSelector,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    ResourceNeeds,
    Volume,
)
from kerf.model.kubernetes.storage import (
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSISource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeNodeResources,
)
from kerf.model.memory import Memory
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.scheduling.nodes.existing import ExistingNode
from kerf.scheduling.solve import context_of
from kerf_api import labels
from kerf_api.v1.meta import Condition, NodeClassRef, ObjectMeta, OwnerReference, Taint
from kerf_api.v1.nodeclaim import NodeClaim, NodeClaimSpec, NodeClaimStatus
from kerf_api.v1.nodepool import Disruption, NodePool, NodePoolSpec, Template, TemplateSpec

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NAMES = ("a", "b", "c")
SHUNS = Affinity(
    pod_anti_affinity=PodAffinity(
        required=(PodAffinityTerm(label_selector=LabelSelector(), topology_key=labels.HOSTNAME),)
    )
)


@st.composite
def pods(draw: st.DrawFn, version: int) -> Pod:
    requests = draw(st.sampled_from(({}, {"cpu": "100m"}, {"cpu": "2", "memory": "1Gi"}, {"cpu": "lots"})))
    ports = draw(st.sampled_from(((), (ContainerPort(container_port=80, host_port=80),))))
    owner = draw(st.sampled_from(((), (OwnerReference(api_version="apps/v1", kind="DaemonSet", name="d"),))))
    meta = ObjectMeta(
        name=draw(st.sampled_from(NAMES)),
        namespace="default",
        uid=f"uid-{version}",
        resource_version=str(version),
        owner_references=owner,
        creation_timestamp=NOW + draw(st.integers(0, 2)) * SECOND,
        deletion_timestamp=draw(st.sampled_from((None, None, NOW))),
    )
    spec = PodSpec(
        node_name=draw(st.sampled_from(("", *NAMES))),
        containers=(Container(name="c", resources=ResourceNeeds(requests=requests), ports=ports),),
        affinity=draw(st.sampled_from((None, SHUNS))),
        volumes=draw(st.sampled_from(((), (Volume(persistent_volume_claim=ClaimSource(claim_name="a")),)))),
    )
    return Pod(metadata=meta, spec=spec, status=PodStatus(phase=draw(st.sampled_from(("Running", "Failed")))))


@st.composite
def nodes(draw: st.DrawFn, version: int) -> Node:
    name = draw(st.sampled_from(NAMES))
    meta = ObjectMeta(
        name=name,
        uid=f"uid-{version}",
        resource_version=str(version),
        labels=draw(
            st.sampled_from(({}, {labels.NODEPOOL: "p", labels.REGISTERED: "true", labels.INITIALIZED: "true"}))
        ),
    )
    spec = NodeSpec(
        provider_id=draw(st.sampled_from(("", name))),
        unschedulable=draw(st.sampled_from((False, False, True))),
        taints=draw(st.sampled_from(((), (Taint(key="t", effect="NoSchedule"),)))),
    )
    allocatable = draw(st.sampled_from(({"cpu": "4"}, {"cpu": "8", "pods": "2"}, {"cpu": "much"})))
    return Node(metadata=meta, spec=spec, status=NodeStatus(allocatable=allocatable))


@st.composite
def claims(draw: st.DrawFn, version: int) -> NodeClaim:
    name = draw(st.sampled_from(NAMES))
    meta = ObjectMeta(
        name=name,
        uid=f"uid-{version}",
        resource_version=str(version),
        labels={labels.NODEPOOL: "p"},
        annotations=draw(st.sampled_from(({}, {labels.PLANNED_PODS: "x,y"}))),
        deletion_timestamp=draw(st.sampled_from((None, None, NOW))),
    )
    condition = Condition(type="Initialized", status=draw(st.sampled_from(("True", "False"))), last_transition_time=NOW)
    status = NodeClaimStatus(
        provider_id=draw(st.sampled_from(("", name))),
        allocatable=draw(st.sampled_from(({}, {"cpu": "4"}))),
        conditions=(condition,),
        last_pod_event_time=NOW + draw(st.integers(0, 5)) * SECOND,
    )
    spec = NodeClaimSpec(
        node_class_ref=NodeClassRef(name="default"), expire_after=draw(st.sampled_from(("Never", "720h", "soon")))
    )
    return NodeClaim(metadata=meta, spec=spec, status=status)


@st.composite
def pools(draw: st.DrawFn, version: int) -> NodePool:
    meta = ObjectMeta(name="p", uid="uid-p", resource_version=str(version))
    after = draw(st.sampled_from(("0s", "3s", "Never", "later")))
    template = Template(spec=TemplateSpec(node_class_ref=NodeClassRef(name="default")))
    return NodePool(metadata=meta, spec=NodePoolSpec(template=template, disruption=Disruption(consolidate_after=after)))


@st.composite
def csi_nodes(draw: st.DrawFn, version: int) -> CSINode:
    meta = ObjectMeta(name=draw(st.sampled_from(NAMES)), uid=f"uid-{version}", resource_version=str(version))
    limit = VolumeNodeResources(count=draw(st.sampled_from((None, 1, 2))))
    return CSINode(metadata=meta, spec=CSINodeSpec(drivers=(CSINodeDriver(name="disks", allocatable=limit),)))


@st.composite
def volume_claims(draw: st.DrawFn, version: int) -> PersistentVolumeClaim:
    meta = ObjectMeta(name="a", namespace="default", uid="uid-claim", resource_version=str(version))
    spec = PersistentVolumeClaimSpec(
        volume_name=draw(st.sampled_from(("", "v"))), storage_class_name=draw(st.sampled_from((None, "s")))
    )
    return PersistentVolumeClaim(metadata=meta, spec=spec)


@st.composite
def volumes(draw: st.DrawFn, version: int) -> PersistentVolume:
    meta = ObjectMeta(name="v", uid="uid-v", resource_version=str(version))
    driver = draw(st.sampled_from((None, CSISource(driver="disks"), CSISource(driver="others"))))
    return PersistentVolume(metadata=meta, spec=PersistentVolumeSpec(csi=driver))


@st.composite
def storage_classes(draw: st.DrawFn, version: int) -> StorageClass:
    notes = draw(st.sampled_from(({}, {"storageclass.kubernetes.io/is-default-class": "true"})))
    name = draw(st.sampled_from(("s", "t")))
    meta = ObjectMeta(name=name, uid=f"uid-{name}", resource_version=str(version), annotations=notes)
    return StorageClass(metadata=meta, provisioner=draw(st.sampled_from(("disks", "others"))))


MAKERS = (
    (kinds.POD, pods),
    (kinds.POD, pods),
    (kinds.NODE, nodes),
    (kinds.NODE_CLAIM, claims),
    (kinds.NODE_POOL, pools),
    (kinds.CSI_NODE, csi_nodes),
    (kinds.PVC, volume_claims),
    (kinds.PV, volumes),
    (kinds.STORAGE_CLASS, storage_classes),
)


def volumes_of(target: ExistingNode) -> tuple[Any, ...]:
    return target.attached, target.attachable


def seen(snapshot: Snapshot, memory: Memory) -> Any:
    """Everything that a context says of nodes and pods, comparable."""
    context = context_of(snapshot, memory.turn(snapshot))
    census = context.tallies._census
    places = [
        (t.key, t.possible, t.taints, tuple(t.free), t.ports, t.marks, t.hostname, t.settling, t.state, *volumes_of(t))
        for t in context.places.targets
    ]
    counted = census.pods, census.inverse, dict(census.newest_daemon_pod)
    moved = [
        (t.key, tuple(t.free), t.ports, *volumes_of(t))
        for key in snapshot.state_nodes
        if (t := context.reader.without(key, frozenset(("default/a",)))) is not None
    ]
    return places, counted, moved


@given(st.data())
def test_a_survey_from_memory_is_what_would_be_read_anew(data: st.DataObject) -> None:
    cluster, memory, now = Cluster(), Memory(), NOW
    settings = Settings(cluster_name="test")
    for version in range(1, data.draw(st.integers(2, 12)) + 1):
        kind, make = data.draw(st.sampled_from(MAKERS))
        value: Any = data.draw(make(version))
        if data.draw(st.integers(0, 3)):
            cluster.apply(kind, value)
        else:
            cluster.remove(kind, value.metadata.namespace, value.metadata.name)
        now += data.draw(st.integers(0, 2)) * SECOND
        snapshot = cluster.snapshot(now=now, settings=settings)
        assert seen(snapshot, memory) == seen(snapshot, Memory())
