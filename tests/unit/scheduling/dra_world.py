"""Devices, the slices that publish them, and claims: what tests of dynamic resource allocation are made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kerf.model.aws.instance_type import InstanceType
from kerf.model.kubernetes.devices import ResourceSliceSpec
from kerf.model.kubernetes.objects import Pod
from kerf_api.v1.meta import decode
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

DRIVER = "gpu.example.com"


def device(name: str, driver: str = DRIVER, **more: Any) -> dict[str, Any]:
    attributes = {key: {"string": value} for key, value in more.pop("attributes", {}).items()}
    return {"name": name, "attributes": attributes, **more}


def pool_of(name: str, *devices: dict[str, Any], driver: str = DRIVER, **spec: Any) -> dict[str, Any]:
    """The spec of a slice that is its whole pool."""
    own = {"name": name, "generation": 1, "resourceSliceCount": 1}
    return {"driver": driver, "pool": own, "devices": list(devices), **spec}


def published(name: str, *devices: dict[str, Any], node: str = "", **spec: Any) -> Any:
    where: dict[str, Any] = {"nodeName": node} if node else ({} if "nodeSelector" in spec else {"allNodes": True})
    owner = [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": f"uid-{node}"}] if node else []
    body = {**pool_of(name, *devices), **where, **spec}
    return c.made("ResourceSlice", name, metadata={"ownerReferences": owner}, spec=body)


def offering(kind: InstanceType, *slices: dict[str, Any]) -> InstanceType:
    """The type with what its nodes will publish."""
    return dataclasses.replace(kind, devices=tuple(decode(ResourceSliceSpec, one) for one in slices))


def gpus(kind: InstanceType, count: int, **more: Any) -> InstanceType:
    return offering(kind, pool_of("gpus", *(device(f"gpu-{i}", **more) for i in range(count))))


def request(name: str = "r", device_class: str = "gpu", **exactly: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": device_class, **exactly}}


def claim(name: str, *requests: dict[str, Any], status: Mapping[str, Any] | None = None, **devices: Any) -> Any:
    spec = {"devices": {"requests": list(requests or (request(),)), **devices}}
    return c.made("ResourceClaim", name, "default", spec=spec, status=status or {})


def allocated(claim_name: str, pool: str, device_name: str, *users: str, **status: Any) -> Any:
    """A claim that has its device, reserved for these pods."""
    results = [{"request": "r", "driver": DRIVER, "pool": pool, "device": device_name}]
    reserved = [{"resource": "pods", "name": user, "uid": f"uid-default-{user}"} for user in users]
    told = {"allocation": {"devices": {"results": results}, **status}, "reservedFor": reserved}
    return claim(claim_name, status=told)


def classes(*names: str) -> list[Any]:
    return [c.made("DeviceClass", name, spec={"selectors": []}) for name in names or ("gpu",)]


def pod(name: str, *claims: str, cpu: str = "100m", **spec: Any) -> Pod:
    """A pod whose container uses these claims."""
    rows = [{"name": one, "resourceClaimName": one} for one in claims]
    requests = {"cpu": cpu, "memory": "10Mi"}
    container = {"name": "c", "resources": {"requests": requests, "claims": [{"name": one} for one in claims]}}
    plain = w.pod(name, cpu, **spec)
    made: Pod = c.made(
        "Pod",
        name,
        "default",
        metadata={"uid": f"uid-default-{name}"},
        spec={"containers": [container], "resourceClaims": rows, "nodeName": plain.spec.node_name, **_own(spec)},
        status={"phase": plain.status.phase, "conditions": [_told(x) for x in plain.status.conditions]},
    )
    return made


def _own(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in ("node", "labels")}


def _told(condition: Any) -> dict[str, str]:
    return {"type": condition.type, "status": condition.status, "reason": condition.reason}


def run(*objects: Any, **facts: Any) -> c.Pass:
    """A pass with dynamic resource allocation enabled."""
    return c.run(w.pool(), *objects, **{"ignore_dra_requests": False, **facts})
