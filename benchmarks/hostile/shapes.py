"""All shapes: pods alone, pods together, pods on nodes that have drifted, and other objects that many may make."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from benchmarks.hostile import company, drifted, pods
from benchmarks.hostile.pods import Json, decoded
from benchmarks.workloads import pod
from kerf_api import labels
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

_READY: Final = {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]}
_REF: Final = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}


def _pool(number: int, requirements: list[Json], **spec: Any) -> NodePool:
    template = {"spec": {"nodeClassRef": _REF, "requirements": requirements}}
    meta = {"name": f"pool-{number}", "uid": f"pool-{number}"}
    return decode(NodePool, {"metadata": meta, "spec": {"template": template, **spec}, "status": _READY})


def node_pools(number: int) -> list[Any]:
    """Pools of different requirements, and one pod that none of them serves, among others."""
    found: list[Any] = [_pool(i, [pods.row(pods.KEY, "In", f"v{i}")]) for i in range(number)]
    return [*found, *_some_pods()]


def node_pools_with_types(number: int) -> list[Any]:
    rows = [[pods.row(labels.INSTANCE_TYPE, "NotIn", f"c5.{i}xlarge", "m5.large")] for i in range(number)]
    return [*(_pool(i, rows[i], weight=1 + i % 100) for i in range(number)), *_some_pods()]


def node_pools_with_limits(number: int) -> list[Any]:
    return [*(_pool(i, [], limits={"cpu": "1"}) for i in range(number)), *_some_pods()]


def node_pools_with_long_lists(number: int) -> list[Any]:
    rows = [pods.row(f"example.com/k{j}", "In", *(f"v{k}" for k in range(50))) for j in range(30)]
    return [*(_pool(i, rows) for i in range(number)), *_some_pods()]


def node_claims(number: int) -> list[Any]:
    """NodeClaims that were never launched, each with other requirements."""
    found: list[Any] = []
    for i in range(number):
        meta = {"name": f"claim-{i}", "uid": f"own-{i}", "labels": {labels.NODEPOOL: "default"}}
        spec = {"nodeClassRef": _REF, "requirements": [pods.row(pods.KEY, "NotIn", f"v{i}")]}
        found.append(decode(NodeClaim, {"metadata": meta, "spec": spec}))
    return [*found, *_some_pods()]


def _some_pods() -> list[Json]:
    return [pod(f"p{i}", {"app": f"a{i % 5}"}, 100, 64) for i in range(20)]


_OBJECTS: Final[dict[str, Callable[[int], list[Any]]]] = {
    "NodePools, one label each": node_pools,
    "NodePools, types left out": node_pools_with_types,
    "NodePools with limits": node_pools_with_limits,
    "NodePools with long lists": node_pools_with_long_lists,
    "NodeClaims never launched": node_claims,
}
SHAPES: Final[dict[str, Callable[[int], list[Any]]]] = {**pods.SHAPES, **company.SHAPES, **drifted.SHAPES, **_OBJECTS}


def objects_of(shape: str, number: int) -> Iterable[Any]:
    """So many objects of a shape, as the API server holds them. Raises KeyError for an unknown shape."""
    for one in SHAPES[shape](number):
        yield from decoded([one]) if isinstance(one, dict) else [one]
