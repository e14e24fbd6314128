"""Nodes that pods cannot use though they are as planned, again and again: the number that Kerf makes is bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kerf.model import kinds
from tests.scenarios.story import Story

SMALL = [{"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["2"]}]
EMPTIED = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s"}
LABEL = "example.com/team"


def _started(web: dict[str, Any], each: Callable[[Story, Any], None], *, joined: bool) -> Story:
    """`each` happens to every Node once, as it comes or when it has `joined`."""
    story, seen = Story({}), set[str]()

    def look() -> None:
        for record in list(story.world.server.records(kinds.NODE)):
            node = record.value
            if node.metadata.name not in seen and (node.initialized or not joined):
                seen.add(node.metadata.name)
                each(story, node)

    story.player.looks.append(look)
    pool = {"requirements": SMALL, "disruption": EMPTIED, "labels": {LABEL: "red"}}
    story.play({"stage": {"pools": {"general": pool}}, "deploy": {"web": {"replicas": 1, **web}}, "no_place": ["web"]})
    return story


def _cordons(story: Story, node: Any) -> None:
    story.world.server.patch(kinds.NODE, "", node.metadata.name, {"spec": {"unschedulable": True}})


def _labels(story: Story, node: Any) -> None:
    story.world.server.patch(kinds.NODE, "", node.metadata.name, {"metadata": {"labels": {LABEL: "blue"}}})


def _puts_a_pod_there(story: Story, node: Any) -> None:
    """One that Kerf does not expect on each node: it is of no DaemonSet."""
    meta = {"name": f"agent-{node.metadata.name}", "namespace": "kube-system"}
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "500m"}}}
    spec = {"nodeName": node.metadata.name, "tolerations": [{"operator": "Exists"}], "containers": [container]}
    story.world.server.create(kinds.POD, {"metadata": meta, "spec": spec})


@pytest.mark.parametrize(
    ("name", "each"), [("cordoned", _cordons), pytest.param("used", _puts_a_pod_there, marks=pytest.mark.long)]
)
def test_after_ten_attempts_in_a_row_the_next_ones_are_delayed(name: str, each: Callable[[Story, Any], None]) -> None:
    story = _started({"cpu": "1800m"}, each, joined=False)
    story.play({"run": "1h", "restart": None})
    assert story.sights.unmet({"launched": "<= 30"}) == {}
    launched = len(story.world.ec2.instances)
    story.play({"run": "2h", "expect": {"launched": f"<= {launched + 3}"}})
    why = {"cordoned": "it is cordoned", "used": "other pods use its capacity"}[name]
    story.play({"expect": {"conditions": {"NodePool general NodeMismatch": why}}})
    story.play({"deploy": {"other": {"replicas": 1, "cpu": "300m", "tolerations": [{"operator": "Exists"}]}}})
    story.play({"expect": {"running": {"other": 1}, "within": "3m"}})


def test_a_few_nodes_that_are_cordoned_delay_nothing() -> None:
    story = _started({"cpu": "1800m"}, lambda story, node: None, joined=False)
    left = [5]

    def look() -> None:
        for record in list(story.world.server.records(kinds.NODE)):
            if left[0] and not record.value.spec.unschedulable:
                left[0] -= 1
                _cordons(story, record.value)

    story.player.looks.append(look)
    story.play({"run": "6m"})
    assert story.sights.unmet({"running": {"web": 1}, "launched": 6}) == {}
    story.play({"always": {"conditions": {"NodePool general NodeMismatch": "^ $"}}, "run": "5m"})


def test_a_label_that_changes_after_pods_are_bound_is_evidence() -> None:
    """The kubelet rejects the pod, and its ReplicaSet makes another one."""
    story = _started({"cpu": "1", "nodeSelector": {LABEL: "red"}}, _labels, joined=True)
    for _ in range(2):
        story.play({"run": "30m", "restart": None})
        assert story.sights.unmet({"launched": "<= 2"}) == {}


@pytest.mark.parametrize(
    ("weather", "seconds"),
    [({"late_taint": "example.com/agent=missing:NoSchedule"}, 180), ({"lacking": {"cpu": "430m"}}, 80)],
    ids=["tainted", "small"],
)
def test_pods_that_are_given_up_and_made_again_get_two_nodes(weather: dict[str, Any], seconds: int) -> None:
    """As those of CI runners, and of Jobs with a deadline: none waits until its node is judged."""
    story = Story({"weather": weather})
    pool = {"requirements": SMALL, "disruption": EMPTIED}
    web = {"replicas": 1, "cpu": "1800m"}
    story.play({"stage": {"pools": {"general": pool}}, "deploy": {"web": web}, "no_place": ["web"]})
    for _ in range(3600 // seconds):
        story.play({"run": f"{seconds}s"})
        for record in list(story.world.server.records(kinds.POD)):
            story.world.server.delete(kinds.POD, *record.key)
    assert story.sights.unmet({"launched": "<= 2"}) == {}


@pytest.mark.parametrize(
    "weather",
    [{"differing_types": ["m7g.large", "c7g.large", "r7g.large"]}, {"differing_nodepools": ["heavy"]}],
    ids=["of an architecture", "of a NodePool"],
)
def test_where_other_nodes_are_well_the_second_one_runs_the_pod(weather: dict[str, Any]) -> None:
    """And pods of another shape, which need such nodes, are served."""
    story = Story({"weather": {"late_taint": "example.com/agent=missing:NoSchedule", **weather}})
    on_demand = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    pool = {"requirements": [*SMALL, on_demand], "disruption": {"consolidateAfter": "Never"}}
    story.play({"stage": {"pools": {"heavy": {**pool, "weight": 50}, "light": pool}}})
    story.play({"deploy": {"web": {"replicas": 1, "cpu": "1500m"}}, "no_place": ["web"], "run": "12m"})
    assert story.sights.unmet({"running": {"web": 1}, "launched": 2}) == {}
    selector = {"nodeSelector": {"kubernetes.io/arch": "amd64"}} if "differing_types" in weather else {}
    story.play({"deploy": {"db": {"replicas": 2, "cpu": "1500m", **selector}}, "no_place": ["db"], "run": "20m"})
    assert story.sights.unmet({"running": {"web": 1, "db": 2}}) == {}


@pytest.mark.parametrize("seconds", [60.0, pytest.param(200.0, marks=pytest.mark.long)])
def test_a_taint_that_evicts_is_learned_of_two_nodes(seconds: float) -> None:
    """The evicted pods come again as others: none waits for the node that it was made for."""
    weather = {"late_taint": "example.com/quarantine=true:NoExecute", "late_taint_after_seconds": seconds}
    story = Story({"weather": weather})
    pool = {"requirements": SMALL, "disruption": EMPTIED}
    story.play({"stage": {"pools": {"general": pool}}, "deploy": {"web": {"replicas": 1}}, "no_place": ["web"]})
    for _ in range(2):
        story.play({"run": "30m", "restart": None})
        assert story.sights.unmet({"launched": "<= 2"}) == {}
