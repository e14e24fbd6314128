"""Plants against the rules of planned nodes and of the answer as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kerf.model.aws.instance_type import Offering, Reservation
from kerf_api import labels
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.referee_plants import Choice, Plant, in_flight, leaving_node, new, put, storage_class
from tests.unit.scheduling.referee_plants_alone import EPHEMERAL

SOON = w.NOW.replace(hour=13)


def plant(name: str, rule: str, world: tuple[Any, ...], right: Choice, wrong: Choice, **facts: Any) -> Plant:
    return Plant(name, rule, world, right, wrong, facts=facts)


# --- the answer, its targets and pools ----------------------------------------------------------------------------
def pools(name: str, other: Any) -> Plant:
    """A node is right from the pool `default` and wrong from `other`."""
    return plant(name, "pool", (w.pool(), other, w.pod("p")), put(new("p")), put(new("p", pool="other")))


TAINT = {"key": "team", "value": "red", "effect": "NoSchedule"}
ANSWER = [
    plant("a pod that is forgotten", "answers", (w.pod("p"),), put(), put(silent=("p",))),
    plant(
        "a pod that has two places", "answers", (w.pool(), w.node("n"), w.pod("p")), put(p="n"), put(new("p"), p="n")
    ),
    plant(
        "a pod that nobody asked for",
        "answers",
        (*(w.node(n) for n in "nm"), w.pod("p"), w.pod("old", node="m")),
        put(p="n"),
        put(p="n", old="n"),
    ),
    Plant(
        "a node that is to go",
        "target",
        (w.node("n"), w.node("m"), w.pod("p")),
        put(p="m"),
        put(p="n"),
        exclude=frozenset({"node/n"}),
    ),
    plant(
        "a node that is being deleted", "target", (leaving_node("n"), w.node("m"), w.pod("p")), put(p="m"), put(p="n")
    ),
    plant("a node that is not there", "target", (w.node("m"), w.pod("p")), put(p="m"), put(p="n")),
    pools("a static pool", w.pool("other", replicas=3)),
    pools("a pool that is not ready", w.pool("other", ready="False")),
]

# --- labels and taints of planned nodes ---------------------------------------------------------------------------
TEAMS = w.pool(requirements=[{"key": "team", "operator": "In", "values": ["blue", "red"]}])
FIT = [
    plant(
        "a taint of the pool, whose startup taint is none",
        "taint",
        (w.pool(startupTaints=[TAINT]), w.pool("red", taints=[TAINT]), w.pod("p")),
        put(new("p")),
        put(new("p", pool="red")),
    ),
    plant(
        "a zone of a planned node that is left open",
        "node-selector",
        (w.pool(), w.pod("p", nodeSelector={labels.ZONE: "z1"})),
        put(new("p", zone="z1")),
        put(new("p", zone=("z1", "z2"))),
    ),
    plant(
        "a market of a planned node that is left open",
        "node-affinity",
        (w.pool(), w.pod("p", affinity=w.node_affinity([(labels.CAPACITY_TYPE, "NotIn", ["spot"])]))),
        put(new("p", market="on-demand")),
        put(new("p")),
    ),
    plant(
        "a label of the pool's that is left open",
        "node-selector",
        (TEAMS, w.pod("p", nodeSelector={"team": "red"})),
        put(new("p", labels={"team": "red"})),
        put(new("p")),
    ),
    plant(
        "the label of the pool's template",
        "node-selector",
        (
            w.pool(labels={"team": "red"}),
            w.pool("blue", labels={"team": "blue"}),
            w.pod("p", nodeSelector={"team": "red"}),
        ),
        put(new("p")),
        put(new("p", pool="blue")),
    ),
    plant(
        "volumes that cannot be made wherever the node may be",
        "volume",
        (w.pool(), w.pod("p", volumes=EPHEMERAL), storage_class("disks", "z1", "z2")),
        put(new("p", zone=("z1", "z2"))),
        put(new("p")),
    ),
    plant(
        "a port that a daemon set takes",
        "host-port",
        (
            w.pool(),
            w.daemon_set("agent", ports=[{"hostPort": 80}], tolerations=[]),
            w.node("n", taints=[{"key": "team", "effect": "NoSchedule"}]),
            w.pod("p", ports=[{"hostPort": 80}], tolerations=[{"operator": "Exists"}]),
        ),
        put(p="n"),
        put(new("p")),
    ),
]

# --- types, prices, requests --------------------------------------------------------------------------------------
LARGE = w.pod("p", "3")
AGENT = w.daemon_set("agent", "1500m")
ZONAL = w.daemon_set("agent", "1500m", nodeSelector={labels.ZONE: "z2"})
MANY = [f"step-{i}" for i in range(1, 62)]
ONE = (w.pool(), w.pod("p"))
ARM = w.pool(requirements=[{"key": labels.ARCH, "operator": "In", "values": ["amd64"]}])
TYPES = [
    plant(
        "a type that is too small",
        "capacity",
        (w.pool(), LARGE),
        put(new("p")),
        put(new("p", types=("small", "default"))),
    ),
    plant(
        "too many pods for a type",
        "capacity",
        (w.pool(), w.replicas(2, "p")),
        put(new("p-0", "p-1")),
        put(new("p-0", "p-1", types=("single-pod",))),
    ),
    plant(
        "a resource that a type has not",
        "capacity",
        (w.pool(), w.pod("p", requests={"example.com/gpu-a": "1"})),
        put(new("p", types=("gpu-a",))),
        put(new("p", types=("gpu-b",))),
    ),
    plant("a daemon set's share", "capacity", (w.pool(), AGENT, LARGE), put(new("p", types=("arm",))), put(new("p"))),
    plant(
        "a daemon set of one zone",
        "capacity",
        (w.pool(), ZONAL, LARGE),
        put(new("p", zone="z1")),
        put(new("p", zone=("z1", "z2"))),
    ),
    plant("a type that there is not", "types", ONE, put(new("p")), put(new("p", types=("default", "nope")))),
    plant("no type at all", "types", ONE, put(new("p")), put(new("p", types=()))),
    Plant(
        "more types than a claim may list",
        "types",
        ONE,
        put(new("p", types=(*MANY[:60],))),
        put(new("p", types=(*MANY,))),
        w.ladder(61),
    ),
    plant(
        "a type that the pool excludes",
        "offering",
        (ARM, w.pod("p")),
        put(new("p")),
        put(new("p", types=("default", "arm"))),
    ),
    plant(
        "a market that is not sold there",
        "offering",
        ONE,
        put(new("p", zone="z3")),
        put(new("p", zone="z3", market="spot")),
    ),
    plant(
        "an offering that is out of stock",
        "offering",
        ONE,
        put(new("p", zone="z1", types=("default",))),
        put(new("p", zone="z3", types=("default",))),
        out_of_stock={("default", "z3", "on-demand"): SOON},
    ),
    plant(
        "types that are not in order of price",
        "price",
        ONE,
        put(new("p", types=("small", "default"))),
        put(new("p", types=("default", "small"))),
    ),
    plant("a price that is not the node's", "price", ONE, put(new("p")), put(new("p", price=1))),
    plant(
        "requests that are less than the pods'",
        "requests",
        ONE,
        put(new("p")),
        put(new("p", requests={"cpu": 99, "memory": 10 << 20, "pods": 1})),
    ),
]

# --- what pools allow ----------------------------------------------------------------------------------------------
FLEXIBLE = w.pool(requirements=[{"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 2}])
TWO = w.replicas(2, "p")
MEMBER = {labels.NODEPOOL: "default"}


def limited(name: str, limits: dict[str, str], *there: Any, right: Choice, wrong: Choice) -> Plant:
    return plant(name, "limits", (w.pool(limits=limits), *there, TWO), right, wrong)


ALLOWED = [
    limited("a limit of cores", {"cpu": "5"}, right=put(new("p-0", "p-1")), wrong=put(new("p-0"), new("p-1"))),
    limited(
        "a limit of cores, by the largest type",
        {"cpu": "3"},
        right=put(new("p-0", "p-1", types=("small",))),
        wrong=put(new("p-0", "p-1", types=("small", "default"))),
    ),
    limited("a limit of memory", {"memory": "5Gi"}, right=put(new("p-0", "p-1")), wrong=put(new("p-0"), new("p-1"))),
    limited("a limit of nodes", {"nodes": "1"}, right=put(new("p-0", "p-1")), wrong=put(new("p-0"), new("p-1"))),
    limited(
        "a limit that a node takes part of",
        {"cpu": "9"},
        w.node("n", cpu="4", labels=MEMBER),
        right=put(new("p-0"), p_1="n"),
        wrong=put(new("p-0"), new("p-1")),
    ),
    limited(
        "a limit that a claim in flight takes part of",
        {"cpu": "9"},
        in_flight("c", "small", "default"),
        right=put(new("p-0", "p-1")),
        wrong=put(new("p-0"), new("p-1")),
    ),
    plant("minValues", "min-values", (FLEXIBLE, w.pod("p")), put(new("p", types=("small", "default"))), put(new("p"))),
    plant(
        "a zone outside the pool",
        "requirements",
        (w.pool(requirements=[{"key": labels.ZONE, "operator": "In", "values": ["z1"]}]), w.pod("p")),
        put(new("p")),
        put(new("p", loose=(labels.ZONE,))),
    ),
]

# --- capacity reservations ----------------------------------------------------------------------------------------
HELD = {labels.RESERVATION_ID: "cr"}
KIND = w.instance_type("default", 4, 4)
RESERVED = tuple(
    Offering("default", "z1", labels.RESERVED, 1, reservation=Reservation(id_, left))
    for id_, left in (("cr", 1), ("other", 0))
)
SOLD = (
    replace(KIND, requirements=KIND.requirements.without(labels.CAPACITY_TYPE), offerings=KIND.offerings + RESERVED),
)


def reserved(name: str, rule: str, *there: Any, right: Choice, wrong: Choice) -> Plant:
    return Plant(name, rule, (w.pool(), *there, TWO), right, wrong, SOLD)


RESERVATIONS = [
    reserved(
        "more nodes than a reservation has machines for",
        "reservation",
        right=put(new("p-0", market="reserved", labels=HELD), new("p-1", market="spot")),
        wrong=put(new("p-0", market="reserved", labels=HELD), new("p-1", market="reserved", labels=HELD)),
    ),
    reserved(
        "a reservation that has no machine left",
        "reservation",
        right=put(new("p-0", "p-1", market="reserved", labels=HELD)),
        wrong=put(new("p-0", "p-1", market="reserved")),
    ),
    reserved(
        "a machine that a claim in flight is to have",
        "reservation",
        in_flight("c", "default", reservation="cr"),
        right=put(new("p-0", "p-1", market="spot")),
        wrong=put(new("p-0", "p-1", market="reserved", labels=HELD)),
    ),
    reserved(
        "a node that may be on a reservation or not",
        "reservation",
        right=put(new("p-0", "p-1", market=("spot", "on-demand"))),
        wrong=put(new("p-0", "p-1", market=("reserved", "spot"))),
    ),
    reserved(
        "a reservation's label that no machine for sale has",
        "offering",
        right=put(new("p-0", "p-1", market="reserved", labels=HELD)),
        wrong=put(new("p-0", "p-1", market="spot", labels=HELD)),
    ),
]

PLANTS = [*ANSWER, *FIT, *TYPES, *ALLOWED, *RESERVATIONS]
