"""Worlds that the real kube-scheduler binds: workloads, NodePools and volumes made from seeds, as users apply them.

A world is drawn from the table of features that the worlds beside Karpenter's scheduler are drawn from
(`tests/differential/features.py`), with more pods, and becomes manifests for a real API server: Deployments, of one pod
each where each has a volume of its own, so that a pod that had to make room for another comes again. All worlds live in
one cluster at the same time, each in namespaces of its own and on nodes of its own, which carry its name as a label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from kerf.provisioning.pending import pending_pods
from kerf.scheduling.solve import SolveOptions, solve
from tests.differential.draft import GPU, ZONES, Draft, Json, Workload, filled, template_spec
from tests.differential.features import FEATURES, Feature
from tests.differential.generator import begun, manifests
from tests.differential.ours import snapshot_of

#: The label of a world's nodes and pods; and that of the pods of one workload.
WORLD: Final = "example.com/world"
WORKLOAD: Final = "example.com/workload"
#: What needs nodes from before, another setting of the controller, or a market that the price list does not have.
LEFT_OUT: Final = frozenset(
    {
        "existing nodes",
        "in-flight nodes",
        "deleting nodes",
        "unmanaged nodes",
        "inverse anti-affinity",
        "sold out",
        "not sold everywhere",
        "minValues: BestEffort",
        "PREFERENCE_POLICY=Ignore",
    }
)
DRAWN: Final = tuple(feature for feature in FEATURES if feature.name not in LEFT_OUT)
#: So many features go into a world.
FEATURES_EACH: Final = 5
#: By how much a workload of the small worlds grows here, and what NodePools allow with it.
_GROWTH: Final = (1, 1, 2, 3, 5)
_LIMITS_GROWTH: Final = 8
_REGION: Final = "us-west-2"
#: What tells such pods of one workload apart.
MEMBER: Final = "example.com/member"
#: A kubelet that is late costs no pod.
_PATIENT: Final = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
_STORAGE: Final = {"requests": {"storage": "1Gi"}}


@dataclass(frozen=True, slots=True)
class BindingWorld:
    """`ground` (namespaces, classes, volumes, NodePools) is applied before `work` (what makes pods)."""

    name: str
    features: tuple[str, ...]
    ground: tuple[Json, ...]
    work: tuple[Json, ...]
    pods: int


def worlds(count: int) -> tuple[BindingWorld, ...]:
    """The first worlds; each feature is in about as many of them as any other."""
    deck, found = _deck(), list[BindingWorld]()
    while len(found) < count:
        found.append(_world(len(found), [next(deck) for _ in range(FEATURES_EACH)]))
    return tuple(found)


def common() -> tuple[Json, ...]:
    """What all worlds share: the classes of priorities that the table has."""
    return tuple(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": _priority_class(value)},
            "value": value,
        }
        for value in (100, 1000)
    )


def _deck() -> Iterator[Feature]:
    """The features, shuffled anew whenever all have been drawn."""
    dice = Random("features of the worlds that are bound")
    while True:
        yield from dice.sample(DRAWN, len(DRAWN))


def _world(number: int, chosen: Sequence[Feature]) -> BindingWorld:
    """The first draft with these features in which all pods have a place."""
    name = f"w{number:02}"
    ordered = [feature for feature in FEATURES if feature in chosen]
    for attempt in range(100):
        draft = _draft(Random(f"{name} {attempt}"), ordered)
        small = manifests(draft)
        small["nodes"] = []
        if all(feature.found(small) for feature in ordered) and _all_placed(small):
            return _Planting(name, draft).world(tuple(feature.name for feature in ordered))
    raise ValueError(f"no draft of {name} with {', '.join(map(str, ordered))} has a place for all pods")


def _all_placed(small: Json) -> bool:
    snapshot = snapshot_of(small)
    pending, refused = pending_pods(snapshot)
    return not refused and not solve(snapshot, pending, SolveOptions(reasons=False)).unplaced


def _draft(dice: Random, features: Sequence[Feature]) -> Draft:
    draft = begun(dice)
    for workload in draft.workloads:
        workload.count *= dice.choice(_GROWTH)
    for feature in features:
        feature.draw(draft)
    draft.nodes.clear()
    for pool in draft.pools:
        for resource, text in pool["spec"].get("limits", {}).items():
            pool["spec"]["limits"][resource] = _more(text)
    for workload in draft.workloads:
        resources = workload.container["resources"]
        for amounts in (resources["requests"], resources.get("limits", {})):
            amounts.update({GPU: "1"} if GPU in amounts else {})
    return draft


def _more(text: str) -> str:
    number = text.rstrip("Gi")
    return f"{int(number) * _LIMITS_GROWTH}{text[len(number) :]}"


def _priority_class(value: int) -> str:
    return f"priority-{value}"


class _Planting:
    """A draft as manifests for a real API server, under names that no other world has."""

    def __init__(self, name: str, draft: Draft) -> None:
        self._name, self._draft = name, draft
        apps = {workload.labels["app"] for workload in draft.workloads}
        apps |= {one["metadata"]["name"] for one in draft.daemon_sets}
        classes = {one["metadata"]["name"] for one in draft.storage.get("storageClasses", [])}
        self._names = {zone: f"{_REGION}{zone[-1]}" for zone in ZONES}
        self._names |= {one: f"{name}-{one}" for one in apps | classes}

    def world(self, features: tuple[str, ...]) -> BindingWorld:
        draft = self._draft
        ground = [*self._namespaces(), *self._storage(), *map(self._node_pool, draft.pools)]
        work = [*map(self._daemon_set, draft.daemon_sets)]
        for number, workload in enumerate(draft.workloads):
            spec, classes = self._pod_spec(workload, f"{self._name}-{number}")
            ground += classes
            work += self._one_by_one(workload, spec) if workload.storage else [self._deployment(workload, spec)]
        return BindingWorld(
            self._name, features, tuple(ground), tuple(work), sum(workload.count for workload in draft.workloads)
        )

    # --- names ------------------------------------------------------------------------------------------------
    def _own(self, value: Any) -> Any:
        """A copy with this world's names."""
        if isinstance(value, dict):
            return {key: self._spaced(one) if key == "namespaces" else self._own(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._own(one) for one in value]
        return self._names.get(value, value) if isinstance(value, str) else value

    def _spaced(self, names: Sequence[str]) -> list[str]:
        return [self._space(name) for name in names]

    def _space(self, name: str) -> str:
        return f"{self._name}-{name}"

    # --- ground -----------------------------------------------------------------------------------------------
    def _namespaces(self) -> Iterator[Json]:
        own: Mapping[str, Mapping[str, str]] = self._draft.namespaces
        for name in sorted({"default", *own, *(workload.namespace for workload in self._draft.workloads)}):
            labels = {WORLD: self._name, **own.get(name, {})}
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._space(name), "labels": labels}}

    def _node_pool(self, drafted: Json) -> Json:
        """Nodes that pods came to stay as they are: what the binding leaves behind is to be seen. Empty ones go."""
        pool = self._own(drafted)
        template_spec(pool)["expireAfter"] = "Never"
        pool["spec"]["template"]["metadata"]["labels"][WORLD] = self._name
        pool["spec"]["disruption"] = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s"}
        name = self._space(drafted["metadata"]["name"])
        return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": pool["spec"]}

    def _storage(self) -> Iterator[Json]:
        for drafted in self._draft.storage.get("storageClasses", []):
            made = self._own(drafted)
            name = made["metadata"]["name"]
            yield {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **made, "metadata": {"name": name}}
        for drafted in self._draft.storage.get("persistentVolumes", []):
            claim = drafted["metadata"]["name"].removeprefix("pv-")
            made = self._own(drafted["spec"])
            made |= {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": ""}
            space = next(w.namespace for w in self._draft.workloads if claim.startswith(f"{w.name}-"))
            made["claimRef"] = {"namespace": self._space(space), "name": claim}
            meta = {"name": f"{self._name}-{drafted['metadata']['name']}"}
            yield {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": made}

    # --- work -------------------------------------------------------------------------------------------------
    def _daemon_set(self, drafted: Json) -> Json:
        made = self._own(drafted)
        made["metadata"] = {"name": drafted["metadata"]["name"], "namespace": self._space("default")}
        self._mark(made["spec"]["template"]["spec"])
        return {"apiVersion": "apps/v1", "kind": "DaemonSet", **made}

    def _mark(self, spec: Json) -> None:
        spec.setdefault("nodeSelector", {})[WORLD] = self._name
        spec["terminationGracePeriodSeconds"] = 0

    def _pod_spec(self, workload: Workload, name: str) -> tuple[Json, list[Json]]:
        """The spec as the API server takes it: overhead and priority come by classes."""
        spec, classes = self._own(workload.spec), list[Json]()
        self._mark(spec)
        if priority := spec.pop("priority", 0):
            spec["priorityClassName"] = _priority_class(priority)
        if overhead := spec.pop("overhead", None):
            spec["runtimeClassName"] = name
            kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "sandboxed"}
            classes.append({**kind, "metadata": {"name": name}, "overhead": {"podFixed": overhead}})
        for volume in spec.get("volumes", []):
            if "ephemeral" in volume:
                volume["ephemeral"]["volumeClaimTemplate"]["spec"]["resources"] = _STORAGE
        return spec, classes

    def _labels(self, workload: Workload) -> dict[str, str]:
        own: dict[str, str] = self._own(workload.labels)
        return {**own, WORLD: self._name, WORKLOAD: workload.name}

    def _deployment(self, workload: Workload, spec: Json, member: str = "") -> Json:
        """All pods of a workload, or one of them."""
        own = {WORKLOAD: workload.name, **({MEMBER: member} if member else {})}
        spec.setdefault("tolerations", []).append(_PATIENT)
        template = {"metadata": {"labels": {**self._labels(workload), **own}}, "spec": spec}
        name = f"{workload.name}-{member}" if member else workload.name
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": self._space(workload.namespace)},
            "spec": {
                "replicas": 1 if member else workload.count,
                "selector": {"matchLabels": own},
                "template": template,
            },
        }

    def _one_by_one(self, workload: Workload, spec: Json) -> Iterator[Json]:
        space = self._space(workload.namespace)
        made_for_pod = {f"{{pod}}-{volume['name']}" for volume in spec["volumes"] if "ephemeral" in volume}
        for number in range(workload.count):
            name = f"{workload.name}-{number}"
            for _, drafted in workload.storage:
                if drafted["metadata"]["name"] not in made_for_pod:
                    yield self._claim(filled(drafted, name), space)
            yield self._deployment(workload, filled(spec, name), str(number))

    def _claim(self, drafted: Json, space: str) -> Json:
        """A volume that exists is bound by the cluster's own controller, for it names its claim."""
        spec = self._own(drafted["spec"]) | {"resources": _STORAGE}
        if "volumeName" in spec:
            spec |= {"volumeName": f"{self._name}-{spec['volumeName']}", "storageClassName": ""}
        meta = {"name": drafted["metadata"]["name"], "namespace": space}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
