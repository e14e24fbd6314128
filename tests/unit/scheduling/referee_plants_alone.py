"""Plants against the rules of one node: room, labels, taints, host ports, volumes."""

from __future__ import annotations

from typing import Any

from kerf_api import labels
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.referee_plants import (
    Plant,
    container,
    cordoned,
    csi_node,
    going,
    in_flight,
    labelled_volume,
    mounts,
    new,
    put,
    resized,
    storage_class,
    volume,
    volume_claim,
)

SIDECAR = {"restartPolicy": "Always"}


def two_nodes(name: str, rule: str, *world: Any, **facts: Any) -> Plant:
    """The pod `p` is right on the node `m` and wrong on the node `n`."""
    return Plant(name, rule, world, put(p="m"), put(p="n"), **facts)


def room(name: str, *there: Any, **spec: Any) -> Plant:
    """The pod fits on `m`, which has eight cores, and not on `n`, which has four."""
    return two_nodes(name, "room", w.node("n"), w.node("m", cpu="8", memory="8Gi"), *there, w.pod("p", **spec))


ROOM = [
    room("cores", cpu="4100m"),
    room("memory", memory="5Gi"),
    room("what runs there already", w.pod("old", "3", node="n"), cpu="1500m"),
    room("what is on its way out is there still", going(w.pod("old", "3", node="n")), cpu="1500m"),
    room("a resize that is under way", resized(w.pod("old", "100m", node="n"), "3"), cpu="1500m"),
    room("a resize that can never be", resized(w.pod("old", "64", node="m"), "1", reason="Infeasible"), cpu="4100m"),
    Plant(
        "the number of pods",
        "room",
        (w.node("n", pods=1), w.node("m"), w.replicas(2, "p")),
        put(p_0="n", p_1="m"),
        put(p_0="n", p_1="n"),
    ),
    room("an init container that is larger than the rest", initContainers=[container("5")]),
    room("a sidecar beside the containers", cpu="2", initContainers=[container("2500m", **SIDECAR)]),
    room("a sidecar beside a later init container", initContainers=[container("2", **SIDECAR), container("2500m")]),
    room("overhead", cpu="3900m", overhead={"cpu": "200m"}),
    room("pod-level resources", resources={"requests": {"cpu": "5"}}),
    room("a limit without a request", containers=[{"resources": {"limits": {"cpu": "5"}}}]),
    two_nodes(
        "an extended resource",
        "room",
        w.node("n"),
        w.node("m", allocatable={w.GPU: "2"}),
        w.pod("p", requests={w.GPU: "1"}),
    ),
    Plant(
        "a claim that may become a smaller type",
        "room",
        (w.pool(), in_flight("large", "default"), in_flight("open", "default", "small"), w.pod("p", "3")),
        put(p="claim/large"),
        put(p="claim/open"),
    ),
]


# --- labels and taints --------------------------------------------------------------------------------------------
def labelled(name: str, rule: str, n: dict[str, str], m: dict[str, str], **spec: Any) -> Plant:
    return two_nodes(name, rule, w.node("n", labels=n), w.node("m", labels=m), w.pod("p", **spec))


def wants(key: str, operator: str, *values: str) -> dict[str, Any]:
    return w.node_affinity([(key, operator, list(values))])


