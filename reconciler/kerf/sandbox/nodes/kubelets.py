"""The kubelets: an instance that has booted registers its Node and makes it Ready; pods start, and stop with grace.

A Node that a user made (no instance behind it) is run by a kubelet too. Annotations on a pod steer it, under the same
names as in the tests on a real control plane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from kerf.ec2.instance_types import capacity
from kerf.model import kinds
from kerf.model.aws.cloud import InstanceTypeInfo
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.settings import Settings
from kerf.ports import AlreadyExists
from kerf.sandbox.api.api_server import ApiServer, Key, Record
from kerf.sandbox.api.manifests import timestamp
from kerf.sandbox.aws.ec2 import Ec2
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.clock import Agenda
from kerf.sandbox.nodes import kubelet_rules, user_data
from kerf.sandbox.nodes.differences import Differences
from kerf.sandbox.nodes.user_data import NodeSettings
from kerf.sandbox.phases import terminal
from kerf.sandbox.scheduling.pod_requests import Manifest
from kerf_api import labels
from kerf_api.resources import Resources
from kerf_api.v1.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec
from kerf_api.v1.meta import ObjectMeta, encode

#: On a pod, in whole seconds: until it runs, until it completes (phase Succeeded), until it stops.
STARTS_AFTER = "kubelet.kerf.test/starts-after"
COMPLETES_AFTER = "kubelet.kerf.test/completes-after"
STOPS_AFTER = "kubelet.kerf.test/stops-after"
#: On a node, whole seconds until it is Ready; on a node or a pod, `true` keeps it from being Ready until it goes.
READY_AFTER = "kubelet.kerf.test/ready-after"
NOT_READY = "kubelet.kerf.test/not-ready"
#: A node with this label has no kubelet at all.
STOPPED_LABEL = "kubelet.kerf.test/stopped"

#: The addresses of the network that instances get.
_ADDRESSES: Final = 1 << 16
#: The hypervisor takes a little less than what is planned with, so that a node never has less than was promised.
_MEMORY_OVERHEAD = 0.065
_ABSENT = ("vpc.amazonaws.com/pod-eni",)
_AT_ONCE = ("cpu", "memory", "ephemeral-storage", "pods")


class Kubelets:
    """All of them. `alive` is what the node lifecycle asks."""

    def __init__(
        self,
        server: ApiServer,
        ec2: Ec2,
        differences: Differences,
        agenda: Agenda,
        now: Callable[[], datetime],
    ) -> None:
        self._server, self._ec2, self._agenda, self._now = server, ec2, agenda, now
        self._differences = differences
        self._machines: dict[str, Machine] = {}
        self._waiting: dict[str, dict[tuple[str, str], str]] = {}
        self._on_node: dict[str, dict[Key, None]] = {}
        self._deferred: dict[Key, str] = {}
        server.listen(self._heard)
        ec2.listen(self._turned)

    def machine(self, node_name: str) -> Machine | None:
        """The instance behind a node; None for one that a user made."""
        return self._machines.get(node_name)

    def adopt(self, node_name: str, machine: Machine) -> None:
        """An instance is that of a node that is about to be put in; it is there already, and registers nothing."""
        self._machines[node_name] = machine

    def alive(self, node_name: str) -> bool:
        machine, node = self._machines.get(node_name), self._server.find(kinds.NODE, "", node_name)
        stopped = node is None or STOPPED_LABEL in node.value.metadata.labels
        return not stopped and (machine is None or machine.state in ("running", "shutting-down"))

    # --- nodes ----------------------------------------------------------------------------------------------------
    def _turned(self, machine: Machine) -> None:
        if machine.state == "running" and machine.boots:
            self._agenda.after(self._ec2.weather.boot_seconds, lambda: self._register(machine))

    def _name(self, machine: Machine) -> str:
        """A name that no other machine's Node has: in a restored cluster Nodes were there before."""
        number = machine.number
        while True:
            name = f"ip-10-0-{number >> 8}-{number & 255}.{self._ec2.region.name}.compute.internal"
            known = self._machines.get(name)
            if known is machine or (known is None and self._server.find(kinds.NODE, "", name) is None):
                return name
            number += _ADDRESSES

    def _register(self, machine: Machine) -> None:
        if machine.state != "running":
            return
        name = self._name(machine)
        settings, info = user_data.read(machine.user_data), self._ec2.region.types[machine.instance_type]
        full, planned = _room(info, settings, machine)
        usable = self._differences.allocatable(machine, planned)
        taints = [encode(taint) for taint in settings.taints]
        self._machines[name] = machine
        node = {
            "metadata": {
                "name": name,
                "labels": {**_labels(machine, info, settings, name), **settings.labels},
                "annotations": {NOT_READY: "true"} if self._unfit(machine) else {},
            },
            "spec": {"providerID": machine.provider_id, "taints": taints},
            "status": _node_status(_first(full), _first(usable), _ready("False", "KubeletNotReady", self._now())),
        }
        try:
            self._server.create(kinds.NODE, node)
        except AlreadyExists:
            return
        self._differences.registered(name, machine)
        self._agenda.after(self._ec2.weather.ready_seconds, lambda: self._make_ready(name, full, usable))

    def _unfit(self, machine: Machine) -> bool:
        return not machine.fit and self._ec2.weather.ready_failure_rate > 0

    def _make_ready(self, name: str, full: Resources | None = None, usable: Resources | None = None) -> None:
        node = self._server.find(kinds.NODE, "", name)
        if node is None or not self.alive(name) or node.value.metadata.annotations.get(NOT_READY) == "true":
            return
        status = {"conditions": [_ready("True", "KubeletReady", self._now())]}
        if full is not None and usable is not None:
            status = _node_status(full, usable, status["conditions"][0])
        self._server.patch(kinds.NODE, "", name, {"status": status}, subresource="status")
        for (namespace, pod), uid in self._waiting.pop(name, {}).items():
            self._start_later(namespace, pod, uid)

    # --- pods -----------------------------------------------------------------------------------------------------
    def _heard(self, old: Record | None, new: Record | None) -> None:
        if new is None:
            if old is not None and old.kind.name == "Pod":
                self._on_node.get(old.value.spec.node_name, {}).pop(old.key, None)
                self._room_on(old.value.spec.node_name)
            return
        if new.kind.name == "Node" and old is None and new.value.name not in self._machines:
            name = new.value.name
            seconds = _seconds(new.value.metadata, READY_AFTER, self._ec2.weather.ready_seconds)
            self._agenda.after(seconds, lambda: self._make_ready(name))
        if new.kind.name in ("Node", "Pod") and old is not None and _marked(old.value) != _marked(new.value):
            self._agenda.after(0.0, lambda: self._obey_mark(new.kind.name, new.key))
        if new.kind.name == "Pod" and new.value.spec.node_name:
            self._on_node.setdefault(new.value.spec.node_name, {})[new.key] = None
            self._heard_pod(old.value if old is not None else None, new.value)
            if old is not None and kubelet_rules.resized(old.manifest, new.manifest):
                uid, seconds = new.value.metadata.uid, self._ec2.weather.resize_seconds
                self._agenda.after(seconds, lambda: self._resize(new.key, uid))

    def _obey_mark(self, kind: str, key: tuple[str, str]) -> None:
        """The not-ready annotation came or went."""
        record = self._server.find(self._server.kinds[kind], *key)
        if record is None:
            return
        marked = _marked(record.value)
        if kind == "Pod":
            if record.value.status.phase == "Running" and self.alive(record.value.spec.node_name):
                self._report(record.value, "Running", ready=not marked)
        elif not marked:
            self._make_ready(record.value.name)
        elif self.alive(record.value.name):
            status = {"status": {"conditions": [_ready("False", "KubeletNotReady", self._now())]}}
            self._server.patch(kinds.NODE, *key, status, subresource="status")

    def _heard_pod(self, old: Pod | None, new: Pod) -> None:
        meta = new.metadata
        if old is None or not old.spec.node_name:
            self._start_later(meta.namespace, meta.name, meta.uid)
        if meta.deleting and (old is None or old.metadata.deletion_timestamp != meta.deletion_timestamp):
            seconds = min(
                _seconds(new.metadata, STOPS_AFTER, self._ec2.weather.pod_stop_seconds), _left(new, self._now())
            )
            self._agenda.after(seconds, lambda: self._stop(meta.namespace, meta.name, meta.uid))

    def _start_later(self, namespace: str, name: str, uid: str) -> None:
        pod = self._pod(namespace, name, uid)
        if pod is not None:
            seconds = _seconds(pod.metadata, STARTS_AFTER, self._ec2.weather.pod_start_seconds)
            self._agenda.after(seconds, lambda: self._start(namespace, name, uid))

    def _start(self, namespace: str, name: str, uid: str) -> None:
        pod = self._pod(namespace, name, uid)
        if pod is None or pod.metadata.deleting or pod.status.phase != "Pending":
            return
        node = self._server.find(kinds.NODE, "", pod.spec.node_name)
        if node is None or not node.value.ready:
            self._waiting.setdefault(pod.spec.node_name, {})[(namespace, name)] = uid
            return
        record = self._server.get(kinds.POD, namespace, name)
        others = [one for one in self._pods_on(pod.spec.node_name) if one["status"].get("phase") == "Running"]
        if not _static(pod) and (why := kubelet_rules.rejection(record.manifest, node.manifest, others)):
            self._report(pod, "Failed", ready=False, reason=why)
            return
        states = kubelet_rules.allocated(record.manifest)
        self._report(pod, "Running", ready=not _marked(pod), startTime=timestamp(self._now()), **states)
        if COMPLETES_AFTER in pod.metadata.annotations:
            after = _seconds(pod.metadata, COMPLETES_AFTER, 0.0)
            self._agenda.after(after, lambda: self._complete(namespace, name, uid))

    def _complete(self, namespace: str, name: str, uid: str) -> None:
        pod = self._pod(namespace, name, uid)
        if pod is not None and not terminal(pod) and self.alive(pod.spec.node_name):
            self._report(pod, "Succeeded", ready=False)

    def _stop(self, namespace: str, name: str, uid: str) -> None:
        pod = self._pod(namespace, name, uid)
        node = pod and self._server.find(kinds.NODE, "", pod.spec.node_name)
        if pod is not None and node is not None and self.alive(pod.spec.node_name):
            self._server.delete(kinds.POD, namespace, name, uid=uid, grace_seconds=0)

    # --- resizes in place -----------------------------------------------------------------------------------------
    def _resize(self, key: Key, uid: str) -> None:
        """Give a running pod the resources of its spec, or say why not."""
        record = self._server.find(kinds.POD, *key)
        if record is None or record.value.metadata.uid != uid or record.value.status.phase != "Running":
            return
        node = self._server.find(kinds.NODE, "", record.value.spec.node_name)
        if node is None or not self.alive(record.value.spec.node_name):
            return
        others = [one for one in self._pods_on(record.value.spec.node_name) if one["metadata"]["uid"] != uid]
        why = kubelet_rules.obstacle(record.manifest, node.manifest, others)
        conditions = [c for c in record.manifest["status"]["conditions"] if c["type"] != kubelet_rules.PENDING]
        status = {"conditions": conditions, **kubelet_rules.allocated(record.manifest)}
        if why:
            moment = timestamp(self._now())
            pending = {"type": kubelet_rules.PENDING, "status": "True", "reason": why, "lastTransitionTime": moment}
            status = {"conditions": [*conditions, pending]}
        if why == kubelet_rules.DEFERRED:
            self._deferred[key] = uid
        self._server.patch(kinds.POD, *key, {"status": status}, subresource="status")

    def _room_on(self, node_name: str) -> None:
        """A pod is gone: deferred resizes on its node are tried again."""
        for key in [key for key in self._on_node.get(node_name, ()) if key in self._deferred]:
            uid = self._deferred.pop(key)
            self._agenda.after(0.0, partial(self._resize, key, uid))

    def _pods_on(self, node_name: str) -> Iterator[Manifest]:
        """The pods of a node that have not ended."""
        for key in self._on_node.get(node_name, ()):
            record = self._server.find(kinds.POD, *key)
            if record is not None and not terminal(record.value):
                yield record.manifest

    def _report(self, pod: Pod, phase: str, *, ready: bool, **more: Any) -> None:
        record = self._server.get(kinds.POD, pod.metadata.namespace, pod.metadata.name)
        stay = ("PodScheduled", kubelet_rules.PENDING)
        kept = [c for c in record.manifest["status"].get("conditions", ()) if c["type"] in stay]
        state, moment = "True" if ready else "False", timestamp(self._now())
        own = [{"type": t, "status": state, "lastTransitionTime": moment} for t in ("Ready", "ContainersReady")]
        status = {"phase": phase, "conditions": [*kept, *own], **more}
        self._server.patch(
            kinds.POD, pod.metadata.namespace, pod.metadata.name, {"status": status}, subresource="status"
        )

    def _pod(self, namespace: str, name: str, uid: str) -> Pod | None:
        record = self._server.find(kinds.POD, namespace, name)
        pod: Pod | None = record.value if record is not None else None
        return pod if pod is not None and pod.metadata.uid == uid else None


