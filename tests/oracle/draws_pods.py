"""Features of pods: requests, ports, node selection, company and spread. Each changes a sketch.

Features that the differential test draws as well are not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kerf_api import labels
from tests.differential.draft import CPUS, REQUIRED, TEAM, ZONES, Json, Workload, template_spec
from tests.oracle.sketch import RACK, RACKS, Sketch, pending

Draw = Callable[[Sketch], None]
_HOSTS: Final = ("", "0.0.0.0", "10.0.0.1", "10.0.0.1", "127.0.0.1", "127.0.0.1")


# --- requests -----------------------------------------------------------------------------------------------------
def ephemeral_storage(sketch: Sketch) -> None:
    amount = sketch.dice.choice(("2Gi", "7Gi", "15Gi"))
    sketch.workload().container["resources"]["requests"]["ephemeral-storage"] = amount


def no_requests(sketch: Sketch) -> None:
    sketch.workload().container["resources"]["requests"] = {}


def pod_level_partly(sketch: Sketch) -> None:
    """Pod-level requests of one resource; the containers' count for the others."""
    dice = sketch.dice
    sketch.workload().spec["resources"] = {
        "requests": dice.choice(({"cpu": dice.choice(("300m", "2"))}, {"memory": "3Gi"}))
    }


def many_containers(sketch: Sketch) -> None:
    """Plain init containers and sidecars in one order or the other."""
    dice, workload = sketch.dice, sketch.workload()
    rows = workload.spec.setdefault("initContainers", [])
    for number in range(dice.randint(2, 3)):
        requests = {"cpu": dice.choice(("200m", "1", "1700m")), "memory": dice.choice(("64Mi", "1Gi"))}
        more = {"restartPolicy": "Always"} if dice.random() < 0.5 else {}
        rows.append({"name": f"more-{number}", "image": "app", "resources": {"requests": requests}, **more})
    workload.spec["containers"].append(
        {"name": "second", "image": "app", "resources": {"requests": {"cpu": "150m", "memory": "100Mi"}}}
    )


# --- ports --------------------------------------------------------------------------------------------------------
def host_addresses(sketch: Sketch) -> None:
    """Ports of several addresses and protocols; some of them clash."""
    for workload in (sketch.several(), sketch.workload()):
        workload.container["ports"] = [_port(sketch) for _ in range(sketch.dice.randint(1, 2))]
    sketch.run(workload, sketch.dice.choice(sketch.nodes))


def sidecar_ports(sketch: Sketch) -> None:
    for workload in (sketch.several(), sketch.workload()):
        row = {"name": "proxy", "image": "app", "resources": {}, "ports": [_port(sketch)], "restartPolicy": "Always"}
        rows = workload.spec.setdefault("initContainers", [])
        if all(one["name"] != "proxy" for one in rows):
            rows.append(row)
    sketch.run(workload, sketch.dice.choice(sketch.nodes))


def init_ports(sketch: Sketch) -> None:
    """A port of a plain init container: it blocks no other pod."""
    row = {"name": "starter", "image": "app", "resources": {}, "ports": [_port(sketch)]}
    sketch.several().spec.setdefault("initContainers", []).append(row)


def _port(sketch: Sketch) -> Json:
    dice = sketch.dice
    address = dice.choice(_HOSTS)
    found: Json = {"containerPort": 80, "hostPort": dice.choice((80, 80, 81))}
    found["protocol"] = dice.choice(("TCP", "TCP", "UDP"))
    return {**found, "hostIP": address} if address else found


# --- node selection -----------------------------------------------------------------------------------------------
def operator(name: str) -> Draw:
    """A required term of node affinity with one of the API's operators."""

    def draw(sketch: Sketch) -> None:
        dice = sketch.dice
        rows: list[tuple[str, list[str]]] = [
            (labels.ZONE, sorted(dice.sample(ZONES, dice.randint(1, 2)))),
            (TEAM, [dice.choice(("red", "blue"))]),
            (RACK, [dice.choice(RACKS)]),
        ]
        key, values = dice.choice(rows)
        row: Json = {"key": key, "operator": name}
        if name in ("Gt", "Lt"):
            row |= {"key": dice.choice((CPUS, CPUS, labels.ZONE)), "values": [dice.choice(("1", "2", "4"))]}
        elif name in ("In", "NotIn"):
            row["values"] = values
        sketch.workload().affinity("nodeAffinity", REQUIRED).append({"matchExpressions": [row]})

    return draw


