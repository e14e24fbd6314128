"""The table of features: the name of each, the function that draws it into a world, and whether a world has it.

Whether a world has a feature is read from its manifests: a feature that another one undid is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kerf_api import labels
from tests.differential import supply, wishes
from tests.differential.draft import GPU, REQUIRED, TEAM, Json
from tests.oracle import draws_nodes as nodes
from tests.oracle import draws_pods as pods
from tests.oracle.sketch import RACK, Sketch, bound, containers, on_node, pending

Found = Callable[[Json], Any]


@dataclass(frozen=True, slots=True)
class Feature:
    name: str
    draw: Callable[[Sketch], None]
    found: Found

    def __str__(self) -> str:
        return self.name


# --- reading a world ----------------------------------------------------------------------------------------------
def _any(some: Callable[[Json], Iterable[Json]], test: Found) -> Found:
    return lambda world: any(test(one) for one in some(world))


def _pending(test: Found) -> Found:
    """A pod that waits has a spec like that."""
    return _any(pending, lambda pod: test(pod["spec"]))


def _bound(test: Found) -> Found:
    return _any(bound, test)


def _nodes(test: Found) -> Found:
    return _any(lambda world: world["nodes"], test)


def _terms(spec: Json, *kinds: str) -> Iterator[Json]:
    for kind in kinds:
        yield from spec.get("affinity", {}).get(kind, {}).get(REQUIRED, [])


_COMPANY: Final = ("podAffinity", "podAntiAffinity")


def _node_terms(spec: Json) -> list[Json]:
    found: list[Json] = spec.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms", [])
    return found


def _operator(name: str) -> Found:
    return _pending(
        lambda spec: any(row["operator"] == name for t in _node_terms(spec) for row in t.get("matchExpressions", []))
    )


def _rows(test: Found) -> Found:
    """A required spread constraint of a pod that waits."""
    return _pending(lambda spec: any(test(row) for row in hard(spec)))


def hard(spec: Json) -> list[Json]:
    rows = spec.get("topologySpreadConstraints", [])
    return [row for row in rows if row["whenUnsatisfiable"] == "DoNotSchedule"]


def _term(test: Found, *kinds: str) -> Found:
    return _pending(lambda spec: any(test(term) for term in _terms(spec, *(kinds or _COMPANY))))


def ports_of(spec: Json) -> list[Json]:
    return [port for one in containers(spec) for port in one.get("ports", []) if port.get("hostPort")]


def _sidecars(spec: Json) -> list[Json]:
    return [one for one in spec.get("initContainers", []) if one.get("restartPolicy") == "Always"]


def _plain(spec: Json) -> list[Json]:
    return [one for one in spec.get("initContainers", []) if one.get("restartPolicy") != "Always"]


def _asks(resource: str) -> Found:
    return _pending(lambda s: any(resource in c["resources"].get("requests", {}) for c in s["containers"]))


def _full(world: Json) -> bool:
    return any(
        len(on_node(world, node["metadata"]["name"])) >= int(node["status"]["allocatable"]["pods"])
        or node["status"]["allocatable"]["cpu"] == "50m"
        for node in world["nodes"]
    )


def _selects(selector: Json, own: dict[str, str]) -> bool:
    """Of `matchLabels` alone."""
    return all(own.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def _counts_itself(spread: Json, pod: Json) -> bool:
    """Whether a spread counts its own pod; with an empty selector it counts none."""
    return bool(spread["labelSelector"]) and _selects(spread["labelSelector"], pod["metadata"]["labels"])


def meant(spec: Json, kind: str, others: Iterable[Json]) -> bool:
    listed = list(others)
    return any(
        _selects(term["labelSelector"], pod["metadata"]["labels"]) for term in _terms(spec, kind) for pod in listed
    )


def _meets_daemons(kind: str) -> Found:
    def found(world: Json) -> bool:
        made = [daemon_set["spec"]["template"] for daemon_set in world["daemonSets"]]
        return any(meant(pod["spec"], kind, made) for pod in pending(world))

    return found


def _first(world: Json) -> bool:
    there = bound(world)
    return any(
        meant(pod["spec"], "podAffinity", [pod]) and not meant(pod["spec"], "podAffinity", there)
        for pod in pending(world)
    )


def _between(kind: str, others: Callable[[Json], list[Json]]) -> Found:
    def found(world: Json) -> bool:
        listed = others(world)
        return any(
            meant(pod["spec"], kind, [one for one in listed if one["metadata"]["labels"] != pod["metadata"]["labels"]])
            for pod in pending(world)
        )

    return found


def _daemon_terms(daemon_set: Json) -> Iterator[Json]:
    return _terms(daemon_set["spec"]["template"]["spec"], "podAntiAffinity")


def _foreign(world: Json) -> bool:
    """A pod with a spread and a node selector that one NodePool's template labels contradict."""
    pools = [pool["spec"]["template"]["metadata"]["labels"] for pool in world["nodePools"]]
    return any(
        hard(pod["spec"]) and any(own.get(TEAM, value) != value for own in pools)
        for pod in pending(world)
        for value in [pod["spec"].get("nodeSelector", {}).get(TEAM)]
        if value is not None
    )


