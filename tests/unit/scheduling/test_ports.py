"""Host ports as the kube-scheduler's plugin NodePorts reads them."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.pods.host_ports import clash, host_ports
from tests.referee import needs
from tests.unit.scheduling import worlds as w

PORT = {"containerPort": 80, "hostPort": 9901}
SIDECAR = {"restartPolicy": "Always"}


def init(ports: Any, **more: Any) -> dict[str, Any]:
    return {"initContainers": [{"name": "mesh", "ports": ports, **more}]}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"ports": [PORT]}, [("0.0.0.0", 9901, "TCP")]),
        ({"ports": [{**PORT, "hostIP": "10.0.0.1", "protocol": "UDP"}]}, [("10.0.0.1", 9901, "UDP")]),
        ({"ports": [{**PORT, "protocol": ""}]}, [("0.0.0.0", 9901, "TCP")]),
        ({"ports": [{"containerPort": 80}]}, []),
        (init([PORT], **SIDECAR), [("0.0.0.0", 9901, "TCP")]),
        (init([PORT]), []),
        (init([PORT], restartPolicy="Never"), []),
        (init([PORT, PORT], **SIDECAR), [("0.0.0.0", 9901, "TCP")]),
        ({"ports": [{"containerPort": 80}], "hostNetwork": True}, [("0.0.0.0", 80, "TCP")]),
        ({**init([{"containerPort": 81}], **SIDECAR), "hostNetwork": True}, [("0.0.0.0", 81, "TCP")]),
    ],
)
def test_which_ports_a_pod_has_on_its_host(spec: dict[str, Any], found: list[tuple[str, int, str]]) -> None:
    assert list(host_ports(w.pod("p", **spec))) == found
    assert sorted(needs.host_ports(w.pod("p", **spec))) == found


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ("0.0.0.0", "10.0.0.1", True),
        ("10.0.0.1", "0.0.0.0", True),
        ("0.0.0.0", "::", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("::", "fd00::1", False),
        ("::", "10.0.0.1", False),
    ],
)
def test_only_every_address_of_ipv4_stands_for_others(one: str, two: str, expected: bool) -> None:
    assert clash([(one, 80, "TCP")], [(two, 80, "TCP")]) is expected
    assert needs.clash((one, 80, "TCP"), (two, 80, "TCP")) is expected


def test_pods_with_the_same_sidecar_port_get_a_node_each() -> None:
    replicas = w.replicas(3, "p", **init([PORT], **SIDECAR))
    assert [len(node.pods) for node in w.solved(w.pool(), replicas).new_nodes] == [1, 1, 1]


def test_pods_that_differ_in_a_sidecar_port_only_are_told_apart() -> None:
    pods = [w.pod(str(n), **init([{"hostPort": n}], **SIDECAR)) for n in (80, 80, 81)]
    pods[1] = w.pod("other", **init([{"hostPort": 80}], **SIDECAR))
    assert sorted(len(node.pods) for node in w.solved(w.pool(), pods).new_nodes) == [1, 2]


def test_a_daemon_set_on_the_hosts_network_takes_its_ports_of_new_nodes() -> None:
    agent = w.daemon_set("agent", ports=[{"containerPort": 80}], hostNetwork=True, tolerations=[])
    assert w.solved(w.pool(), agent, w.pod("p", ports=[{"hostPort": 80}])).unplaced.keys() == {"default/p"}


def test_a_daemon_set_keeps_its_port_on_a_node_where_its_pod_is_not_yet() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
    agent = w.daemon_set("agent", ports=[PORT], tolerations=[])
    taken = w.pod("p", ports=[PORT])
    assert w.solved(w.node("n"), agent, taken).unplaced
    assert w.solved(w.node("n"), agent, w.pod("agent-1", node="n", owner=owner), taken).placed
    red = {"key": "team", "value": "red", "effect": "NoSchedule"}
    tolerant = w.pod("p", ports=[PORT], tolerations=[{"operator": "Exists"}])
    assert w.solved(w.node("n", taints=[red]), agent, tolerant).placed


def test_a_daemon_set_runs_in_spite_of_a_soft_taint() -> None:
    """What it takes is kept free on a node where its pod is not yet."""
    soft = {"key": "team", "value": "red", "effect": "PreferNoSchedule"}
    agent = w.daemon_set("agent", "3", tolerations=[])
    assert w.solved(w.node("n", taints=[soft]), agent, w.pod("p", "2")).unplaced
    assert w.solved(w.node("n", taints=[{**soft, "effect": "NoSchedule"}]), agent, w.pod("p", "2")).unplaced
    assert w.solved(w.node("n", taints=[soft]), agent, w.pod("p", "900m")).placed