def _seconds(meta: ObjectMeta, annotation: str, default: float) -> float:
    text = meta.annotations.get(annotation, "")
    return float(text) if text.isdigit() else default


def _static(pod: Pod) -> bool:
    """Whether the kubelet itself made the pod: it was admitted before the API server knew it."""
    return any(owner.kind == "Node" for owner in pod.metadata.owner_references)


def _marked(value: Node | Pod) -> bool:
    return value.metadata.annotations.get(NOT_READY) == "true"


def _left(pod: Pod, now: datetime) -> float:
    """Seconds of grace that remain."""
    end = pod.metadata.deletion_timestamp
    return max(0.0, (end - now) / timedelta(seconds=1)) if end is not None else 0.0


def _ready(status: str, reason: str, now: datetime) -> dict[str, str]:
    moment = timestamp(now)
    return {"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": moment}


def _node_status(full: Resources, usable: Resources, ready: dict[str, str]) -> dict[str, Any]:
    return {"capacity": full.texts(), "allocatable": usable.texts(), "conditions": [ready]}


def _first(amounts: Resources) -> Resources:
    """What a kubelet knows before device plugins have registered."""
    return Resources({name: amounts[name] for name in _AT_ONCE})


def _room(info: InstanceTypeInfo, settings: NodeSettings, machine: Machine) -> tuple[Resources, Resources]:
    """(capacity, allocatable) of the real node."""
    spec = EC2NodeClassSpec(
        ami_family=settings.family,
        kubelet=dict(settings.kubelet),
        block_device_mappings=machine.volumes,
        instance_store_policy="RAID0" if settings.raid0 else None,
    )
    node_class = EC2NodeClass(metadata=ObjectMeta(name="node"), spec=spec)
    sizing = capacity.Sizing.of(node_class, Settings(cluster_name="", vm_memory_overhead_percent=_MEMORY_OVERHEAD))
    full = capacity.capacity(info, sizing)
    full = Resources({name: amount for name, amount in full.items() if name not in _ABSENT})
    return full, capacity.allocatable(full, capacity.overhead(info, sizing, full))


def _labels(machine: Machine, info: InstanceTypeInfo, settings: NodeSettings, name: str) -> dict[str, str]:
    """Labels that kubelet and the cloud's node controller set."""
    return {
        labels.HOSTNAME: name,
        labels.INSTANCE_TYPE: machine.instance_type,
        labels.ZONE: machine.zone,
        labels.ZONE_ID: machine.zone_id,
        labels.REGION: machine.zone[:-1],
        labels.ARCH: "arm64" if info.architectures[:1] == ("arm64",) else "amd64",
        labels.OS: "windows" if settings.family.startswith("Windows") else "linux",
    }
