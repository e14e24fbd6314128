"""How nodes are counted as they come, change and go."""

from __future__ import annotations

import re

from kerf.model.kubernetes.objects import Node
from kerf.telemetry.series.metrics import Metrics
from kerf_api import labels
from kerf_api.v1.meta import ObjectMeta


def node(pool: str = "general", capacity_type: str = "spot", zone: str = "eu-west-1a") -> Node:
    own = {labels.NODEPOOL: pool, labels.CAPACITY_TYPE: capacity_type, labels.ZONE: zone}
    return Node(metadata=ObjectMeta(name="n", labels={key: value for key, value in own.items() if value}))


def told(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """By capacity type, pool and zone: labels are written in the order of their names."""
    lines = [line for line in metrics.text().decode().splitlines() if line.startswith("kerf_nodes{")]
    return {tuple(re.findall(r'="([^"]*)"', line)): float(line.rpartition(" ")[2]) for line in lines}


def test_nodes_come_and_go() -> None:
    metrics = Metrics()
    for _ in range(3):
        metrics.fleet.see(None, node())
    metrics.fleet.see(None, node(capacity_type="on-demand"))
    metrics.fleet.see(node(), None)
    assert told(metrics) == {("on-demand", "general", "eu-west-1a"): 1, ("spot", "general", "eu-west-1a"): 2}


def test_a_node_counts_once_whatever_else_changes_about_it() -> None:
    metrics = Metrics()
    metrics.fleet.see(None, node(zone=""))
    metrics.fleet.see(node(zone=""), node())
    metrics.fleet.see(node(), node())
    assert told(metrics) == {("spot", "general", "eu-west-1a"): 1}


def test_of_what_has_gone_and_of_nodes_of_others_nothing_is_told() -> None:
    metrics = Metrics()
    metrics.fleet.see(None, node(pool=""))
    metrics.fleet.see(None, node())
    metrics.fleet.see(node(), None)
    assert told(metrics) == {}
    assert "# TYPE kerf_nodes gauge" in metrics.text().decode()
