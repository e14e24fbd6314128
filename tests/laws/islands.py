"""Two islands of one cluster that share nothing: what is wrong on one of them must change nothing on the other.

Each holds NodeClaims in every stage of their lives, with Nodes, pods and annotations, as JSON. `leaves` lists every
place of an object that holds a time or a number; an edit of one place makes the object hostile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

from kerf.kube.decoding import KindDecoder
from kerf.model import kinds
from kerf.model.aws.cloud import Instance
from kerf.model.aws.interruptions import Interruption, InterruptionKind, Message
from kerf.model.changes.indexes import InstanceIndex
from kerf.model.cluster import build
from kerf.model.plan import Source
from kerf.model.settings import FeatureGates, Settings
from kerf.model.snapshot import Batch, Snapshot
from kerf_api import labels
from tests.unit.lifecycle.world import CLUSTER, FACTS, NOW, large, text

Manifest = dict[str, Any]
Path = tuple[str | int, ...]
SIDES: Final = ("left", "right")
GATES: Final = FeatureGates(node_repair=True, static_capacity=True, capacity_buffer=True)
SETTINGS: Final = Settings("demo", gates=GATES, interruption_queue="queue")
HOUR: Final = timedelta(hours=1)
_READY: Final = ("Launched", "Registered", "Initialized", "Ready", "Consistent")
_AGO: Final = text(NOW - HOUR)


def _conditions(*types: str, status: str = "True", at: str = _AGO) -> list[Manifest]:
    return [{"type": one, "status": status, "reason": one, "message": "", "lastTransitionTime": at} for one in types]


def _meta(name: str, **more: Any) -> Manifest:
    return {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "generation": 1,
        "creationTimestamp": _AGO,
    } | more


def _pool(side: str, name: str, **spec: Any) -> Manifest:
    notes = {
        labels.BACK_OFF: {"count": 1, "at": _AGO, "claims": ["x"]},
        labels.GARBAGE: [{"at": _AGO, "instances": ["i-before"]}],
        labels.REGISTRATIONS: [{"claim": "x", "at": _AGO, "reason": "RegistrationTimeout"}],
        labels.CONSOLIDATION_PAUSE: {"at": text(NOW - 9 * HOUR), "lost": 1000, "count": 1},
        labels.MISMATCHES: {"records": [{"shape": "s", "since": _AGO, "at": _AGO, "nodes": 1}]},
    }
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": f"class-{side}"}
    template = {
        "nodeClassRef": ref,
        "requirements": [],
        "taints": [{"key": "island", "value": side, "effect": "NoSchedule"}],
        "expireAfter": "720h",
        "terminationGracePeriod": "1h",
    }
    windows = [{"nodes": "100%"}, {"nodes": "90%", "schedule": "0 9 * * *", "duration": "8h"}]
    body = {
        "template": {"spec": template},
        "disruption": {"consolidateAfter": "30s", "budgets": windows},
        "limits": {"cpu": "1000"},
        "weight": 1,
        **spec,
    }
    status = {"resources": {"cpu": "2"}, "nodes": 1, "conditions": _conditions("Ready")}
    meta = _meta(f"{name}-{side}", annotations={key: json.dumps(value) for key, value in notes.items()})
    return {"kind": "NodePool", "metadata": meta, "spec": body, "status": status}


def _class(side: str) -> Manifest:
    reserved = {"availabilityZone": "us-west-2a", "id": "cr-1", "instanceMatchCriteria": "open"}
    reserved |= {"instanceType": "m5.large", "ownerID": "1", "endTime": text(NOW + HOUR)}
    spec = {
        "role": "node-role",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"id": "subnet-a"}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
    }
    status = {"conditions": _conditions("Ready"), "capacityReservations": [reserved]}
    return {"kind": "EC2NodeClass", "metadata": _meta(f"class-{side}"), "spec": spec, "status": status}


def _claim(
    side: str, name: str, *stages: str, rows: Sequence[Manifest] = (), pool: str = "pool", **meta: Any
) -> Manifest:
    own = {labels.NODEPOOL: f"{pool}-{side}", labels.NODECLASS: f"class-{side}", labels.INSTANCE_TYPE: "m5.large"}
    own |= {labels.ZONE: "us-west-2a", labels.CAPACITY_TYPE: "on-demand"}
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": f"class-{side}"}
    spec = {
        "nodeClassRef": ref,
        "requirements": [],
        "resources": {"requests": {"cpu": "1", "pods": "2"}},
        "expireAfter": "720h",
        "terminationGracePeriod": "1h",
    }
    room = {"cpu": "2", "memory": "8Gi", "pods": "29"}
    status: Manifest = {"conditions": [*_conditions(*stages), *rows], "capacity": room, "allocatable": room}
    if stages:
        status |= {"providerID": f"aws:///us-west-2a/i-{name}-{side}", "nodeName": f"{name}-{side}"}
        status |= {"lastPodEventTime": _AGO}
    metadata = _meta(f"{name}-{side}", labels=own, finalizers=[labels.TERMINATION_FINALIZER], **meta)
    return {"kind": "NodeClaim", "metadata": metadata, "spec": spec, "status": status}


def _node(side: str, name: str, ready: str = "True", **meta: Any) -> Manifest:
    own = {labels.NODEPOOL: f"pool-{side}", labels.REGISTERED: "true", labels.INITIALIZED: "true"}
    own |= {labels.INSTANCE_TYPE: "m5.large", labels.ZONE: "us-west-2a", labels.CAPACITY_TYPE: "on-demand"}
    own |= {labels.EXCLUDE_BALANCERS: "karpenter"} if meta else {}
    taints = [{"key": labels.DISRUPTED_TAINT, "effect": "NoSchedule"}] if meta else []
    taints += [{"key": "island", "value": side, "effect": "NoSchedule", "timeAdded": _AGO}]
    room = {"cpu": "2", "memory": "8Gi", "pods": "29"}
    metadata = _meta(f"{name}-{side}", labels=own, finalizers=[labels.TERMINATION_FINALIZER], **meta)
    spec = {"providerID": f"aws:///us-west-2a/i-{name}-{side}", "taints": taints}
    status = {"conditions": _conditions("Ready", status=ready), "capacity": room, "allocatable": room}
    return {"kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _pod(side: str, name: str, node: str = "", phase: str = "Running", cpu: str = "100m", **meta: Any) -> Manifest:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    metadata = _meta(f"{name}-{side}", namespace=side, labels={"app": "web"}, ownerReferences=[owner], **meta)
    spec: Manifest = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}],
        "overhead": {"cpu": "1m"},
        "tolerations": [{"key": "island", "value": side, "tolerationSeconds": 300, "effect": "NoSchedule"}],
        "terminationGracePeriodSeconds": 30,
        "priority": 0,
    }
    waits = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": _AGO}]
    status: Manifest = {"phase": phase, "conditions": _conditions("Ready") if node else waits}
    if node:
        spec["nodeName"], status["startTime"] = f"{node}-{side}", _AGO
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def island(side: str) -> list[Manifest]:
    """Every object of an island. The name of each ends in its side."""
    going: Manifest = {"deletionTimestamp": text(NOW - timedelta(minutes=5))}
    command = {"id": "c1", "reason": "Drifted", "started": text(NOW - timedelta(minutes=1)), "created": True}
    failed = {"at": _AGO, "count": 1}
    asked = _conditions("Drained", "VolumesDetached", "InstanceTerminating")
    gone = [{"type": "Drained", "status": "Unknown", "reason": "Draining", "lastTransitionTime": _AGO}]
    ended: Manifest = {"deletionTimestamp": text(NOW + timedelta(seconds=30)), "deletionGracePeriodSeconds": 30}
    due = {labels.TERMINATION_TIMESTAMP: text(NOW + HOUR)}
    done = _pod(side, "done", "live", "Succeeded")
    selector = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
    figures = {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3}
    return [
        _pool(side, "pool"),
        _pool(side, "static", replicas=1),
        _class(side),
        _claim(side, "fixed", *_READY, pool="static"),
        _claim(side, "waits"),
        _claim(side, "joins", "Launched", rows=_conditions("Registered", status="Unknown", at=text(NOW))),
        _claim(side, "live", *_READY, "Consolidatable", annotations={labels.COMMAND_FAILED: json.dumps(failed)}),
        _claim(side, "sick", *_READY),
        _claim(side, "warned", *_READY),
        _claim(side, "lost", *_READY),
        _claim(side, "goes", *_READY, annotations={labels.COMMAND: json.dumps(command)}),
        _claim(
            side, "drains", *_READY, **going, annotations=due | {labels.ENDS: f"{going['deletionTimestamp']} Drifted"}
        ),
        _claim(side, "empty", *_READY, rows=gone, **going, annotations=due),
        _claim(side, "ended", *_READY, rows=asked, **going, annotations=due),
        _node(side, "live"),
        _node(side, "sick", ready="False"),
        _node(side, "warned"),
        _node(side, "goes"),
        _node(side, "drains", **going),
        _node(side, "empty", **going),
        _node(side, "ended", **going),
        _pod(side, "runs", "live"),
        _pod(side, "guarded", "live", annotations={labels.DO_NOT_DISRUPT: "2h"}),
        done,
        _pod(side, "stays", "drains", annotations={labels.DO_NOT_DISRUPT: "true"}),
        _pod(side, "ends", "drains", **ended),
        _pod(side, "lasts", "drains", annotations={labels.DO_NOT_DISRUPT: "2h"}),
        _pod(side, "moves", "goes"),
        _pod(side, "pends"),
        _pod(side, "waits", cpu="1800m"),
        {
            "kind": "PodDisruptionBudget",
            "metadata": _meta(f"pdb-{side}", namespace=side),
            "spec": selector,
            "status": figures,
        },
        {
            "kind": "CapacityBuffer",
            "metadata": _meta(f"buffer-{side}", namespace=side),
            "spec": {"podTemplateRef": {"name": f"shape-{side}"}, "replicas": 1, "limits": {"cpu": "10"}},
            "status": {"replicas": 1},
        },
        {
            "kind": "PodTemplate",
            "metadata": _meta(f"shape-{side}", namespace=side),
            "template": {"metadata": {"name": "x"}, "spec": _pod(side, "x")["spec"]},
        },
        {
            "kind": "DaemonSet",
            "metadata": _meta(f"agent-{side}", namespace=side),
            "spec": {"template": {"metadata": {"name": "x"}, "spec": _pod(side, "x")["spec"]}},
        },
    ]


def decoded(manifest: Mapping[str, Any]) -> Any:
    """As the controller reads it off the API server."""
    decoder = KindDecoder(kinds.BY_NAME[manifest["kind"]], lambda kind, problem: None)
    return decoder.one(json.dumps(manifest).encode())


def world(objects: Sequence[Any]) -> Snapshot:
    """A snapshot of these objects with their instances and a warning for one instance of each island."""
    made: dict[str, Instance] = {}
    warnings: list[Interruption] = []
    for side in SIDES:
        for name in ("fixed", "joins", "live", "sick", "warned", "goes", "drains", "empty", "orphan"):
            made[f"i-{name}-{side}"] = _instance(side, name)
        message = Message(f"m-{side}", "r", "{}")
        warnings.append(Interruption(InterruptionKind.SPOT_INTERRUPTED, (f"i-warned-{side}",), message))
    names = [f"class-{side}" for side in SIDES]
    return build(
        objects,
        now=NOW,
        settings=SETTINGS,
        cluster=CLUSTER,
        class_facts=dict.fromkeys(names, FACTS),
        resolved_at=dict.fromkeys(names, NOW),
        catalogues=dict.fromkeys(names, (large(),)),
        instances=InstanceIndex.of(made),
        interruptions=tuple(warnings),
        fresh_at=dict.fromkeys(Source, NOW),
        batch=Batch(NOW - timedelta(minutes=1), NOW - timedelta(minutes=1)),
    )


def _instance(side: str, name: str) -> Instance:
    tags = {labels.TAG_NODEPOOL: f"pool-{side}", labels.TAG_NODECLASS: f"class-{side}"}
    launched = NOW - HOUR
    return Instance(f"i-{name}-{side}", "m5.large", "us-west-2a", "running", "on-demand", launched, tags=tags)


# --- places -----------------------------------------------------------------------------------------------------
TIME, NUMBER, QUANTITY, DURATION, SCHEDULE, NOTE = "time", "number", "quantity", "duration", "schedule", "note"
_TEXTS: Final = {
    "expire_after": DURATION,
    "termination_grace_period": DURATION,
    "consolidate_after": DURATION,
    "duration": DURATION,
    "schedule": SCHEDULE,
}
_NOTES: Final = (labels.KERF, labels.TERMINATION_TIMESTAMP, labels.DO_NOT_DISRUPT)


def leaves(kind: Any, data: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every place of an object's JSON that its type reads as a time or a number, and its sort."""
    for field in fields(kind):
        here, type_ = (*path, field.encode_name), get_type_hints(kind, include_extras=True)[field.name]
        value = data.get(field.encode_name)
        if field.name == "annotations" and value:
            yield from (((*here, key), NOTE) for key in value if key.startswith(_NOTES))
        elif field.name in _TEXTS and value is not None:
            yield here, _TEXTS[field.name]
        elif value is not None:
            yield from _of_type(type_, value, here)


