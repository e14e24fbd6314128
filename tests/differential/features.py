"""The table of features: what each is called, what draws it into a world, and whether a world has it.

Whether a world has a feature is read from its manifests, so that a world that was made smaller is counted for what is
left of it, and a feature that another one undid is not counted at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kerf_api import labels
from tests.differential import supply, wishes
from tests.differential.draft import GPU, PREFERRED, REQUIRED, Draft, Json


@dataclass(frozen=True, slots=True)
class Feature:
    name: str
    draw: Callable[[Draft], None]
    found: Callable[[Json], bool]

    def __str__(self) -> str:
        return self.name


# --- looking ------------------------------------------------------------------------------------------------------
def _specs(world: Json) -> Iterator[Json]:
    """Of the pods that are to be placed: those that wait, and those on nodes that go."""
    yield from (pod["spec"] for pod in world["pods"])
    for node in world["nodes"]:
        if _kind(node) == "deleting":
            yield from (pod["spec"] for pod in node["pods"])


def _pods(test: Callable[[Json], Any]) -> Callable[[Json], bool]:
    return lambda world: any(test(spec) for spec in _specs(world))


def _pools(test: Callable[[Json], Any]) -> Callable[[Json], bool]:
    return lambda world: any(test(pool["spec"]) for pool in world["nodePools"])


def _templates(test: Callable[[Json], Any]) -> Callable[[Json], bool]:
    return _pools(lambda spec: test(spec["template"]["spec"]))


def _nodes(kind: str) -> Callable[[Json], bool]:
    return lambda world: any(_kind(node) == kind for node in world["nodes"])


def _kind(entry: Json) -> str:
    node, claim = entry.get("node"), entry.get("nodeClaim")
    if claim is None:
        return "unmanaged"
    if "deletionTimestamp" in claim["metadata"]:
        return "deleting"
    return "existing" if node and labels.INITIALIZED in node["metadata"]["labels"] else "in-flight"


def _terms(spec: Json, kind: str, strength: str) -> list[Json]:
    found = spec.get("affinity", {}).get(kind, {}).get(strength, [])
    terms: list[Json] = found["nodeSelectorTerms"] if isinstance(found, dict) else found
    return terms


def _has_terms(kind: str, strength: str, least: int = 1) -> Callable[[Json], bool]:
    return _pods(lambda spec: len(_terms(spec, kind, strength)) >= least)


def _spread(test: Callable[[Json], Any]) -> Callable[[Json], bool]:
    return _pods(lambda spec: any(test(row) for row in spec.get("topologySpreadConstraints", [])))


def _company(field: str) -> Callable[[Json], bool]:
    kinds = ("podAffinity", "podAntiAffinity")
    return _pods(lambda spec: any(field in term for kind in kinds for term in _terms(spec, kind, REQUIRED)))


def _tainted(*effects: str) -> Callable[[Json], bool]:
    return _templates(lambda spec: any(taint["effect"] in effects for taint in spec.get("taints", [])))


def _min_values(policy: str) -> Callable[[Json], bool]:
    some = _templates(lambda spec: any("minValues" in row for row in spec["requirements"]))
    return lambda world: some(world) and world["settings"].get("minValuesPolicy", "Strict") == policy


def _ignored(world: Json) -> bool:
    """The policy counts where there is a preference to ignore."""
    soft = any(_has_terms(kind, PREFERRED)(world) for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity"))
    return world["settings"].get("preferencePolicy") == "Ignore" and (soft or _anyway(world))


_anyway: Final = _spread(lambda row: row["whenUnsatisfiable"] == "ScheduleAnyway")


def _shunned(world: Json) -> bool:
    """A pod that runs on a node that stays shuns somebody."""
    there = (pod for node in world["nodes"] if _kind(node) != "deleting" for pod in node.get("pods", []))
    return any(_terms(pod["spec"], "podAntiAffinity", REQUIRED) for pod in there)


def _inits(spec: Json, policy: str) -> bool:
    return any(one.get("restartPolicy", "") == policy for one in spec.get("initContainers", []))


def _volumes(kind: str) -> Callable[[Json], bool]:
    return _pods(lambda spec: any(kind in volume for volume in spec.get("volumes", [])))


def _stored(where: str, test: Callable[[Json], Any]) -> Callable[[Json], bool]:
    return lambda world: any(test(one) for one in world["storage"].get(where, []))


def _offerings(test: Callable[[Json], Any]) -> Callable[[Json], bool]:
    return lambda world: any(test(row) for row in world["instanceTypes"])


def _with_preferences(draft: Draft) -> None:
    supply.ignored_preferences(draft)
    draft.dice.choice((wishes.preferred_terms, wishes.schedule_anyway, wishes.preferred_pod_anti_affinity))(draft)


# --- the table ----------------------------------------------------------------------------------------------------
#: What makes pools and nodes comes before what rests on them.
FEATURES: Final = (
    Feature("weight", supply.weight, _pools(lambda spec: "weight" in spec)),
    Feature("limits", supply.limits, _pools(lambda spec: spec.get("limits", {}).keys() - {"nodes"})),
    Feature("limits: nodes", supply.node_limits, _pools(lambda spec: "nodes" in spec.get("limits", {}))),
    Feature("template labels", supply.template_labels, _pools(lambda s: s["template"]["metadata"]["labels"])),
    Feature("template taints", supply.template_taints, _tainted("NoSchedule", "NoExecute")),
    Feature("startup taints", supply.startup_taints, _templates(lambda spec: spec.get("startupTaints"))),
    Feature("requirements", supply.requirements, _templates(lambda spec: spec["requirements"])),
    Feature("minValues: Strict", supply.min_values_strict, _min_values("Strict")),
    Feature("minValues: BestEffort", supply.min_values_best_effort, _min_values("BestEffort")),
    Feature("sold out", supply.sold_out, _offerings(lambda row: any(not o["available"] for o in row["offerings"]))),
    Feature("not sold everywhere", supply.not_sold, _offerings(lambda row: len(row["offerings"]) < 6)),
    Feature("existing nodes", supply.existing_nodes, _nodes("existing")),
    Feature("in-flight nodes", supply.in_flight_nodes, _nodes("in-flight")),
    Feature("deleting nodes", supply.deleting_nodes, _nodes("deleting")),
    Feature("unmanaged nodes", supply.unmanaged_nodes, _nodes("unmanaged")),
    Feature("daemon sets", supply.daemon_sets, lambda world: bool(world["daemonSets"])),
    Feature(
        "extended resources",
        wishes.extended_resources,
        _pods(lambda spec: any(GPU in one["resources"].get("requests", {}) for one in spec["containers"])),
    ),
    Feature("init containers", wishes.init_containers, _pods(lambda spec: _inits(spec, ""))),
    Feature("sidecars", wishes.sidecars, _pods(lambda spec: _inits(spec, "Always"))),
    Feature("overhead", wishes.overhead, _pods(lambda spec: "overhead" in spec)),
    Feature("pod-level resources", wishes.pod_level_resources, _pods(lambda spec: "resources" in spec)),
    Feature(
        "host ports",
        wishes.host_ports,
        _pods(lambda spec: any(port.get("hostPort") for one in spec["containers"] for port in one.get("ports", []))),
    ),
    Feature("priorities", wishes.priorities, _pods(lambda spec: spec.get("priority"))),
    Feature("node selector", wishes.node_selector, _pods(lambda spec: spec.get("nodeSelector"))),
    Feature("required terms: OR", wishes.required_terms, _has_terms("nodeAffinity", REQUIRED, 2)),
    Feature("preferred terms", wishes.preferred_terms, _has_terms("nodeAffinity", PREFERRED)),
    Feature("tolerations", wishes.tolerations, _pods(lambda spec: spec.get("tolerations"))),
    Feature("PreferNoSchedule", wishes.prefer_no_schedule, _tainted("PreferNoSchedule")),
    Feature("spread", wishes.spread, _spread(lambda row: row["whenUnsatisfiable"] == "DoNotSchedule")),
    Feature("spread: minDomains", wishes.min_domains, _spread(lambda row: "minDomains" in row)),
    Feature(
        "spread: nodeAffinityPolicy", wishes.node_affinity_policy, _spread(lambda row: "nodeAffinityPolicy" in row)
    ),
    Feature("spread: nodeTaintsPolicy", wishes.node_taints_policy, _spread(lambda row: "nodeTaintsPolicy" in row)),
    Feature("spread: matchLabelKeys", wishes.match_label_keys, _spread(lambda row: "matchLabelKeys" in row)),
    Feature("spread: ScheduleAnyway", wishes.schedule_anyway, _anyway),
    Feature("pod affinity", wishes.pod_affinity, _has_terms("podAffinity", REQUIRED)),
    Feature("pod anti-affinity", wishes.pod_anti_affinity, _has_terms("podAntiAffinity", REQUIRED)),
    Feature("preferred pod affinity", wishes.preferred_pod_affinity, _has_terms("podAffinity", PREFERRED)),
    Feature(
        "preferred pod anti-affinity", wishes.preferred_pod_anti_affinity, _has_terms("podAntiAffinity", PREFERRED)
    ),
    Feature("inverse anti-affinity", wishes.inverse_anti_affinity, _shunned),
    Feature("namespaces", wishes.namespaces, _company("namespaces")),
    Feature("namespaceSelector", wishes.namespace_selector, _company("namespaceSelector")),
    Feature("bound volumes", supply.bound_volumes, _stored("persistentVolumes", bool)),
    Feature("WaitForFirstConsumer", supply.late_volumes, _stored("storageClasses", bool)),
    Feature(
        "allowedTopologies",
        supply.allowed_topologies,
        _stored("storageClasses", lambda one: "allowedTopologies" in one),
    ),
    Feature("ephemeral volumes", supply.ephemeral_volumes, _volumes("ephemeral")),
    Feature("PREFERENCE_POLICY=Ignore", _with_preferences, _ignored),
)
