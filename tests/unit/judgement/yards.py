"""Small clusters that the real scheduler judges: nodes of 2 cores, pods of workloads, the catalogue of `worlds`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from kerf.judgement.judge import why
from kerf.judgement.values import End, Judgement
from kerf.model.kubernetes.objects import Pod
from kerf_api import labels
from kerf_api.v1.meta import OwnerReference
from kerf_api.v1.nodepool import NodePool
from tests.unit.disruption.worlds import claim, node, pod, pool, snapshot

LARGE = {"key": labels.INSTANCE_TYPE, "operator": "In", "values": ["m5.large", "m5.xlarge"]}


def bought(capacity_type: str) -> dict[str, Any]:
    return {"key": labels.CAPACITY_TYPE, "operator": "In", "values": [capacity_type]}


ON_DEMAND, SPOT = bought("on-demand"), bought("spot")


def on_demand(*rows: Mapping[str, Any], **more: Any) -> NodePool:
    """A NodePool that buys on demand only."""
    return pool(requirements=[ON_DEMAND, *rows], **more)


def machine(name: str, *, annotations: Mapping[str, str] = {}, taints: Any = (), **more: Any) -> list[Any]:
    """A claim and its node; `annotations` and `taints` are the node's."""
    own = claim(name, **more)
    return [own, node(own, annotations=annotations, taints=list(taints))]


def worker(
    name: str, on: str, cpu: str, *, of: str = "web", kind: str = "ReplicaSet", port: int = 0, **more: Any
) -> Pod:
    """A pod of a workload (of none, if `of` is empty) that asks for so much CPU, and perhaps for a host port."""
    ports = [{"hostPort": port, "containerPort": port}] if port else []
    containers = [{"name": "c", "ports": ports, "resources": {"requests": {"cpu": cpu}}}]
    template = {"pod-template-hash": "5d9c7"} if kind == "ReplicaSet" else {}
    made = pod(name, on, containers=containers, labels_={"app": of or name, **template}, **more)
    controller = f"{of}-5d9c7" if kind == "ReplicaSet" else of
    owner = OwnerReference(api_version="apps/v1", kind=kind, name=controller, uid="u", controller=True)
    return replace(made, metadata=replace(made.metadata, owner_references=(owner,) if of else ()))


def judged(*objects: Any, **facts: Any) -> Judgement:
    """Node `a`."""
    flat = [one for each in objects for one in (each if isinstance(each, list) else [each])]
    return why(snapshot(flat, **facts), "a")


def end(found: Judgement, code: str = "Underutilized") -> End:
    (one,) = [each for each in found.ends if each.code == code]
    return one