def match_fields(sketch: Sketch) -> None:
    dice, workload = sketch.dice, sketch.workload()
    names = [f"node-{number}" for number in range(len(sketch.nodes))]
    gone = ["node-gone"] * (9 * len(names))  # nodes that are there are an exception, which must be rare
    row: Json = {"key": "metadata.name", "operator": "NotIn" if dice.random() < 0.08 else "In"}
    row["values"] = [dice.choice(names if row["operator"] == "NotIn" else [*names, *gone])]
    term: Json = {"matchFields": [row]}
    if dice.random() < 0.4:
        term["matchExpressions"] = [{"key": labels.ZONE, "operator": "In", "values": sorted(dice.sample(ZONES, 2))}]
    workload.affinity("nodeAffinity", REQUIRED).append(term)


def empty_terms(sketch: Sketch) -> None:
    sketch.workload().affinity("nodeAffinity", REQUIRED).append({})


def racks(sketch: Sketch) -> None:
    """A label of the user's: a NodePool gives it to its nodes, and some other nodes have it."""
    rows = template_spec(sketch.pool())["requirements"]
    if not any(row["key"] == RACK for row in rows):
        rows.append({"key": RACK, "operator": "In", "values": list(RACKS[: sketch.dice.randint(1, 3)])})

    def label(world: Json) -> None:
        for node in world["nodes"]:
            if sketch.dice.random() < 0.5:
                node["metadata"]["labels"].setdefault(RACK, sketch.dice.choice(RACKS))

    sketch.late.append(label)


