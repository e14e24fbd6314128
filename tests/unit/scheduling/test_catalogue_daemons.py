"""What daemon sets take of nodes: behaviours 86 to 103 of the catalogue (scheduling reference §11)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kerf.model.kubernetes.objects import DaemonSet, Node, Pod
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
SIZES = (c.machine("little", 2, 2, own={c.SIZE: "small"}), c.machine("big", 8, 8, own={c.SIZE: "large"}))


def daemon(cpu: str = "2", memory: str = "2Gi", **spec: Any) -> DaemonSet:
    return w.daemon_set("agent", cpu, memory, **spec)


def built(spec: dict[str, Any]) -> DaemonSet:
    """A daemon set whose template has exactly this spec."""
    manifest = {"metadata": {"name": "agent", "namespace": "default", "uid": "uid-agent"}}
    return decode(DaemonSet, {**manifest, "spec": {"template": {"spec": spec}}})


def of_agent(pod: Pod) -> Pod:
    """The pod, owned by the daemon set `agent`."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "uid-agent", "controller": True}
    meta = msgspec.to_builtins(pod.metadata) | {"ownerReferences": [owner]}
    return msgspec.structs.replace(pod, metadata=decode(type(pod.metadata), meta))


def launches(*objects: Any, **facts: Any) -> list[str]:
    """The types for a pod of one CPU and 1 GiB."""
    return c.run(*objects, w.pod("p", "1", "1Gi"), **facts).types()


def test_086_a_daemon_set_takes_its_share() -> None:
    """Without it `small` would do."""
    assert launches(w.pool(), daemon()) == ["default"]
    assert launches(w.pool()) == ["small"]


def test_087_a_startup_taint_does_not_keep_daemons_away() -> None:
    """It is gone before they matter."""
    assert launches(w.pool(startupTaints=[TAINT]), daemon()) == ["default"]


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"resources": {"requests": {"cpu": "10000"}}}]},
        {"containers": [{"resources": {"limits": {"cpu": "10000"}}}]},
        {"containers": [{}], "initContainers": [{"resources": {"requests": {"cpu": "10000"}}}]},
    ],
    ids=["requests", "limits", "init"],
)
def test_088_a_daemon_that_fits_nowhere_leaves_no_room(spec: dict[str, Any]) -> None:
    """Every pod waits."""
    assert c.run(w.pool(), built(spec), w.replicas(2, "p")).pending == ["p-0", "p-1"]


