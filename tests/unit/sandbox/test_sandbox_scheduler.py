"""Where the sandbox's scheduler puts pods, and where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model.kinds import Ref
from kerf.sandbox.world import World
from kerf_api import labels

from .sandbox_world import node, places, pod, pods, wait

ZONE, HOST = labels.ZONE, labels.HOSTNAME


def world_of(*nodes: dict[str, Any]) -> World:
    world = World()
    for manifest in nodes:
        world.apply(manifest)
    wait(world, 10)
    return world


def affinity(kind: str, key: str, app: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(key: str, **more: Any) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"set": "s"}},
        **more,
    }
    return {"topologySpreadConstraints": [constraint]}


def node_affinity(*rows: dict[str, Any]) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(rows)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def test_least_allocated_node_wins() -> None:
    world = world_of(node("one"), node("two"))
    for name in ("a", "b", "c"):
        world.apply(pod(name))
    wait(world, 1)
    assert places(world) == {"a": "one", "b": "two", "c": "one"}


def test_full_node_takes_no_more_and_the_pod_is_marked_once() -> None:
    world = world_of(node("one", cpu="1"))
    world.apply(pod("a", "800m"))
    world.apply(pod("b", "300m"))
    wait(world, 1)
    refused = pods(world)[1]
    assert refused.spec.node_name == ""
    assert [(c.type, c.status, c.reason) for c in refused.status.conditions] == [
        ("PodScheduled", "False", "Unschedulable")
    ]
    world.apply(node("two"))
    wait(world, 10)
    assert places(world)["b"] == "two"


def test_room_that_a_pod_leaves_is_taken() -> None:
    world = world_of(node("one", cpu="1"))
    world.apply(pod("a", "800m"))
    world.apply(pod("b", "300m"))
    wait(world, 1)
    world.delete("Pod", "a")
    wait(world, 10)
    assert places(world) == {"b": "one"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"nodeSelector": {ZONE: "b"}}, "two"),
        ({"nodeSelector": {ZONE: "c"}}, ""),
        (node_affinity({"key": ZONE, "operator": "NotIn", "values": ["a"]}), "two"),
        (node_affinity({"key": ZONE, "operator": "In", "values": ["a"]}), "one"),
        (node_affinity({"key": "speed", "operator": "Exists"}), ""),
        (node_affinity({"key": "speed", "operator": "DoesNotExist"}), "one"),
        ({"nodeSelector": {HOST: "two"}}, "two"),
        ({"schedulingGates": [{"name": "wait"}]}, ""),
    ],
)
def test_selectors(spec: dict[str, Any], expected: str) -> None:
    world = world_of(node("one", "a"), node("two", "b"))
    world.apply(pod("a", **spec))
    wait(world, 1)
    assert places(world)["a"] == expected


@pytest.mark.parametrize(
    ("taint", "toleration", "expected"),
    [
        ({"key": "team", "value": "red", "effect": "NoSchedule"}, None, ""),
        ({"key": "team", "value": "red", "effect": "NoExecute"}, None, ""),
        ({"key": "team", "value": "red", "effect": "PreferNoSchedule"}, None, "one"),
        ({"key": "team", "value": "red", "effect": "NoSchedule"}, {"key": "team", "value": "red"}, "one"),
        ({"key": "team", "value": "red", "effect": "NoSchedule"}, {"key": "team", "value": "blue"}, ""),
        ({"key": "team", "value": "red", "effect": "NoSchedule"}, {"operator": "Exists"}, "one"),
    ],
)
def test_taints(taint: dict[str, str], toleration: dict[str, str] | None, expected: str) -> None:
    world = world_of(node("one", taints=[taint]))
    world.apply(pod("a", tolerations=[toleration] if toleration else []))
    wait(world, 1)
    assert places(world)["a"] == expected


def test_cordoned_node_takes_nothing() -> None:
    world = world_of(node("one", unschedulable=True))
    world.apply(pod("a"))
    wait(world, 1)
    assert places(world)["a"] == ""


def test_zone_spread_keeps_the_skew() -> None:
    world = world_of(node("one", "a"), node("two", "b", cpu="1"))
    for number in range(5):
        world.apply(pod(f"p{number}", "400m", {"set": "s"}, **spread(ZONE)))
    wait(world, 1)
    assert sorted(places(world).values()) == ["one", "one", "one", "two", "two"]


def test_spread_waits_for_the_least_filled_zone() -> None:
    world = world_of(node("one", "a"), node("two", "b", cpu="500m"))
    for number in range(4):
        world.apply(pod(f"p{number}", "400m", {"set": "s"}, **spread(ZONE)))
    wait(world, 1)
    assert sorted(places(world).values()) == ["", "one", "one", "two"]


def test_min_domains_counts_missing_zones_as_empty() -> None:
    world = world_of(node("one", "a"), node("two", "a"))
    for number in range(2):
        world.apply(pod(f"p{number}", own={"set": "s"}, **spread(ZONE, minDomains=2)))
    wait(world, 1)
    assert sorted(places(world).values())[0] == ""


def test_affinity_needs_a_neighbour() -> None:
    world = world_of(node("one", "a"), node("two", "b"))
    world.apply(pod("web", **affinity("podAffinity", ZONE, "cache")))
    wait(world, 1)
    assert places(world)["web"] == ""
    world.apply(pod("cache", nodeSelector={ZONE: "b"}))
    wait(world, 1)
    assert places(world) == {"cache": "two", "web": "two"}


def test_first_of_a_group_that_attracts_itself_goes_anywhere() -> None:
    world = world_of(node("one", "a"), node("two", "b"))
    for name in ("x", "y"):
        world.apply(pod(name, own={"app": "group"}, **affinity("podAffinity", ZONE, "group")))
    wait(world, 1)
    assert places(world) == {"x": "one", "y": "one"}


def test_anti_affinity_keeps_apart_in_both_directions() -> None:
    world = world_of(node("one", "a"), node("two", "b"))
    world.apply(pod("lonely", **affinity("podAntiAffinity", ZONE, "noisy")))
    wait(world, 1)
    world.apply(pod("noisy", nodeSelector={ZONE: "a"}))
    wait(world, 1)
    assert places(world) == {"lonely": "one", "noisy": ""}


def test_host_ports_clash() -> None:
    world = world_of(node("one"))
    for name in ("a", "b"):
        manifest = pod(name)
        manifest["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
        world.apply(manifest)
    wait(world, 1)
    assert places(world) == {"a": "one", "b": ""}


def test_priority_goes_first() -> None:
    world = World()
    world.apply(pod("low", "800m"))
    world.apply(pod("high", "800m", priorityClassName="system-node-critical"))
    world.apply(node("one", cpu="1"))
    wait(world, 10)
    assert places(world) == {"high": "one", "low": ""}


def test_a_pod_of_another_scheduler_is_left_alone_and_takes_room_once_it_is_bound() -> None:
    world = world_of(node("one", cpu="1"))
    world.apply(pod("theirs", "800m", schedulerName="slow"))
    wait(world, 10)
    assert [p.status.conditions for p in pods(world)] == [()]
    world.server.bind("default", "theirs", "one", "2026-01-01T00:00:20Z")
    world.apply(pod("ours", "300m"))
    wait(world, 10)
    assert places(world) == {"theirs": "one", "ours": ""}


# --- nominations --------------------------------------------------------------------------------------------------
def nominate(world: World, name: str, node_name: str) -> None:
    status = {"status": {"nominatedNodeName": node_name}}
    world.kube.patch(Ref("Pod", "default", name), status, subresource="status")


def test_a_nominated_node_comes_first_and_keeps_its_room() -> None:
    world = world_of()
    for name in ("a", "b"):
        world.apply(pod(name, "800m"))
    wait(world, 1)
    nominate(world, "b", "one")
    world.apply(node("one", cpu="1"))
    wait(world, 10)
    assert places(world) == {"a": "", "b": "one"}
    world.apply(node("two", cpu="1"))
    wait(world, 10)
    assert places(world) == {"a": "two", "b": "one"}


def test_who_is_more_important_takes_the_room() -> None:
    world = world_of()
    world.apply(pod("a", "800m", priority=1))
    world.apply(pod("b", "800m"))
    wait(world, 1)
    nominate(world, "b", "one")
    world.apply(node("one", cpu="1"))
    wait(world, 10)
    assert places(world) == {"a": "one", "b": ""}


def test_a_nomination_waits_for_a_node_that_takes_no_pods_yet_and_is_dropped_when_it_has_no_room() -> None:
    taint = {"key": "starting", "effect": "NoSchedule"}
    world = world_of(node("one", cpu="1", taints=[taint]))
    world.apply(pod("a", "2"))
    wait(world, 1)
    nominate(world, "a", "one")
    world.apply(pod("b"))
    wait(world, 1)
    assert [one.status.nominated_node_name for one in pods(world)] == ["one", ""]
    world.kube.patch(Ref("Node", "", "one"), {"spec": {"taints": []}})
    wait(world, 1)
    assert [one.status.nominated_node_name for one in pods(world)] == ["", ""]


def test_a_nomination_to_a_node_that_is_not_there_is_dropped() -> None:
    world = world_of(node("one", cpu="1"))
    world.apply(pod("a", "2"))
    wait(world, 1)
    nominate(world, "a", "nowhere")
    world.apply(pod("b"))
    wait(world, 1)
    assert [one.status.nominated_node_name for one in pods(world)] == ["", ""]