def _of_type(type_: Any, value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    choices = [part for part in get_args(type_) if part is not type(None)]
    if get_origin(type_) in (Union, UnionType) and len(choices) == 1:
        yield from _of_type(choices[0], value, path)
    elif type_ is datetime:
        yield path, TIME
    elif isinstance(value, bool):
        return
    elif isinstance(value, int):
        yield path, NUMBER
    elif isinstance(type_, type) and issubclass(type_, Struct):
        yield from leaves(type_, value, path)
    elif isinstance(value, dict) and get_args(type_)[1:] == (str | int | float,):
        yield from (((*path, key), QUANTITY) for key in value)
    elif isinstance(value, list) and isinstance(choices[0], type) and issubclass(choices[0], Struct):
        for place, item in enumerate(value):
            yield from leaves(choices[0], item, (*path, place))


def edited(manifest: Manifest, path: Path, value: Any) -> Manifest:
    """The manifest with another value in one place."""
    copy = json.loads(json.dumps(manifest))
    there = copy
    for step in path[:-1]:
        there = there[step]
    there[path[-1]] = value
    return copy  # type: ignore[no-any-return]


def at(manifest: Manifest, path: Path) -> Any:
    """The value of one place."""
    value: Any = manifest
    for step in path:
        value = value[step]
    return value
