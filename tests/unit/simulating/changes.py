"""A small valid scenario, and changes of it."""

from __future__ import annotations

from typing import Any

from tests.worlds import deployment, node_class, node_pool

WEB: dict[str, Any] = {"name": "web", "replicas": 2, "cpu": 1}
WORLD: dict[str, Any] = {"objects": [node_class(), node_pool("general", {})]}
PAGES: dict[str, Any] = {name: {"hugepages-2Mi": "4Mi"} for name in ("requests", "limits")}
#: A selector of other pods.
BARE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "a"}]},
}
OTHER: dict[str, Any] = {"matchLabels": {"app": "x"}}
SCENARIO: dict[str, Any] = {
    "name": "Input",
    "duration": "20m",
    "world": WORLD,
    "workloads": [WEB],
    "assertions": [{"podsRunWithin": {"duration": "5m"}}],
}


def event(name: str, given: dict[str, Any], at: str = "5m") -> dict[str, Any]:
    return {"weather": [{"at": at, name: given}]}


def web(**fields: Any) -> dict[str, Any]:
    return {"workloads": [{**WEB, **fields}]}


def objects(*more: dict[str, Any]) -> dict[str, Any]:
    return {"world": {"objects": [*WORLD["objects"], *more]}}


def budget(**fields: Any) -> dict[str, Any]:
    return web(podDisruptionBudget=fields)


def spread(**fields: Any) -> dict[str, Any]:
    whole = {"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return web(pod={"topologySpreadConstraints": [{**whole, **fields}]})


def container(**resources: Any) -> dict[str, Any]:
    return web(pod={"containers": [{"name": "main", "resources": resources}]})


def pod(**fields: Any) -> dict[str, Any]:
    return web(pod=fields)


def port(**fields: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}, fields]}])


def node_affinity(**requirement: Any) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "team", **requirement}]}]
    return pod(
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    )


def toleration(**fields: Any) -> dict[str, Any]:
    return pod(tolerations=[fields])


def selector(**fields: Any) -> dict[str, Any]:
    return objects({**deployment("api", {}), "spec": {**deployment("api", {})["spec"], "selector": fields}})


def rolling(make: Any, field: str, **fields: Any) -> dict[str, Any]:
    one = make("api", {})
    return objects({**one, "spec": {**one["spec"], field: fields}})


def required(key: str, *values: str) -> dict[str, Any]:
    row = {"key": key, "operator": "In", "values": [*values]}
    return objects(node_pool("typo", {"requirements": [row]}))


def with_pod(**fields: Any) -> dict[str, Any]:
    spec: dict[str, Any] = deployment("api", {})["spec"]
    return {**spec, "template": {**spec["template"], "spec": {**spec["template"]["spec"], **fields}}}


def without_class() -> dict[str, Any]:
    pool = node_pool("other", {})
    pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] = "defualt"
    return objects(pool)


def asserted(name: str, **fields: Any) -> dict[str, Any]:
    return {"assertions": [{name: fields}]}