def test_089_init_containers_of_a_daemon_count() -> None:
    """The larger phase is its share."""
    big = {"resources": {"requests": {"cpu": "2500m", "memory": "2500Mi"}}}
    little = {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    assert launches(w.pool(), built({"containers": [little], "initContainers": [big]})) == ["default"]
    huge = {"resources": {"requests": {"cpu": "3", "memory": "3Gi"}}}
    done = c.run(w.pool(), built({"containers": [little], "initContainers": [huge]}), w.pod("p", "10m", "10Mi"))
    assert done.types() == ["default"]
    assert done.node.requests["cpu"] == 3010


def test_090_a_daemon_that_asks_for_nothing_takes_nothing() -> None:
    """Except for its slot."""
    done = c.run(w.pool(), built({"containers": [{}]}), w.pod("p", "1", "1Gi"))
    assert done.types() == ["small"]
    assert done.node.requests.texts() == {"cpu": "1", "memory": "1Gi", "pods": "2"}


def test_091_a_living_pod_of_the_daemon_set_speaks_for_it() -> None:
    """What it asks for counts, not what the template says."""
    full = w.node("other", cpu="2", memory="2Gi")
    modest = of_agent(w.pod("agent-1", "100m", "10Mi", node="other"))
    larger = of_agent(w.pod("agent-1", "2", "2Gi", node="other"))
    pod = w.pod("p", "1", "1Gi")
    assert launches(w.pool(), daemon("100m", "10Mi"), full, larger) == ["default"]
    # the referee reckons with the template, so this answer is not shown to it
    (node,) = w.solved(w.pool(), daemon(), full, w.pod("rest", "1900m", node="other"), modest, pod).new_nodes
    assert node.instance_types[0] == "small"


def test_092_the_pin_of_a_living_pod_is_not_the_daemon_sets() -> None:
    """Its node's name is not asked of new nodes: the affinity of the template is."""
    pin = w.node_affinity([(labels.HOSTNAME, "In", ["other"])])
    living = of_agent(w.pod("agent-1", "2", "2Gi", node="other", affinity=pin))
    affinity = w.node_affinity([(labels.OS, "In", ["linux"])])
    assert launches(w.pool(), daemon(affinity=affinity), w.node("other", cpu="2"), living) == ["default"]


def test_093_a_taint_that_the_daemon_does_not_tolerate_keeps_it_away() -> None:
    """A soft one does not."""
    pod = w.pod("p", "1", "1Gi", tolerations=[{"operator": "Exists"}])
    assert c.run(w.pool(taints=[TAINT]), daemon(), pod).types() == ["small"]
    soft = {**TAINT, "effect": "PreferNoSchedule"}
    assert c.run(w.pool(taints=[soft]), daemon(), pod).types() == ["default"]


def test_094_a_daemon_counts_where_it_would_run() -> None:
    """Not with an unknown label or type; with a label of the pool, or the absence of one nobody defines."""
    plain, labelled = w.pool(), w.pool(labels={"team": "red"})
    assert launches(plain, daemon(nodeSelector={"team": "red"})) == ["small"]
    assert launches(plain, daemon(nodeSelector={labels.INSTANCE_TYPE: "unknown"})) == ["small"]
    assert launches(labelled, daemon(nodeSelector={"team": "red"})) == ["default"]
    assert launches(plain, daemon(affinity=w.node_affinity([("team", "NotIn", ["red"])]))) == ["default"]


def test_095_any_alternative_of_a_daemon_will_do_and_its_preferences_do_not_matter() -> None:
    """The second term matches; a preference for the impossible changes nothing."""
    terms = w.node_affinity([("team", "In", ["red"])], [(labels.OS, "In", ["linux"])])
    assert launches(w.pool(), daemon(affinity=terms)) == ["default"]
    assert launches(w.pool(), daemon(affinity=c.prefers((1, labels.ZONE, "no")))) == ["default"]


def test_096_each_type_bears_its_own_daemons() -> None:
    """One set runs on large types, one on small ones."""
    large = w.daemon_set("large", "6", "10Mi", nodeSelector={c.SIZE: "large"})
    small = w.daemon_set("small", "1", "10Mi", nodeSelector={c.SIZE: "small"})

    def listed(cpu: str) -> set[str]:
        return set(c.run(w.pool(), large, small, w.pod("p", cpu), catalogue=SIZES).node.instance_types)

    assert listed("800m") == {"little", "big"}
    assert listed("1500m") == {"big"}
    assert c.run(w.pool(), large, small, w.pod("p", "2"), catalogue=SIZES).pending == ["p"]


def test_097_a_daemons_host_port_is_taken() -> None:
    """Where the daemon runs; on other types the port is free."""
    port: dict[str, Any] = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    done = c.run(w.pool(), w.daemon_set("agent", **port), w.pod("p", **port))
    assert (done.pending, done.nodes) == (["p"], ())
    large = w.daemon_set("agent", nodeSelector={c.SIZE: "large"}, **port)
    small = w.pod("p", nodeSelector={c.SIZE: "small"}, **port)
    assert c.run(w.pool(), large, small, catalogue=SIZES).types() == ["little"]
    assert c.run(w.pool(), large, w.pod("p", "3", **port), catalogue=SIZES).pending == ["p"]


def test_098_room_for_daemons_is_kept_until_they_are_there_and_only_once() -> None:
    """15.9 CPU, of which one is the daemon's: 14.9 are left before it comes and after."""
    node, agent = w.node("n", cpu="15900m", memory="64Gi"), w.daemon_set("agent", "1")
    there = of_agent(w.pod("agent-1", "1", node="n"))
    for objects in ([node, agent], [node, agent, there]):
        assert c.run(objects, w.pod("p", "14900m")).placed == {"p": "node/n"}
        assert c.run(objects, w.pod("p", "14901m")).pending == ["p"]


def test_099_daemons_larger_than_expected_free_no_room() -> None:
    """What they take beyond the expected is not given back."""
    elsewhere = {"no": "where"}
    node, agent = w.node("n", cpu="15900m", memory="64Gi"), w.daemon_set("agent", "1", nodeSelector=elsewhere)
    there = of_agent(w.pod("agent-1", "1", node="n", nodeSelector=elsewhere))
    assert c.run(node, agent, there, w.pod("p", "15500m")).pending == ["p"]
    assert c.run(node, agent, there, w.pod("p", "14900m")).placed == {"p": "node/n"}


@pytest.mark.parametrize("key", [labels.REGISTERED, labels.INITIALIZED])
@pytest.mark.parametrize(("operator", "values"), [("Exists", []), ("In", ["true"])])
def test_100_a_daemon_that_waits_for_the_node_to_be_grown_up_counts(key: str, operator: str, values: list[str]) -> None:
    """The node will be."""
    assert launches(w.pool(), daemon(affinity=w.node_affinity([(key, operator, values)]))) == ["default"]


def test_101_a_daemon_of_one_zone_takes_nothing_of_a_node_without_a_zone() -> None:
    """A new node of the pool bears it."""
    bare = w.node("bare", cpu="2", memory="2Gi")
    own = {k: v for k, v in bare.metadata.labels.items() if k != labels.ZONE}
    bare = Node(metadata=msgspec.structs.replace(bare.metadata, labels=own), spec=bare.spec, status=bare.status)
    zonal = daemon(nodeSelector={labels.ZONE: "z1"})
    assert c.run(w.pool(), bare, zonal, w.pod("p", "1", "1Gi")).placed == {"p": "node/bare"}
    assert launches(w.pool(), zonal) == ["default"]


@pytest.mark.parametrize("ignored", [True, False])
def test_102_a_daemon_that_claims_devices_counts_unless_claims_are_ignored(ignored: bool) -> None:
    """By its pod that runs, else by its template; on new nodes, and on those that wait for it."""
    agent = daemon(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
    plain = daemon("1m", "1Mi")
    living = of_agent(w.pod("agent-n", "2", node="other", resourceClaims=[{"name": "gpu"}]))
    for objects in ([agent], [plain, w.node("other", cpu="2"), living]):
        assert launches(w.pool(), objects, ignore_dra_requests=ignored) == (["small"] if ignored else ["default"])
    done = c.run(w.node("n", cpu="3"), agent, w.pod("p", "2"), ignore_dra_requests=ignored)
    assert done.placed == ({"p": "node/n"} if ignored else {})


def test_103_a_claim_asks_for_its_pods_and_the_daemons_once() -> None:
    """One pod and two."""
    agent = w.daemon_set("agent", "1", "1Mi")
    one = c.run(w.pool(), agent, w.pod("p", "1", "1Mi")).claims()[0]
    assert one.spec.resources.requests == {"cpu": "2", "memory": "2Mi", "pods": "2"}
    two = c.run(w.pool(), agent, w.replicas(2, "p", "1", "1Mi"), catalogue=c.CATALOGUE[:1]).claims()[0]
    assert two.spec.resources.requests == {"cpu": "3", "memory": "3Mi", "pods": "3"}
