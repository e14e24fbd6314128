"""The kinds of things that keep a node that should go: the cluster before, what makes the node one that should go, and
the blocker; with the words by which the answer has to begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.simulation.why.manifests import with_value
from tests.simulation.why.worlds import ARCH, Manifest, row
from tests.worlds import deployment, node_class, node_pool

#: Why the node should go: it has no pods, its pods fit elsewhere, its NodePool has changed.
EMPTY, UNDERUTILIZED, DRIFTED = "Empty", "Underutilized", "Drifted"
_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
_OFTEN: Final = [{"nodes": "100%"}]
NIGHT: Final = {"nodes": "0", "schedule": "0 0 * * *", "duration": "90m"}


@dataclass(frozen=True)
class Blocked:
    """`named` are words of the first line, any of them. `disruption` and `pool` are the NodePool's, `pod` the pod
    spec's; `annotated` are the pods and `nodes_annotated` the nodes; `changed` is what the NodePool's template becomes;
    `extra` are further manifests. `bare` pods have no controller."""

    reason: str
    named: tuple[str, ...]
    disruption: Mapping[str, Any] | None = None
    pool: Mapping[str, Any] | None = None
    pod: Mapping[str, Any] | None = None
    annotated: str = ""
    nodes_annotated: bool = False
    changed: Mapping[str, Any] | None = None
    extra: tuple[Manifest, ...] = ()
    bare: bool = False

    def nodepool(self) -> Manifest:
        disruption = {"consolidateAfter": "30s", "budgets": _OFTEN, **(self.disruption or {})}
        return node_pool("general", {"disruption": disruption, "labels": {"rev": "1"}, **(self.pool or {})})

    def changed_nodepool(self) -> Manifest:
        """After the change that makes nodes drift."""
        made = self.nodepool()
        for path, value in (self.changed or {'metadata.labels["rev"]': "2"}).items():
            made = with_value(made, f"spec.template.{path}", value)
        return made

    def workload(self) -> Manifest:
        given = {"replicas": 2, "cpu": "1500m", **(self.pod or {})}
        if self.annotated:
            given["annotations"] = {_DO_NOT_DISRUPT: self.annotated}
        return deployment("web", given)

    def before(self) -> tuple[Manifest, ...]:
        return (node_class(), self.nodepool(), self.workload(), *self.extra)


def _pdb(**spec: Any) -> Manifest:
    own = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    return {**kind, "metadata": {"name": "web", "namespace": "default"}, "spec": own}


def _budgets(*rows: Mapping[str, Any]) -> dict[str, Any]:
    return {"budgets": [dict(one) for one in rows]}


def _alone() -> dict[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _spread() -> dict[str, Any]:
    own = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**own, "labelSelector": {"matchLabels": {"app": "web"}}}]}


def _port() -> dict[str, Any]:
    requests = {"cpu": "1500m", "memory": "512Mi"}
    port = [{"containerPort": 8080, "hostPort": 8080}]
    return {"containers": [{"name": "main", "image": "main", "ports": port, "resources": {"requests": requests}}]}


_TAINT: Final = [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}]
_AMD: Final = {"nodeSelector": {ARCH: "amd64"}}
_PDB, _POD, _NODE = (
    ("PodDisruptionBudget default/web",),
    ("annotated karpenter.sh/do-not-disrupt",),
    ("the node is annotated",),
)

BLOCKERS: Final[Mapping[str, Blocked]] = {
    "empty: consolidateAfter Never": Blocked(EMPTY, ("consolidat",), {"consolidateAfter": "Never"}),
    "empty: consolidateAfter has not passed": Blocked(EMPTY, ("Empty",), {"consolidateAfter": "20m"}),
    "empty: a budget of 0": Blocked(EMPTY, ("budgets[0]: nodes 0",), _budgets({"nodes": "0"})),
    "empty: a budget of 0 for Empty": Blocked(
        EMPTY,
        ("budgets[1]: nodes 0",),
        _budgets({"nodes": "100%"}, {"nodes": "0", "reasons": ["Empty", "Underutilized"]}),
    ),
    "empty: a budget with a schedule": Blocked(EMPTY, ("Empty",), _budgets({"nodes": "100%"}, NIGHT)),
    "empty: annotation of the node": Blocked(EMPTY, _NODE, nodes_annotated=True),
    "drift: PDB with maxUnavailable 0": Blocked(DRIFTED, _PDB, extra=(_pdb(maxUnavailable=0),)),
    "drift: PDB with minAvailable of all": Blocked(DRIFTED, _PDB, extra=(_pdb(minAvailable=2),)),
    "drift: PDB with minAvailable 100%": Blocked(DRIFTED, _PDB, extra=(_pdb(minAvailable="100%"),)),
    "drift: annotation of pods": Blocked(DRIFTED, _POD, annotated="true"),
    "drift: annotation of a pod without a controller": Blocked(DRIFTED, _POD, annotated="true", bare=True),
    "drift: annotation of the node": Blocked(DRIFTED, _NODE, nodes_annotated=True),
    "drift: a budget of 0": Blocked(DRIFTED, ("budgets[0]: nodes 0",), _budgets({"nodes": "0"})),
    "drift: a budget of 0 for Drifted": Blocked(
        DRIFTED, ("budgets[1]: nodes 0",), _budgets({"nodes": "100%"}, {"nodes": "0", "reasons": ["Drifted"]})
    ),
    "drift: a budget of 0 %": Blocked(DRIFTED, ("budgets[0]: nodes 0%",), _budgets({"nodes": "0%"})),
    "drift: a taint that pods do not tolerate": Blocked(DRIFTED, ("dedicated",), changed={"spec.taints": _TAINT}),
    "drift: architecture of the NodePool": Blocked(
        DRIFTED, (ARCH,), pod=_AMD, changed={"spec.requirements[-]": row(ARCH, "arm64")}
    ),
    "drift: a label that pods select": Blocked(DRIFTED, ("rev",), pod={"nodeSelector": {"rev": "1"}}),
    "underutilized: consolidateAfter Never": Blocked(UNDERUTILIZED, ("consolidat",), {"consolidateAfter": "Never"}),
    "underutilized: policy WhenEmpty": Blocked(UNDERUTILIZED, ("WhenEmpty",), {"consolidationPolicy": "WhenEmpty"}),
    "underutilized: a budget of 0": Blocked(UNDERUTILIZED, ("budgets[0]: nodes 0",), _budgets({"nodes": "0"})),
    "underutilized: a budget of 0 for Underutilized": Blocked(
        UNDERUTILIZED,
        ("budgets[1]: nodes 0",),
        _budgets({"nodes": "100%"}, {"nodes": "0", "reasons": ["Underutilized"]}),
    ),
    "underutilized: annotation of pods": Blocked(UNDERUTILIZED, _POD, annotated="true"),
    "underutilized: annotation of the node": Blocked(UNDERUTILIZED, _NODE, nodes_annotated=True),
    "underutilized: PDB": Blocked(UNDERUTILIZED, _PDB, extra=(_pdb(maxUnavailable=0),)),
    "underutilized: anti-affinity": Blocked(UNDERUTILIZED, ("anti-affinity", "antiAffinity"), pod=_alone()),
    "underutilized: spread over nodes": Blocked(UNDERUTILIZED, ("spread", "topologySpread"), pod=_spread()),
    "underutilized: host port": Blocked(UNDERUTILIZED, ("host port",), pod=_port()),
}