def all_tolerations(sketch: Sketch) -> None:
    dice = sketch.dice
    rows: list[Json] = [
        {"operator": "Exists"},
        {"operator": "Exists", "effect": "NoSchedule"},
        {"key": TEAM, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
        {"key": TEAM, "operator": "Equal", "value": "red"},
        {"key": TEAM, "operator": "Exists"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    ]
    for _ in range(2):
        sketch.workload().spec.setdefault("tolerations", []).append(dice.choice(rows))


# --- spread -------------------------------------------------------------------------------------------------------
def wide_spread(sketch: Sketch) -> None:
    key = sketch.dice.choice((labels.ZONE, labels.HOSTNAME, RACK))
    sketch.several().spread(key, maxSkew=sketch.dice.choice((2, 2, 3)))


def several_keys(sketch: Sketch) -> None:
    workload = sketch.several()
    for key in sketch.dice.sample((labels.ZONE, labels.HOSTNAME, labels.CAPACITY_TYPE, RACK), 2):
        workload.spread(key, maxSkew=sketch.dice.choice((1, 1, 2)))


def rare_key(sketch: Sketch) -> None:
    """A spread over a label that some nodes lack: some of a NodePool are older than its label."""

    def change(world: Json) -> None:
        some = [node for node in world["nodes"] if RACK in node["metadata"]["labels"]]
        if some and len(some) == len(world["nodes"]):
            for node in sketch.dice.sample(some, sketch.dice.randint(1, max(len(some) - 1, 1))):
                del node["metadata"]["labels"][RACK]

    racks(sketch)
    sketch.late.append(change)
    sketch.several().spread(RACK)
    if sketch.dice.random() < 0.5:
        workload = sketch.several()
        workload.spread(RACK)
        workload.spread(labels.ZONE)


def foreign_pools(sketch: Sketch) -> None:
    """A spread of pods that can use one NodePool, while others offer more zones."""
    dice, own = sketch.dice, sketch.pool()
    other = sketch.add_pool()
    zones = sorted(dice.sample(ZONES, 2))
    template_spec(own)["requirements"].append({"key": labels.ZONE, "operator": "In", "values": zones})
    for pool, value in ((own, "blue"), (other, "red")):
        rows = template_spec(pool)["requirements"]
        rows[:] = [row for row in rows if row["key"] != TEAM]
        pool["spec"]["template"]["metadata"]["labels"][TEAM] = value
    workload = sketch.several()
    workload.spec.setdefault("nodeSelector", {})[TEAM] = "blue"
    workload.spread(labels.ZONE, nodeAffinityPolicy=dice.choice(("Honor", "Honor", "Ignore")))


def spread_selects_others(sketch: Sketch) -> None:
    """A spread whose selector is about other pods, or about none, as an empty one."""
    workload = sketch.several()
    selector: Json = sketch.dice.choice((sketch.neighbour(workload).app, {"matchLabels": {"app": "none"}}, {}, {}))
    workload.spread(sketch.dice.choice((labels.ZONE, labels.HOSTNAME)), labelSelector=selector)


# --- company ------------------------------------------------------------------------------------------------------
def term(sketch: Sketch, meant: Workload, **more: Any) -> Json:
    keys = (labels.ZONE, labels.HOSTNAME, RACK, labels.CAPACITY_TYPE)
    return {"topologyKey": sketch.dice.choice(keys), "labelSelector": meant.app, **more}


def several_terms(sketch: Sketch) -> None:
    """Two required affinity terms, over one key or two; another pod matches one, or both."""
    dice, owner = sketch.dice, sketch.workload()
    one, other = sketch.neighbour(owner), sketch.neighbour(owner)
    terms = [
        {**term(sketch, meant), "topologyKey": key} for meant, key in zip((one, other), _keys(sketch), strict=True)
    ]
    if dice.random() < 0.5:
        one.labels["tier"] = owner.labels["tier"] = "gold"
        terms[1]["labelSelector"] = {"matchLabels": {"tier": "gold"}}
    owner.affinity("podAffinity", REQUIRED).extend(terms)
    for meant in (one, other):
        sketch.run(meant, dice.choice(sketch.nodes))


def _keys(sketch: Sketch) -> list[str]:
    key = sketch.dice.choice((labels.ZONE, labels.ZONE, labels.HOSTNAME))
    return [key, sketch.dice.choice((key, labels.ZONE, labels.CAPACITY_TYPE))]


def several_anti_terms(sketch: Sketch) -> None:
    owner = sketch.workload()
    for _ in range(2):
        owner.affinity("podAntiAffinity", REQUIRED).append(term(sketch, sketch.neighbour(owner)))


def first_of_its_kind(sketch: Sketch) -> None:
    """A workload that no pod of runs yet, with affinity to itself; some over two terms."""
    workload = sketch.add_workload()
    workload.count = sketch.dice.randint(2, 4)
    rows = workload.affinity("podAffinity", REQUIRED)
    rows.append({**term(sketch, workload), "topologyKey": sketch.dice.choice((labels.ZONE, labels.HOSTNAME, RACK))})
    if sketch.dice.random() < 0.4:
        workload.labels["tier"] = "new"
        rows.append({"topologyKey": labels.ZONE, "labelSelector": {"matchLabels": {"tier": "new"}}})


def custom_key(sketch: Sketch) -> None:
    racks(sketch)
    owner = sketch.workload()
    meant = sketch.dice.choice((owner, sketch.neighbour(owner)))
    kind = sketch.dice.choice(("podAffinity", "podAntiAffinity"))
    owner.affinity(kind, REQUIRED).append({**term(sketch, meant), "topologyKey": RACK})
    sketch.run(meant, sketch.dice.choice(sketch.nodes))


def affinity_to_bound(sketch: Sketch) -> None:
    owner = sketch.workload()
    meant = sketch.neighbour(owner)
    sketch.run(meant, sketch.dice.choice(sketch.nodes))
    owner.affinity("podAffinity", REQUIRED).append(term(sketch, meant))


def affinity_to_pending(sketch: Sketch) -> None:
    owner = sketch.workload()
    kind = sketch.dice.choice(("podAffinity", "podAffinity", "podAntiAffinity"))
    owner.affinity(kind, REQUIRED).append(term(sketch, sketch.neighbour(owner)))


def label_keys(field: str) -> Draw:
    """`matchLabelKeys` or `mismatchLabelKeys` of a term, over a label that two versions of a workload differ in."""

    def draw(sketch: Sketch) -> None:
        old = sketch.several()
        new = sketch.add_workload(old.namespace)
        new.labels["app"] = old.labels["app"]
        kind = sketch.dice.choice(("podAffinity", "podAntiAffinity"))
        key = sketch.dice.choice((labels.ZONE, labels.HOSTNAME))
        for workload, version in ((old, "1"), (new, "2")):
            workload.labels["version"] = version
            workload.affinity(kind, REQUIRED).append(
                {"topologyKey": key, "labelSelector": dict(workload.app), field: ["version"]}
            )
        sketch.run(old, sketch.dice.choice(sketch.nodes))

    return draw


# --- status -------------------------------------------------------------------------------------------------------
def nominated(sketch: Sketch) -> None:
    _nominate(sketch, lambda world: str(sketch.dice.choice(world["nodes"])["metadata"]["name"]))


def nominated_to_a_gone_node(sketch: Sketch) -> None:
    _nominate(sketch, lambda _: "node-gone")


def _nominate(sketch: Sketch, choose: Callable[[Json], str]) -> None:
    def change(world: Json) -> None:
        free = [pod for pod in pending(world) if "nominatedNodeName" not in pod["status"]]
        if world["nodes"] and len(free) > 1:
            sketch.dice.choice(free)["status"]["nominatedNodeName"] = choose(world)

    sketch.late.append(change)
