"""The referee sees what it should: each broken answer is called, the right one is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kerf.model.snapshot import Snapshot
from kerf.scheduling.solve import Solution, solve
from kerf_api import labels
from kerf_api.requirements import Requirements
from tests.referee import violations
from tests.unit.scheduling import worlds as w


def asked(*objects: Any, **facts: Any) -> tuple[Snapshot, list[Any], Solution]:
    snapshot = w.world(*objects, **facts)
    pods = list(snapshot.pods.pending.values())
    return snapshot, pods, solve(snapshot, pods)


def on_node(name: str, *pods: str) -> Solution:
    return Solution(placed={f"default/{pod}": f"node/{name}" for pod in pods})


def test_right_answers_pass() -> None:
    snapshot, pods, solution = asked(w.pool(), w.node("n"), w.replicas(9, "p", "900m"))
    assert violations(snapshot, pods, solution) == []


def test_a_forgotten_and_a_doubled_pod() -> None:
    snapshot, pods, solution = asked(w.pool(), w.pod("p"))
    assert violations(snapshot, pods, Solution()) == [("answers", "default/p has 0 answers")]
    doubled = replace(solution, placed={"default/p": "node/n"})
    assert violations(snapshot, pods, doubled) == [("answers", "default/p has 2 answers")]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"nodeSelector": {labels.ZONE: "z2"}}, "node selector"),
        ({"affinity": w.node_affinity([(labels.ZONE, "NotIn", ["z1"])])}, "node affinity"),
        ({"affinity": w.between("podAffinity", app="ghost")}, "no company"),
        ({"topologySpreadConstraints": [w.spread("no/key")]}, "no one value"),
    ],
)
def test_a_pod_on_a_wrong_node(spec: dict[str, Any], words: str) -> None:
    snapshot, pods, _ = asked(w.node("n"), w.pod("p", **spec))
    assert any(words in str(line) for line in violations(snapshot, pods, on_node("n", "p")))


def test_a_taint_a_full_node_and_an_excluded_one() -> None:
    snapshot, pods, _ = asked(w.node("n", cpu="1", taints=[{"key": "k", "effect": "NoSchedule"}]), w.pod("p", "2"))
    lines = violations(snapshot, pods, on_node("n", "p"), frozenset({"node/n"}))
    assert any("no target" in str(line) for line in lines)
    lines = violations(snapshot, pods, on_node("n", "p"))
    assert any("tolerate" in str(line) for line in lines)
    assert any("pods want" in str(line) for line in lines)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"ports": [{"hostPort": 80}]}, "host port"),
        ({"affinity": w.between("podAntiAffinity")}, "are both in"),
        ({"topologySpreadConstraints": [w.spread(labels.HOSTNAME)]}, "skew"),
    ],
)
def test_two_pods_that_may_not_share(spec: dict[str, Any], words: str) -> None:
    snapshot, pods, _ = asked(w.node("n"), w.node("empty"), w.replicas(2, "p", labels={"app": "web"}, **spec))
    assert any(words in str(line) for line in violations(snapshot, pods, on_node("n", "p-0", "p-1")))


def test_a_zone_skew() -> None:
    spec = {"labels": {"app": "web"}, "topologySpreadConstraints": [w.spread()]}
    snapshot, pods, _ = asked(w.node("n"), w.node("m", zone="z2"), w.replicas(2, "p", **spec))
    assert any("skew" in str(line) for line in violations(snapshot, pods, on_node("n", "p-0", "p-1")))


def test_a_new_node_with_wrong_types_price_or_limit() -> None:
    snapshot, pods, solution = asked(w.pool(), w.pod("p", "3"))
    (new,) = solution.new_nodes

    def judged(**changes: Any) -> str:
        return "\n".join(
            str(line) for line in violations(snapshot, pods, replace(solution, new_nodes=(replace(new, **changes),)))
        )

    assert "too little cpu" in judged(instance_types=("small",), price=400_000)
    assert "not in order of price" in judged(instance_types=tuple(reversed(new.instance_types)))
    assert "says that it costs" in judged(price=1)
    assert "is no type" in judged(instance_types=("nope",))
    assert "no offering" in judged(requirements=new.requirements & Requirements.of_labels({labels.ZONE: "z9"}))
    limited = w.world(w.pool(limits={"cpu": "1"}), w.pod("p", "3"))
    assert any("would use" in str(line) for line in violations(limited, pods, solution))


def test_what_a_node_lacks_already_keeps_away_only_who_wants_it() -> None:
    """A node that has lost its GPU while a pod with one runs there."""
    there = w.pod("old", node="n", requests={w.GPU: "1"}, labels={"app": "web"})
    snapshot, pods, _ = asked(w.node("n"), there, w.pod("p"))
    assert violations(snapshot, pods, on_node("n", "p")) == []
    hungry, more, _ = asked(w.node("n"), there, w.pod("p", requests={w.GPU: "1"}))
    assert [v.rule for v in violations(hungry, more, on_node("n", "p"))] == ["room"]


def test_company_on_a_node_without_the_label_bars_nobody_from_founding() -> None:
    company: dict[str, Any] = {"labels": {"app": "web"}, "affinity": w.between("podAffinity", "rack")}
    nodes = [w.node("n"), w.node("m", labels={"rack": "1"})]
    snapshot, pods, _ = asked(nodes, w.pod("old", node="n", labels={"app": "web"}), w.pod("p", **company))
    assert violations(snapshot, pods, on_node("m", "p")) == []


# --- pods of daemon sets that are missing on a node --------------------------------------------------------------
AGENT: dict[str, Any] = {"labels": {"app": "agent"}, "tolerations": []}


def rules_of(*objects: Any) -> list[str]:
    """The rules that the pod `p` breaks on the node `n`."""
    snapshot, pods, _ = asked(*objects)
    return [one.rule for one in violations(snapshot, pods, on_node("n", "p"))]


def test_a_pod_of_a_daemon_set_that_is_missing_takes_its_share() -> None:
    large, small = w.pod("p", "3800m"), w.pod("p", "3200m")
    assert rules_of(w.node("n"), large) == []
    assert rules_of(w.node("n"), w.daemon_set("agent", "500m", **AGENT), large) == ["room"]
    assert rules_of(w.node("n"), w.daemon_set("agent", "500m", **AGENT), small) == []


def test_a_pod_of_a_daemon_set_that_has_no_room_takes_nothing() -> None:
    there = w.pod("old", "3800m", node="n")
    assert rules_of(w.node("n"), there, w.daemon_set("agent", "500m", **AGENT), w.pod("p", "100m")) == []


KEPT_OUT = [
    pytest.param({"affinity": w.between("podAntiAffinity")}, {}, id="its own anti-affinity"),
    pytest.param({}, {"affinity": w.between("podAntiAffinity", app="agent")}, id="anti-affinity to it"),
    pytest.param({"ports": [{"hostPort": 80}]}, {"ports": [{"hostPort": 80}]}, id="a host port"),
    pytest.param({"affinity": w.between("podAffinity", app="ghost")}, {}, id="no company"),
    pytest.param({"topologySpreadConstraints": [w.spread("no/key")]}, {}, id="no label to spread over"),
]


@pytest.mark.parametrize(("daemon", "other"), KEPT_OUT)
def test_a_pod_of_a_daemon_set_that_cannot_run_there_is_no_company(
    daemon: dict[str, Any], other: dict[str, Any]
) -> None:
    there = w.pod("old", node="n", **{"labels": {"app": "web"}, **other})
    seeker = w.pod("p", affinity=w.between("podAffinity", app="agent"))
    assert rules_of(w.node("n"), w.daemon_set("agent", **AGENT), seeker) == []
    assert rules_of(w.node("n"), there, w.daemon_set("agent", **{**AGENT, **daemon}), seeker) == ["affinity"]


def test_a_pod_of_a_daemon_set_comes_to_a_cordoned_node() -> None:
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    seeker = w.pod("p", affinity=w.between("podAffinity", labels.ZONE, app="agent"))
    only_there = w.daemon_set("agent", **AGENT, nodeSelector={labels.HOSTNAME: "m"})
    assert rules_of(w.node("n"), w.node("m", taints=[cordon]), only_there, seeker) == []
    assert rules_of(w.node("n"), w.node("m", taints=[{**cordon, "key": "k"}]), only_there, seeker) == ["affinity"]


def test_a_pod_of_a_daemon_set_of_some_types_keeps_away_and_is_no_company() -> None:
    agent = w.daemon_set("agent", **AGENT, nodeSelector={labels.INSTANCE_TYPE: "small"})
    for kind, rules in (("podAntiAffinity", ["anti-affinity"]), ("podAffinity", ["affinity"])):
        snapshot = w.world(w.pool(), agent, w.pod("p", affinity=w.between(kind, app="agent")))
        pods = list(snapshot.pods.pending.values())
        plain = w.solved(w.pool(), w.pod("p"))
        assert {"small", "default"} <= set(plain.new_nodes[0].instance_types)
        assert [one.rule for one in violations(snapshot, pods, plain)] == rules


def test_a_pod_on_a_node_that_is_there_does_not_wait_for_the_types_of_a_new_one() -> None:
    agent = w.daemon_set("agent", **AGENT, nodeSelector={labels.INSTANCE_TYPE: "small"})
    shy = w.pod("p", affinity=w.between("podAntiAffinity", labels.ZONE, app="agent"))
    snapshot, pods, _ = asked(w.pool(), w.node("n"), agent, shy, w.pod("q"))
    (new,) = w.solved(w.pool(), w.pod("q")).new_nodes
    assert "small" in new.instance_types
    assert violations(snapshot, pods, replace(on_node("n", "p"), new_nodes=(new,))) == []


def test_a_new_node_whose_zone_is_open_counts_for_a_spread_over_zones_and_capacity_types() -> None:
    """It has some zone in any case, and so all labels of the spread."""
    both = {"matchLabels": {"tier": "front"}}
    spread = [w.spread(labels.CAPACITY_TYPE, labelSelector=both), w.spread()]
    first = {"priority": 1, "nodeSelector": {labels.CAPACITY_TYPE: "spot"}}
    spot = w.replicas(2, "spot", "3", labels={"tier": "front"}, **first)
    full = w.node("n", cpu="0", labels={labels.CAPACITY_TYPE: "spot"})
    own = w.replicas(2, "p", "3", labels={"tier": "front", "app": "web"}, topologySpreadConstraints=spread)
    snapshot, pods, solution = asked(w.pool(), full, spot, own)
    assert [len(node.zones) for node in solution.new_nodes if "default/spot-0" in node.pods] == [2]
    assert [node.capacity_types for node in solution.new_nodes if "default/p-0" in node.pods] == [("on-demand",)]
    assert violations(snapshot, pods, solution) == []
