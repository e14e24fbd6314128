"""Features of nodes, of the pods that run on them, of daemon pods, volumes and devices. Each changes a sketch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kerf_api import labels
from tests.differential import supply
from tests.differential.draft import REQUIRED, TEAM, Json
from tests.oracle.sketch import RACK, Sketch, bound, daemon_pod, on_node, pending

Draw = Callable[[Sketch], None]
EBS: Final = "ebs.csi.aws.com"
SOON: Final = "2026-01-01T12:00:10Z"
LATER: Final = "2026-01-01T13:00:00Z"
_BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes"}


# --- nodes --------------------------------------------------------------------------------------------------------
def tainted(*effects: str) -> Draw:
    def draw(sketch: Sketch) -> None:
        value = sketch.dice.choice(("red", "blue"))
        _some_nodes(sketch, lambda node: _taint(node, {"key": TEAM, "value": value, "effect": effects[0]}))

    return draw


def cordoned(sketch: Sketch) -> None:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}

    def change(node: Json) -> None:
        node["spec"]["unschedulable"] = True
        if sketch.dice.random() < 0.7:
            _taint(node, taint)

    _some_nodes(sketch, change)


def full(sketch: Sketch) -> None:
    """A node that holds no further pod, by count or by resources."""

    def change(world: Json) -> None:
        node = sketch.dice.choice(world["nodes"])
        for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
            if sketch.dice.random() < 0.6:
                amounts["pods"] = str(len(on_node(world, node["metadata"]["name"])))
            else:
                amounts["cpu"] = "50m"

    sketch.late.append(change)


def lacking_zone(sketch: Sketch) -> None:
    """An unmanaged node without a label for its zone."""

    def change(world: Json) -> None:
        claimed = {claim["metadata"]["name"] for claim in world["nodeClaims"]}
        free = [node for node in world["nodes"] if node["metadata"]["name"] not in claimed]
        if free:
            sketch.dice.choice(free)["metadata"]["labels"].pop(labels.ZONE, None)

    sketch.add_node("unmanaged")
    sketch.late.append(change)


def _some_nodes(sketch: Sketch, change: Callable[[Json], None]) -> None:
    def late(world: Json) -> None:
        for node in sketch.dice.sample(world["nodes"], sketch.dice.randint(1, len(world["nodes"]))):
            change(node)

    sketch.late.append(late)


def _taint(node: Json, taint: Json) -> None:
    rows = node["spec"].setdefault("taints", [])
    if all((row["key"], row["effect"]) != (taint["key"], taint["effect"]) for row in rows):
        rows.append(dict(taint))


# --- pods that run ------------------------------------------------------------------------------------------------
def _some_bound(sketch: Sketch, change: Callable[[Json], None]) -> None:
    """Some pods that run; there is at least one, if a node has capacity for it."""
    sketch.run(sketch.workload(), sketch.dice.choice(sketch.nodes))

    def late(world: Json) -> None:
        there = [pod for pod in bound(world) if "ownerReferences" not in pod["metadata"]]
        for pod in sketch.dice.sample(there, sketch.dice.randint(1, len(there)) if there else 0):
            change(pod)

    sketch.late.append(late)


def terminating(until: str) -> Draw:
    def draw(sketch: Sketch) -> None:
        def change(pod: Json) -> None:
            grace = 3600 if until == LATER else 30
            pod["metadata"] |= {"deletionTimestamp": until, "deletionGracePeriodSeconds": grace}

        _some_bound(sketch, change)

    return draw


def resize(reason: str) -> Draw:
    """A resize that the kubelet has not completed (`Deferred`, `InProgress`), or cannot make (`Infeasible`)."""

    def draw(sketch: Sketch) -> None:
        def change(pod: Json) -> None:
            dice = sketch.dice
            actual = {"cpu": dice.choice(("50m", "700m", "1800m")), "memory": dice.choice(("64Mi", "2500Mi"))}
            name = pod["spec"]["containers"][0]["name"]
            row: Json = {"name": name, "image": "app", "imageID": "", "ready": True, "restartCount": 0}
            row["resources"] = {"requests": actual}
            if dice.random() < 0.6:
                row["allocatedResources"] = {**actual, "cpu": dice.choice((actual["cpu"], "400m"))}
            pod["status"]["containerStatuses"] = [row]
            if reason == "Infeasible":  # more than any node has
                pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"
            kind = "PodResizeInProgress" if reason == "InProgress" else "PodResizePending"
            condition = {"type": kind, "status": "True", "reason": "" if reason == "InProgress" else reason}
            _say(pod, condition)

        _some_bound(sketch, change)

    return draw


def _say(pod: Json, condition: Json) -> None:
    """Set a condition; a pod has one of a type."""
    others = [one for one in pod["status"].get("conditions", []) if one["type"] != condition["type"]]
    pod["status"]["conditions"] = [*others, condition]


def resize_of_the_pod(sketch: Sketch) -> None:
    """A resize of pod-level requests."""

    def change(pod: Json) -> None:
        dice = sketch.dice
        pod["spec"]["resources"] = {"requests": {"cpu": dice.choice(("200m", "900m")), "memory": "1Gi"}}
        actual = {"cpu": dice.choice(("100m", "1500m")), "memory": dice.choice(("512Mi", "2Gi"))}
        pod["status"] |= {"resources": {"requests": actual}, "allocatedResources": actual}
        if dice.random() < 0.4:
            _say(pod, {"type": "PodResizePending", "status": "True", "reason": "Infeasible"})

    _some_bound(sketch, change)


# --- daemon pods --------------------------------------------------------------------------------------------------
def daemon_sets(sketch: Sketch) -> None:
    """DaemonSets, and their pods on the nodes that are there (on some of them they are still missing)."""
    if sketch.daemon_sets:
        return
    supply.daemon_sets(sketch)

    def change(world: Json) -> None:
        for daemon_set in world["daemonSets"]:
            for node in world["nodes"]:
                pod = daemon_pod(daemon_set, node["metadata"]["name"], settled=True)
                known = {one["metadata"]["uid"] for one in world["pods"]}
                if pod["metadata"]["uid"] not in known and _stays(daemon_set, node) and sketch.dice.random() < 0.9:
                    world["pods"].append(pod)

    sketch.late.append(change)


def _stays(daemon_set: Json, node: Json) -> bool:
    spec = daemon_set["spec"]["template"]["spec"]
    wanted = spec.get("nodeSelector", {}).items()
    tolerant = bool(spec.get("tolerations")) or not node["spec"].get("taints")
    return tolerant and all(node["metadata"]["labels"].get(key) == value for key, value in wanted)


def daemon_ports(sketch: Sketch) -> None:
    daemon_sets(sketch)
    port = {"containerPort": 90, "hostPort": 80, "protocol": "TCP"}
    sketch.daemon_sets[-1]["spec"]["template"]["spec"]["containers"][0]["ports"] = [port]
    sketch.several().container["ports"] = [{**port, "hostPort": sketch.dice.choice((80, 81))}]


def pods_meet_daemons(kind: str) -> Draw:
    """Pods with a required term about a DaemonSet's pods."""

    def draw(sketch: Sketch) -> None:
        daemon_sets(sketch)
        labels_of = sketch.daemon_sets[-1]["spec"]["template"]["metadata"]["labels"]
        key = sketch.dice.choice((labels.HOSTNAME, labels.HOSTNAME, labels.ZONE))
        sketch.workload().affinity(kind, REQUIRED).append(
            {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels_of)}}
        )

    return draw


