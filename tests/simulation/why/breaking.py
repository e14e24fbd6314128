"""The kinds of things that keep a pod from its place: how each is prepared, so that all pods fit, and then broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.simulation.why.worlds import (
    ARCH,
    CAPACITY,
    CATEGORY,
    CPUS,
    NODEPOOL,
    POD,
    ROWS,
    TYPE,
    ZONE,
    Draft,
    Manifest,
    dedicate,
    row,
    select,
    volume,
)
from tests.worlds import daemon_set, deployment


@dataclass(frozen=True)
class Broken:
    """What was broken: the field (kind, name, path) or the object; the manifests to apply, and to delete."""

    kind: str
    name: str
    path: str
    applied: tuple[Manifest, ...] = ()
    deleted: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Kind:
    """`prepared` makes a draft in which it can be broken; all pods fit there still."""

    broken: Callable[[Draft, Random], Broken]
    prepared: Callable[[Draft], None] = field(default=lambda draft: None)


def _pool(draft: Draft, path: str, value: Any) -> Broken:
    return Broken("NodePool", draft.home, path, (draft.pool(path, value),))


def _shop(draft: Draft, path: str, value: Any) -> Broken:
    return Broken("Deployment", "default/shop", f"{POD}.{path}", (draft.shop(path, value),))


def _class(draft: Draft, path: str, value: Any) -> Broken:
    return Broken("EC2NodeClass", "default", path, (draft.set("EC2NodeClass", "default", path, value),))


# --- of the NodePool ----------------------------------------------------------------------------------------------
def _tainted(draft: Draft, dice: Random) -> Broken:
    taint = {"key": dice.choice(("maintenance", "example.com/new")), "effect": dice.choice(("NoSchedule", "NoExecute"))}
    return _pool(draft, "spec.template.spec.taints", [taint])


def _requirement(key: str, *values: str) -> Callable[[Draft, Random], Broken]:
    return lambda draft, dice: _pool(draft, f"{ROWS}[{draft.index(key)}].values", list(values))


def _label_lost(draft: Draft, dice: Random) -> Broken:
    return _pool(draft, 'spec.template.metadata.labels["tier"]', None)


def _label_changed(draft: Draft, dice: Random) -> Broken:
    return _pool(draft, 'spec.template.metadata.labels["tier"]', "back")


def _tiered(draft: Draft) -> None:
    draft.pool('spec.template.metadata.labels["tier"]', "front")
    select(draft, "tier", "front")


def _limit(resource: str, value: str) -> Callable[[Draft, Random], Broken]:
    return lambda draft, dice: _pool(draft, f"spec.limits.{resource}", value)


def _small_types(draft: Draft, dice: Random) -> Broken:
    rows = [*draft.get("NodePool", draft.home, ROWS), row(CPUS, "3", operator="Lt")]
    return Broken("NodePool", draft.home, f"{ROWS}[{len(rows) - 1}]", (draft.pool(ROWS, rows),))


def _big(draft: Draft) -> None:
    draft.shop("containers[0].resources.requests.cpu", "2500m")


def _min_values(draft: Draft, dice: Random) -> Broken:
    return _pool(draft, f"{ROWS}[{draft.index(CATEGORY)}].minValues", 3)


def _two_categories(draft: Draft) -> None:
    draft.shop("affinity.nodeAffinity", _node_affinity(row(CATEGORY, "c", "m")))


def _class_name(draft: Draft, dice: Random) -> Broken:
    return _pool(draft, "spec.template.spec.nodeClassRef.name", "defualt")


def _pool_deleted(draft: Draft, dice: Random) -> Broken:
    return Broken("NodePool", draft.home, "", deleted=(("NodePool", draft.home),))


def _by_name(draft: Draft) -> None:
    select(draft, NODEPOOL, draft.home)


# --- of the EC2NodeClass ------------------------------------------------------------------------------------------
def _terms(path: str) -> Callable[[Draft, Random], Broken]:
    return lambda draft, dice: _class(draft, path, [{"tags": {"karpenter.sh/discovery": "sandbx"}}])


def _no_image(draft: Draft, dice: Random) -> Broken:
    return _class(draft, "spec.amiSelectorTerms", [{"alias": "al2023@v20200101"}])


# --- of the pod -----------------------------------------------------------------------------------------------------
def _selecting(key: str, value: str) -> Callable[[Draft, Random], Broken]:
    return lambda draft, dice: _shop(draft, f'nodeSelector["{key}"]', value)


def _node_affinity(*rows: Manifest) -> Manifest:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(rows)}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _affinity(*rows: Manifest) -> Callable[[Draft, Random], Broken]:
    return lambda draft, dice: _shop(draft, "affinity.nodeAffinity", _node_affinity(*rows))


def _contradicting(draft: Draft, dice: Random) -> Broken:
    select(draft, ARCH, "amd64")
    return _shop(draft, "affinity.nodeAffinity", _node_affinity(row(ARCH, "arm64")))


def _asking(resource: str, *values: str) -> Callable[[Draft, Random], Broken]:
    def broken(draft: Draft, dice: Random) -> Broken:
        value, path = dice.choice(values), f'containers[0].resources.requests["{resource}"]'
        if "/" in resource:
            draft.shop(f'containers[0].resources.limits["{resource}"]', value)
        return _shop(draft, path, value)

    return broken


def _lonely(draft: Draft, dice: Random) -> Broken:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "bsae"}}}
    return _shop(draft, "affinity.podAffinity", {"requiredDuringSchedulingIgnoredDuringExecution": [term]})


def _spread(draft: Draft, dice: Random) -> Broken:
    own = {"maxSkew": 1, "topologyKey": "example.com/rack", "whenUnsatisfiable": "DoNotSchedule"}
    return _shop(draft, "topologySpreadConstraints", [{**own, "labelSelector": {"matchLabels": {"app": "shop"}}}])


def _kept_away(draft: Draft, dice: Random) -> Broken:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "base"}}}
    return _shop(draft, "affinity.podAntiAffinity", {"requiredDuringSchedulingIgnoredDuringExecution": [term]})


def _everywhere(draft: Draft) -> None:
    """Other pods in each zone."""
    own = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    spread = [{**own, "labelSelector": {"matchLabels": {"app": "base"}}}]
    draft.put(deployment("base", {"replicas": 3, "cpu": "700m", "topologySpreadConstraints": spread}))


def _intolerant(draft: Draft, dice: Random) -> Broken:
    if dice.random() < 0.5:
        return _shop(draft, "tolerations", [])
    return _shop(draft, "tolerations[0].key", "dedicate")


def _port(draft: Draft, dice: Random) -> Broken:
    return _shop(draft, "containers[0].ports", [{"containerPort": 9100, "hostPort": 9100}])


def _exporter(draft: Draft) -> None:
    port = [{"containerPort": 9100, "hostPort": 9100}]
    made = daemon_set("exporter", {"tolerations": [{"operator": "Exists"}]})
    draft.put(made)
    draft.set("DaemonSet", "default/exporter", f"{POD}.containers[0].ports", port)


def _gated(draft: Draft, dice: Random) -> Broken:
    return _shop(draft, "schedulingGates", [{"name": "example.com/quota"}])


# --- of others --------------------------------------------------------------------------------------------------
def _no_claim(draft: Draft, dice: Random) -> Broken:
    return Broken("PersistentVolumeClaim", "default/data", "", deleted=(("PersistentVolumeClaim", "default/data"),))


def _other_claim(draft: Draft, dice: Random) -> Broken:
    """A claim of a class that nobody has made."""
    other = {
        **draft.objects["PersistentVolumeClaim", "default/data"],
        "metadata": {"name": "more", "namespace": "default"},
    }
    other["spec"] = {**other["spec"], "storageClassName": "fast"}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "more"}}]
    changed = draft.shop("volumes", volumes)
    return Broken("StorageClass", "fast", "", (other, changed))


def _daemons(draft: Draft, dice: Random) -> Broken:
    path = f"{POD}.containers[0].resources.requests.cpu"
    return Broken("DaemonSet", "default/agent", path, (draft.set("DaemonSet", "default/agent", path, "1400m"),))


def _small_nodes(draft: Draft) -> None:
    draft.pool(ROWS, [*draft.get("NodePool", draft.home, ROWS), row(CPUS, "3", operator="Lt")])


KINDS: Final[Mapping[str, Kind]] = {
    "a taint on the NodePool": Kind(_tainted),
    "architecture of the NodePool": Kind(_requirement(ARCH, "arm64"), lambda d: select(d, ARCH, "amd64")),
    "zones of the NodePool": Kind(_requirement(ZONE, "us-west-2b"), lambda d: select(d, ZONE, "us-west-2a")),
    "capacity types of the NodePool": Kind(_requirement(CAPACITY, "spot"), lambda d: select(d, CAPACITY, "on-demand")),
    "types of the NodePool that do not exist": Kind(_requirement(CATEGORY, "z")),
    "a label of the NodePool is removed": Kind(_label_lost, _tiered),
    "a label of the NodePool is changed": Kind(_label_changed, _tiered),
    "limit of CPU": Kind(_limit("cpu", "1")),
    "limit of memory": Kind(_limit("memory", "1Gi")),
    "limit of nodes": Kind(_limit("nodes", "1")),
    "only small types in the NodePool": Kind(_small_types, _big),
    "minValues": Kind(_min_values, _two_categories),
    "name of the EC2NodeClass": Kind(_class_name),
    "the NodePool is deleted": Kind(_pool_deleted, _by_name),
    "subnets of the EC2NodeClass": Kind(_terms("spec.subnetSelectorTerms")),
    "security groups of the EC2NodeClass": Kind(_terms("spec.securityGroupSelectorTerms")),
    "images of the EC2NodeClass": Kind(_no_image),
    "CPU of the pod": Kind(_asking("cpu", "9", "40")),
    "memory of the pod": Kind(_asking("memory", "30Gi", "200Gi")),
    "an extended resource": Kind(_asking("example.com/fpga", "1")),
    "architecture of the pod": Kind(_selecting(ARCH, "x86_64")),
    "zone of the pod": Kind(_selecting(ZONE, "us-west-2d")),
    "a label that the pod selects": Kind(_selecting("tier", "front")),
    "instance type in the node affinity": Kind(_affinity(row(TYPE, "m9.large"))),
    "contradicting selectors": Kind(_contradicting),
    "pod affinity that no pod satisfies": Kind(_lonely),
    "anti-affinity to pods in all zones": Kind(_kept_away, _everywhere),
    "spread over a label that no node has": Kind(_spread),
    "toleration": Kind(_intolerant, dedicate),
    "host port of a DaemonSet": Kind(_port, _exporter),
    "scheduling gate": Kind(_gated),
    "PersistentVolumeClaim is missing": Kind(_no_claim, volume),
    "StorageClass is missing": Kind(_other_claim, volume),
    "zones of the NodePool and a volume": Kind(_requirement(ZONE, "us-west-2b"), volume),
    "requests of a DaemonSet": Kind(_daemons, _small_nodes),
}
