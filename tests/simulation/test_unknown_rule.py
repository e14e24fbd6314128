"""A rule of the scheduler that Kerf does not know keeps pods apart: they run, and are not moved together each hour."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.sandbox.scheduling.scheduler import Scheduler
from tests.scenarios.story import Story

SMALL = [{"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["2"]}]
CONSOLIDATED = {
    "consolidationPolicy": "WhenEmptyOrUnderutilized",
    "consolidateAfter": "30s",
    "budgets": [{"nodes": "100%"}],
}


@pytest.fixture
def _one_pod_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin of the scheduler: no two pods of one app share a node."""
    known: Any = Scheduler._verdict

    def verdict(self: Any, pod: Any, demand: Any, node: Any, rules: Any) -> str:
        app = pod["metadata"]["labels"].get("app")
        if any(one.demand.labels.get("app") == app for one in (*node.pods.values(), *self._guests(node, pod))):
            return "a plugin keeps it away"
        found: str = known(self, pod, demand, node, rules)
        return found

    monkeypatch.setattr(Scheduler, "_verdict", verdict)


@pytest.mark.usefixtures("_one_pod_a_node")
def test_pods_that_a_plugin_keeps_apart_are_not_moved_together_again() -> None:
    story = Story({})
    story.play({"stage": {"pools": {"general": {"requirements": SMALL, "disruption": CONSOLIDATED}}}})
    story.play({"deploy": {"web": {"replicas": 2, "cpu": "300m"}}, "no_place": ["web"]})
    story.play({"expect": {"running": {"web": 2}, "nodes": 2, "within": "30m"}})
    for _ in range(8):
        story.play({"run": "1h"})
        story.play({"restart": None})
    # The node of the first pod is given up for the second one's once; after that both are further attempts.
    assert story.sights.unmet({"running": {"web": 2}, "evicted": "<= 1", "launched": "<= 3"}) == {}