def daemons_shun_pods(sketch: Sketch) -> None:
    """A DaemonSet with anti-affinity to the pods of a workload."""
    daemon_sets(sketch)
    term = {"topologyKey": labels.HOSTNAME, "labelSelector": sketch.workload().app}
    spec = sketch.daemon_sets[-1]["spec"]["template"]["spec"]
    spec["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}


def spread_counts_daemons(sketch: Sketch) -> None:
    """A spread whose selector matches a DaemonSet's pods as well."""
    daemon_sets(sketch)
    workload = sketch.several()
    workload.labels["part"] = "all"
    sketch.daemon_sets[-1]["spec"]["template"]["metadata"]["labels"]["part"] = "all"
    key = sketch.dice.choice((labels.ZONE, labels.HOSTNAME))
    workload.spread(key, labelSelector={"matchLabels": {"part": "all"}}, maxSkew=sketch.dice.choice((1, 2)))


# --- volumes ------------------------------------------------------------------------------------------------------
def labelled_volumes(sketch: Sketch) -> None:
    """PersistentVolumes with labels for their zone, and without node affinity."""

    def change(made: Json) -> None:
        del made["spec"]["nodeAffinity"]
        zones = sketch.dice.choice((["zone-a"], ["zone-b"], ["zone-c"], ["zone-a", "zone-b"]))
        made["metadata"]["labels"] = {labels.ZONE: "__".join(zones)}

    before = len(sketch.storage.get("persistentVolumes", []))
    supply.bound_volumes(sketch)
    for made in sketch.storage.get("persistentVolumes", [])[before:]:
        change(made)


def one_pod_claims(sketch: Sketch) -> None:
    """A claim with ReadWriteOncePod: a pod that runs uses it, or several wait for it."""
    workload, dice = sketch.several(), sketch.dice
    name, used = f"single-{len(sketch.workloads)}", dice.random() < 0.6
    sketch.store("persistentVolumes", _volume(name))
    sketch.store("persistentVolumeClaims", _claim(name, workload.namespace, ["ReadWriteOncePod"]))
    workload.spec.setdefault("volumes", []).append({"name": name, "persistentVolumeClaim": {"claimName": name}})
    if used:
        sketch.run(workload, dice.choice(sketch.nodes))

    def change(world: Json) -> None:
        for pod in bound(world) if used else []:
            if pod["metadata"]["name"].startswith(f"{workload.name}-ran-"):
                pod["spec"]["volumes"] = [{"name": name, "persistentVolumeClaim": {"claimName": name}}]
                return

    sketch.late.append(change)


def attach_limits(sketch: Sketch) -> None:
    """Nodes that attach few volumes, with pods that have some."""
    for _ in range(2):
        supply.late_volumes(sketch)
    sketch.run(sketch.workload(), sketch.dice.choice(sketch.nodes))

    def change(world: Json) -> None:
        for node in world["nodes"]:
            name = node["metadata"]["name"]
            count = sketch.dice.choice((0, 1, 1, 2))
            drivers = [{"name": EBS, "nodeID": name, "topologyKeys": [], "allocatable": {"count": count}}]
            world["csiNodes"].append(
                {"metadata": {"name": name, "uid": f"uid-csi-{name}"}, "spec": {"drivers": drivers}}
            )
        for pod in bound(world):
            if sketch.dice.random() < 0.4:
                _give_volume(world, pod)

    sketch.late.append(change)


def _give_volume(world: Json, pod: Json) -> None:
    name = f"{pod['metadata']['name']}-attached"
    world["persistentVolumes"].append(_volume(name))
    world["persistentVolumeClaims"].append(_claim(name, pod["metadata"]["namespace"], ["ReadWriteOnce"]))
    rows = pod["spec"].setdefault("volumes", [])
    rows.append({"name": name, "persistentVolumeClaim": {"claimName": name}})


def _volume(name: str) -> Json:
    return {
        "metadata": {"name": f"pv-{name}", "uid": f"uid-pv-{name}"},
        "spec": {"csi": {"driver": EBS, "volumeHandle": name}},
    }


def _claim(name: str, namespace: str, modes: list[str]) -> Json:
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"uid-pvc-{namespace}-{name}"}
    return {
        "metadata": {**meta, "annotations": dict(_BOUND)},
        "spec": {"accessModes": modes, "volumeName": f"pv-{name}"},
        "status": {"phase": "Bound"},
    }


def only_labels(world: Json) -> bool:
    return any("nodeAffinity" not in one["spec"] and "labels" in one["metadata"] for one in world["persistentVolumes"])


def lacks(world: Json, key: str) -> bool:
    """Some nodes have the label and some do not."""
    return len({key in node["metadata"]["labels"] for node in world["nodes"]}) == 2


def lacks_a_spread_key(world: Json) -> bool:
    keys = {row["topologyKey"] for pod in pending(world) for row in pod["spec"].get("topologySpreadConstraints", [])}
    return any(key in (RACK, labels.ZONE) and lacks(world, key) for key in keys)