def named(name: str) -> dict[str, Any]:
    """Node affinity by the name of the node."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def tainted(name: str, key: str, value: str, effect: str, *tolerations: dict[str, str]) -> Plant:
    taint = {"key": key, "value": value, "effect": effect}
    soft = {**taint, "effect": "PreferNoSchedule"}
    nodes = w.node("n", taints=[taint]), w.node("m", taints=[soft])
    return two_nodes(name, "taint", *nodes, w.pod("p", tolerations=list(tolerations)))


EITHER = w.node_affinity([("team", "In", ["red"]), ("disk", "Exists", [])], [("team", "In", ["blue"])])
LABELS = [
    labelled("a node selector", "node-selector", {"team": "red"}, {"team": "blue"}, nodeSelector={"team": "blue"}),
    labelled(
        "a node selector in an old spelling",
        "node-selector",
        {labels.ARCH: "arm64"},
        {},
        nodeSelector={"beta.kubernetes.io/arch": "amd64"},
    ),
    labelled("In", "node-affinity", {"team": "red"}, {"team": "blue"}, affinity=wants("team", "In", "blue", "green")),
    labelled("NotIn", "node-affinity", {"team": "red"}, {}, affinity=wants("team", "NotIn", "red")),
    labelled("Exists", "node-affinity", {}, {"team": "red"}, affinity=wants("team", "Exists")),
    labelled("DoesNotExist", "node-affinity", {"team": "red"}, {}, affinity=wants("team", "DoesNotExist")),
    labelled("Gt", "node-affinity", {"size": "8"}, {"size": "16"}, affinity=wants("size", "Gt", "8")),
    labelled("Lt", "node-affinity", {"size": "8"}, {"size": "4"}, affinity=wants("size", "Lt", "8")),
    labelled(
        "terms are alternatives, expressions are not",
        "node-affinity",
        {"team": "red"},
        {"team": "blue"},
        affinity=EITHER,
    ),
    labelled("a field", "node-affinity", {}, {}, affinity=named("m")),
    tainted("a taint", "team", "red", "NoSchedule"),
    tainted("a taint that evicts", "team", "red", "NoExecute"),
    tainted("a toleration of another value", "team", "red", "NoSchedule", {"key": "team", "value": "blue"}),
    two_nodes("a cordoned node", "taint", cordoned("n"), w.node("m"), w.pod("p")),
    tainted(
        "a toleration of another effect",
        "team",
        "red",
        "NoSchedule",
        {"key": "team", "operator": "Exists", "effect": "NoExecute"},
    ),
]


# --- host ports -----------------------------------------------------------------------------------------------------
def ports(name: str, first: dict[str, Any], harmless: dict[str, Any], clashing: dict[str, Any]) -> Plant:
    """Beside `first` one pod may run, the other not."""
    pods = [w.pod(n, ports=[{"hostPort": 80, **p}]) for n, p in (("a", first), ("b", harmless), ("c", clashing))]
    return Plant(
        name, "host-port", (w.node("n"), w.node("m"), pods), put(a="n", b="n", c="m"), put(a="n", b="m", c="n")
    )


PORTS = [
    ports("one port", {}, {"hostPort": 81}, {}),
    ports("one protocol", {}, {"protocol": "UDP"}, {"protocol": "TCP"}),
    ports("one address", {"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, {"hostIP": "10.0.0.1"}),
    ports("every address", {"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, {}),
    ports("every address of IPv4 only", {"hostIP": "fd00::1"}, {"hostIP": "::"}, {"hostIP": "0.0.0.0"}),
    two_nodes(
        "the port of a sidecar",
        "host-port",
        w.node("n"),
        w.node("m"),
        w.pod("old", node="n", initContainers=[container("1m", ports=[{"hostPort": 80}], **SIDECAR)]),
        w.pod("ended", node="m", initContainers=[container("1m", ports=[{"hostPort": 80}])]),
        w.pod("p", ports=[{"hostPort": 80}]),
    ),
    Plant(
        "a port of a daemon set that is to come",
        "host-port",
        (
            w.node("n"),
            w.daemon_set("agent", ports=[{"hostPort": 80}], tolerations=[]),
            w.pod("p", ports=[{"hostPort": 80}]),
        ),
        put(),
        put(p="n"),
    ),
    two_nodes(
        "a port on the host's network",
        "host-port",
        w.node("n"),
        w.node("m"),
        w.pod("old", node="n", ports=[{"containerPort": 80}], hostNetwork=True),
        w.pod("own", node="m", ports=[{"containerPort": 80}]),
        w.pod("p", ports=[{"hostPort": 80}]),
    ),
    two_nodes(
        "a port of a pod that runs there",
        "host-port",
        w.node("n"),
        w.node("m"),
        w.pod("old", node="n", ports=[{"hostPort": 80}]),
        w.pod("p", ports=[{"hostPort": 80}]),
    ),
]

# --- volumes --------------------------------------------------------------------------------------------------------
ZONES = (w.node("n", "z1"), w.node("m", "z2"))
EPHEMERAL = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "disks"}}}}]
SPACE = w.pod("p", volumes=mounts("data"))
SOLE = volume_claim("data", "pv", modes=("ReadWriteOncePod",))
VOLUMES = [
    two_nodes("a bound volume", "volume", *ZONES, SPACE, volume_claim("data", "pv"), volume("pv", labels.ZONE, "z2")),
    two_nodes(
        "a bound volume in an old spelling",
        "volume",
        *ZONES,
        SPACE,
        volume_claim("data", "pv"),
        volume("pv", "failure-domain.beta.kubernetes.io/zone", "z2"),
    ),
    two_nodes(
        "a class that makes volumes elsewhere",
        "volume",
        *ZONES,
        SPACE,
        volume_claim("data", storage="disks"),
        storage_class("disks", "z2", "z3"),
    ),
    two_nodes("an ephemeral volume", "volume", *ZONES, w.pod("p", volumes=EPHEMERAL), storage_class("disks", "z2")),
    two_nodes(
        "one of two volumes",
        "volume",
        *ZONES,
        w.pod("p", volumes=mounts("data", "more")),
        volume_claim("data", "pv"),
        volume_claim("more", storage="disks"),
        volume("pv", labels.ZONE, "z1", "z2"),
        storage_class("disks", "z2"),
    ),
    Plant("a volume claim that is missing", "volume", (*ZONES, SPACE), put(), put(p="n")),
    Plant("a volume that is missing", "volume", (*ZONES, SPACE, volume_claim("data", "pv")), put(), put(p="n")),
    Plant(
        "a volume that is to be bound first",
        "volume",
        (*ZONES, SPACE, volume_claim("data", storage="now"), storage_class("now", mode="Immediate")),
        put(),
        put(p="n"),
    ),
    Plant(
        "a claim that has lost its volume",
        "volume",
        (*ZONES, SPACE, volume_claim("data", storage="disks", phase="Lost"), storage_class("disks")),
        put(),
        put(p="n"),
    ),
    two_nodes(
        "a volume that is only labelled with its zone",
        "volume",
        *(*ZONES, SPACE, volume_claim("data", "pv"), labelled_volume("pv", "topology.kubernetes.io/zone", "z2__z3")),
    ),
    two_nodes(
        "a volume that is only labelled with its zone, in the old spelling",
        "volume",
        *(
            *ZONES,
            SPACE,
            volume_claim("data", "pv"),
            labelled_volume("pv", "failure-domain.beta.kubernetes.io/zone", "z2"),
        ),
    ),
    Plant(
        "a volume whose node affinity has only an empty term",
        "volume",
        (*ZONES, SPACE, volume_claim("data", "pv"), volume("pv", "")),
        put(),
        put(p="n"),
    ),
    Plant(
        "a claim for one pod that another uses",
        "volume",
        (*ZONES, SPACE, SOLE, volume("pv", labels.ZONE, "z1"), w.pod("old", node="n", volumes=mounts("data"))),
        put(),
        put(p="n"),
    ),
    Plant(
        "a claim for one pod, and two pods",
        "volume",
        (*ZONES, SPACE, SOLE, volume("pv", labels.ZONE, "z1"), w.pod("q", volumes=mounts("data"))),
        put(p="n"),
        put(p="n", q="n"),
    ),
    Plant(
        "a claim that only names its volume",
        "volume",
        (*ZONES, SPACE, volume_claim("data", "pv", bound=False), volume("pv", labels.ZONE, "z1")),
        put(),
        put(p="n"),
    ),
]


# --- how many volumes -----------------------------------------------------------------------------------------------
def attached(name: str, *world: Any, most: int = 1) -> Plant:
    """The pod `p` brings one volume too many to the node `n`, and not to `m`."""
    return two_nodes(
        name, "attach-limit", w.node("n"), w.node("m"), csi_node("n", most), storage_class("disks"), *world
    )


DATA, MORE = volume_claim("data", storage="disks"), volume_claim("more", storage="disks")
OLD, BESIDE = w.pod("old", node="n", volumes=mounts("more")), w.pod("q", volumes=mounts("more"))
ATTACHED = [
    attached("a volume beside that of who is there", SPACE, DATA, MORE, OLD),
    attached("a volume beside that of who is on the way out", SPACE, DATA, MORE, going(OLD)),
    attached("two volumes of one pod", w.pod("p", volumes=mounts("data", "more")), DATA, MORE),
    attached("a volume where none can be", SPACE, DATA, most=0),
    attached("an ephemeral volume beside another", w.pod("p", volumes=EPHEMERAL), MORE, OLD),
    attached(
        "a volume of the old plugin",
        *(SPACE, volume_claim("data", "pv"), volume("pv", labels.ZONE, "z1", source="awsElasticBlockStore"), MORE, OLD),
    ),
    Plant(
        "a volume that is shared counts once",
        "attach-limit",
        (w.node("n"), csi_node("n", 1), storage_class("disks"), DATA, MORE, SPACE, OLD, BESIDE),
        put(q="n"),
        put(q="n", p="n"),
    ),
    Plant(
        "too many already, but no more",
        "attach-limit",
        (w.node("n"), csi_node("n", 0), storage_class("disks"), DATA, MORE, SPACE, OLD, BESIDE),
        put(q="n"),
        put(q="n", p="n"),
    ),
]


# --- devices --------------------------------------------------------------------------------------------------------
CLAIM = [{"name": "gpu", "resourceClaimName": "gpu"}]
CLAIMING: dict[str, Any] = {"containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}]}
DEVICES = [
    Plant("a pod that claims a device", "devices", (w.node("n"), w.pod("p", resourceClaims=CLAIM)), put(), put(p="n")),
    Plant(
        "a container that claims a device",
        "devices",
        (w.pool(), w.pod("p", **CLAIMING)),
        put(),
        put(new("p")),
    ),
    Plant(
        "an init container that claims a device",
        "devices",
        (w.node("n"), w.pod("p", initContainers=CLAIMING["containers"])),
        put(),
        put(p="n"),
    ),
]

PLANTS = [*ROOM, *LABELS, *PORTS, *VOLUMES, *ATTACHED, *DEVICES]