def _resizing(reason: str) -> Found:
    return _bound(
        lambda pod: (
            "containerStatuses" in pod["status"]
            and any(
                c["type"] == "PodResizeInProgress" or c.get("reason") == reason for c in pod["status"]["conditions"]
            )
        )
    )


def _nominated(world: Json) -> set[bool]:
    """Whether the nodes are there that pods are nominated to."""
    names = {node["metadata"]["name"] for node in world["nodes"]}
    named = (pod["status"].get("nominatedNodeName") for pod in world["pods"])
    return {name in names for name in named if name}


def _claims(test: Found) -> Found:
    return lambda world: any(test(one) for one in world["persistentVolumeClaims"])


def _both_namespaces(world: Json) -> bool:
    return len({pod["metadata"]["namespace"] for pod in world["pods"]}) > 1


def _template_taints(*effects: str) -> Found:
    return lambda world: any(
        row["effect"] in effects
        for pool in world["nodePools"]
        for row in pool["spec"]["template"]["spec"].get("taints", [])
    )


def _tainted(effect: str) -> Found:
    return _nodes(lambda node: any(t["effect"] == effect and t["key"] == TEAM for t in node["spec"].get("taints", [])))


# --- the table ----------------------------------------------------------------------------------------------------
#: NodePools and nodes come before the features that use them.
FEATURES: Final = (
    Feature("NodePool taints", supply.template_taints, _template_taints("NoSchedule", "NoExecute")),
    Feature(
        "NodePool requirements",
        supply.requirements,
        lambda w: any(pool["spec"]["template"]["spec"]["requirements"] for pool in w["nodePools"]),
    ),
    Feature("NodePool limits", supply.limits, lambda w: any("limits" in pool["spec"] for pool in w["nodePools"])),
    Feature(
        "sold out",
        supply.sold_out,
        lambda w: any(not o["available"] for row in w["instanceTypes"] for o in row["offerings"]),
    ),
    Feature("unmanaged nodes", supply.unmanaged_nodes, lambda w: len(w["nodes"]) > len(w["nodeClaims"])),
    # requests
    Feature("ephemeral storage", pods.ephemeral_storage, _asks("ephemeral-storage")),
    Feature("extended resources", wishes.extended_resources, _asks(GPU)),
    Feature("no requests", pods.no_requests, _pending(lambda s: not s["containers"][0]["resources"]["requests"])),
    Feature("overhead", wishes.overhead, _pending(lambda spec: "overhead" in spec)),
    Feature("init containers", wishes.init_containers, _pending(_plain)),
    Feature("sidecars", wishes.sidecars, _pending(_sidecars)),
    Feature("sidecars and init containers", pods.many_containers, _pending(lambda s: len(s["containers"]) > 1)),
    Feature("pod-level resources", wishes.pod_level_resources, _pending(lambda spec: "resources" in spec)),
    Feature(
        "pod-level resources: one",
        pods.pod_level_partly,
        _pending(lambda spec: len(spec.get("resources", {}).get("requests", {})) == 1),
    ),
    Feature("resize: in progress", nodes.resize("InProgress"), _resizing("InProgress")),
    Feature("resize: deferred", nodes.resize("Deferred"), _resizing("Deferred")),
    Feature("resize: infeasible", nodes.resize("Infeasible"), _resizing("Infeasible")),
    Feature("resize: pod-level", nodes.resize_of_the_pod, _bound(lambda pod: "allocatedResources" in pod["status"])),
    # ports
    Feature("host ports", wishes.host_ports, _pending(ports_of)),
    Feature(
        "host ports: addresses",
        pods.host_addresses,
        _pending(lambda spec: any("hostIP" in port for port in ports_of(spec))),
    ),
    Feature(
        "host ports: protocols",
        pods.host_addresses,
        _pending(lambda spec: any(port["protocol"] == "UDP" for port in ports_of(spec))),
    ),
    Feature(
        "host ports of sidecars",
        pods.sidecar_ports,
        _pending(lambda spec: any(one.get("ports") for one in _sidecars(spec))),
    ),
    Feature(
        "host ports of init containers",
        pods.init_ports,
        _pending(lambda spec: any(one.get("ports") for one in _plain(spec))),
    ),
    # node selection
    Feature("custom labels", pods.racks, _nodes(lambda node: RACK in node["metadata"]["labels"])),
    Feature("node selector", wishes.node_selector, _pending(lambda spec: spec.get("nodeSelector"))),
    *(
        Feature(f"node affinity: {name}", pods.operator(name), _operator(name))
        for name in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
    ),
    Feature("node affinity: OR", wishes.required_terms, _pending(lambda spec: len(_node_terms(spec)) > 1)),
    Feature(
        "node affinity: matchFields",
        pods.match_fields,
        _pending(lambda spec: any("matchFields" in term for term in _node_terms(spec))),
    ),
    Feature(
        "node affinity: empty term", pods.empty_terms, _pending(lambda spec: any(not t for t in _node_terms(spec)))
    ),
    Feature("taints: NoSchedule", nodes.tainted("NoSchedule"), _tainted("NoSchedule")),
    Feature("taints: NoExecute", nodes.tainted("NoExecute"), _tainted("NoExecute")),
    Feature("taints: PreferNoSchedule", nodes.tainted("PreferNoSchedule"), _tainted("PreferNoSchedule")),
    Feature("tolerations", pods.all_tolerations, _pending(lambda spec: spec.get("tolerations"))),
    Feature("cordoned nodes", nodes.cordoned, _nodes(lambda node: node["spec"].get("unschedulable"))),
    Feature("full nodes", nodes.full, _full),
    Feature("nodes without a zone", nodes.lacking_zone, _nodes(lambda n: labels.ZONE not in n["metadata"]["labels"])),
    # company
    Feature("pod affinity", wishes.pod_affinity, _pending(lambda spec: any(_terms(spec, "podAffinity")))),
    Feature("pod anti-affinity", wishes.pod_anti_affinity, _pending(lambda spec: any(_terms(spec, "podAntiAffinity")))),
    Feature(
        "anti-affinity of bound pods",
        wishes.inverse_anti_affinity,
        _bound(lambda pod: any(_terms(pod["spec"], "podAntiAffinity"))),
    ),
    Feature("affinity to bound pods", pods.affinity_to_bound, _between("podAffinity", bound)),
    Feature("affinity to pending pods", pods.affinity_to_pending, _between("podAffinity", pending)),
    Feature("affinity: first of its kind", pods.first_of_its_kind, _first),
    Feature(
        "affinity: several terms",
        pods.several_terms,
        _pending(lambda spec: len(list(_terms(spec, "podAffinity"))) > 1),
    ),
    Feature(
        "anti-affinity: several terms",
        pods.several_anti_terms,
        _pending(lambda spec: len(list(_terms(spec, "podAntiAffinity"))) > 1),
    ),
    Feature("affinity: zone", wishes.pod_affinity, _term(lambda term: term["topologyKey"] == labels.ZONE)),
    Feature("affinity: custom key", pods.custom_key, _term(lambda term: term["topologyKey"] == RACK)),
    Feature("affinity: matchLabelKeys", pods.label_keys("matchLabelKeys"), _term(lambda t: "matchLabelKeys" in t)),
    Feature(
        "affinity: mismatchLabelKeys", pods.label_keys("mismatchLabelKeys"), _term(lambda t: "mismatchLabelKeys" in t)
    ),
    Feature("affinity: namespaces", wishes.namespaces, _term(lambda term: "namespaces" in term)),
    Feature("affinity: namespaceSelector", wishes.namespace_selector, _term(lambda term: "namespaceSelector" in term)),
    Feature("several namespaces", wishes.namespaces, _both_namespaces),
    # spread
    Feature("spread", wishes.spread, _rows(bool)),
    Feature("spread: maxSkew", pods.wide_spread, _rows(lambda row: row["maxSkew"] > 1)),
    Feature("spread: minDomains", wishes.min_domains, _rows(lambda row: "minDomains" in row)),
    Feature("spread: nodeAffinityPolicy", wishes.node_affinity_policy, _rows(lambda row: "nodeAffinityPolicy" in row)),
    Feature("spread: nodeTaintsPolicy", wishes.node_taints_policy, _rows(lambda row: "nodeTaintsPolicy" in row)),
    Feature("spread: matchLabelKeys", wishes.match_label_keys, _rows(lambda row: "matchLabelKeys" in row)),
    Feature(
        "spread: several keys",
        pods.several_keys,
        _pending(lambda spec: len({row["topologyKey"] for row in hard(spec)}) > 1),
    ),
    Feature("spread: nodes lack a key", pods.rare_key, nodes.lacks_a_spread_key),
    Feature("spread: foreign NodePools", pods.foreign_pools, _foreign),
    Feature(
        "spread: selects other pods",
        pods.spread_selects_others,
        _any(
            pending,
            lambda pod: not all(_counts_itself(row, pod) for row in hard(pod["spec"])),
        ),
    ),
    # pods that run
    Feature(
        "terminating: short grace",
        nodes.terminating(nodes.SOON),
        _bound(lambda pod: pod["metadata"].get("deletionTimestamp") == nodes.SOON),
    ),
    Feature(
        "terminating: long grace",
        nodes.terminating(nodes.LATER),
        _bound(lambda pod: pod["metadata"].get("deletionTimestamp") == nodes.LATER),
    ),
    Feature("nominated pods", pods.nominated, lambda world: True in _nominated(world)),
    Feature("nominated to a gone node", pods.nominated_to_a_gone_node, lambda world: False in _nominated(world)),
    Feature("priorities", wishes.priorities, _pending(lambda spec: spec.get("priority"))),
    # daemon pods
    Feature("daemon pods", nodes.daemon_sets, _bound(lambda pod: "ownerReferences" in pod["metadata"])),
    Feature(
        "daemon pods: host ports",
        nodes.daemon_ports,
        lambda world: any(ports_of(one["spec"]["template"]["spec"]) for one in world["daemonSets"]),
    ),
    Feature("affinity to daemon pods", nodes.pods_meet_daemons("podAffinity"), _meets_daemons("podAffinity")),
    Feature(
        "anti-affinity to daemon pods", nodes.pods_meet_daemons("podAntiAffinity"), _meets_daemons("podAntiAffinity")
    ),
    Feature(
        "anti-affinity of daemon pods",
        nodes.daemons_shun_pods,
        lambda world: any(any(_daemon_terms(one)) for one in world["daemonSets"]),
    ),
    Feature(
        "spread: daemon pods",
        nodes.spread_counts_daemons,
        lambda world: (
            bool(world["daemonSets"]) and _rows(lambda r: "part" in r["labelSelector"].get("matchLabels", {}))(world)
        ),
    ),
    # volumes
    Feature(
        "volumes: node affinity",
        supply.bound_volumes,
        lambda world: any("nodeAffinity" in one["spec"] for one in world["persistentVolumes"]),
    ),
    Feature("volumes: labels only", nodes.labelled_volumes, nodes.only_labels),
    Feature("volumes: WaitForFirstConsumer", supply.late_volumes, lambda world: bool(world["storageClasses"])),
    Feature(
        "volumes: allowedTopologies",
        supply.allowed_topologies,
        lambda world: any("allowedTopologies" in one for one in world["storageClasses"]),
    ),
    Feature(
        "volumes: ephemeral",
        supply.ephemeral_volumes,
        _pending(lambda spec: any("ephemeral" in one for one in spec.get("volumes", []))),
    ),
    Feature(
        "volumes: ReadWriteOncePod",
        nodes.one_pod_claims,
        _claims(lambda c: c["spec"]["accessModes"][0].endswith("Pod")),
    ),
    Feature("volumes: attach limits", nodes.attach_limits, lambda world: bool(world["csiNodes"])),
)
