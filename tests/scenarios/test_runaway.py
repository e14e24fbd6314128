"""Nodes that come up other than planned: each cause costs two nodes a day at most, and other pods are served meanwhile.

Consolidation is on, and Kerf is restarted again and again; in the long test every hour of a day.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from kerf.model.kinds import NODE_CLAIM
from tests.scenarios.story import Story
from tests.worlds import storage_class

TAINT = "corp.example.com/agent=missing:NoSchedule"
SMALL = [{"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["2"]}]
GENERAL = [*SMALL, {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["m"]}]
ANY = [{"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["2", "4"]}]
NO_MISMATCH = "NodePool general NodeMismatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """`weather` makes nodes differ; `web` is the workload; it `runs` in the end or not; so many `nodes` at most."""

    weather: Mapping[str, Any] = field(default_factory=dict)
    web: Mapping[str, Any] = field(default_factory=dict)
    sizes: list[Any] = field(default_factory=lambda: SMALL)
    runs: bool = False
    nodes: int = 2
    settings: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    daemon: Mapping[str, Any] | None = None


def _asking(requests: Mapping[str, str]) -> Mapping[str, Any]:
    return {"name": "main", "image": "main", "resources": {"requests": requests}}


def _ephemeral(number: int) -> Mapping[str, Any]:
    spec = {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"], "resources": {}}
    return {"name": f"v{number}", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


AGENT = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "agent"}}}
CAUSES = {
    "daemon-anti-affinity": Cause(
        daemon={"tolerations": [{"operator": "Exists"}]},
        web={"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [AGENT]}}},
    ),
    "taint-for-good": Cause(weather={"late_taint": TAINT}),
    "taint-for-90s": Cause(weather={"late_taint": TAINT, "late_taint_seconds": 90}, runs=True, nodes=1),
    "cpu": Cause(weather={"lacking": {"cpu": "430m"}}, web={"cpu": "1800m"}),
    "cpu-of-nominated-pods": Cause(
        weather={"lacking": {"cpu": "430m"}}, web={"cpu": "1800m"}, settings={"nominate_pods": True}
    ),
    "cpu-of-two-cpus": Cause(weather={"lacking": {"cpu": "430m"}}, web={"cpu": "1800m"}, sizes=ANY, runs=True),
    "memory": Cause(weather={"lacking": {"memory": "3Gi"}}, web={"memory": "6000Mi"}, sizes=GENERAL),
    "ephemeral-storage": Cause(
        weather={"lacking": {"ephemeral-storage": "5Gi"}},
        web={"containers": [_asking({"cpu": "100m", "ephemeral-storage": "16Gi"})]},
    ),
    "pods": Cause(weather={"lacking": {"pods": "28"}}, daemon={"tolerations": [{"operator": "Exists"}]}),
    "volumes": Cause(
        weather={"lacking_attachments": 25},
        web={"volumes": [_ephemeral(number) for number in range(3)]},
    ),
    "label-that-never-comes": Cause(
        weather={"missing_labels": ["example.com/rack"]},
        labels={"example.com/rack": "r1"},
        web={"nodeSelector": {"example.com/rack": "r1"}},
    ),
}
#: The others take as long, and are like one of these.
QUICK = (
    "cpu-of-nominated-pods",
    "taint-for-good",
    "taint-for-90s",
    "cpu-of-two-cpus",
    "volumes",
    "label-that-never-comes",
)


@pytest.mark.parametrize("name", QUICK)
def test_two_nodes_at_most(name: str) -> None:
    live(CAUSES[name], "10m", 2)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", CAUSES)
def test_two_nodes_a_day_at_most(name: str) -> None:
    live(CAUSES[name], "1h", 24)


def live(cause: Cause, each: str, restarts: int) -> None:
    disruption = {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "30s",
        "budgets": [{"nodes": "100%"}],
    }
    story = Story({"weather": dict(cause.weather), "settings": dict(cause.settings)})
    story.play(
        {
            "stage": {
                "pools": {
                    "general": {"disruption": disruption, "requirements": cause.sizes, "labels": dict(cause.labels)}
                }
            }
        }
    )
    if cause.daemon is not None:
        story.play({"daemon": {"agent": cause.daemon}})
    story.play({"apply": storage_class()})
    story.play({"deploy": {"web": {"replicas": 1, **cause.web}}, "no_place": ["web"]})
    for _ in range(restarts):
        story.play({"run": each, "restart": None, "expect": {"launched": f"<= {cause.nodes}"}})
    story.play({"expect": {"running": {"web": 1 if cause.runs else 0}}})
    story.end()


def test_a_buffer_of_which_new_nodes_hold_no_pod() -> None:
    """Nobody tries the pod of a buffer: Kerf compares the node with the plan."""
    story = Story({"gates": {"capacity_buffer": True}, "weather": {"lacking": {"cpu": "430m"}}})
    disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s"}
    story.play({"stage": {"pools": {"general": {"disruption": disruption, "requirements": SMALL}}}})
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "1800m"}}}
    meta = {"name": "spare", "namespace": "default"}
    story.play(
        {
            "apply": {
                "apiVersion": "v1",
                "kind": "PodTemplate",
                "metadata": meta,
                "template": {"spec": {"containers": [container]}},
            }
        }
    )
    spec = {"podTemplateRef": {"name": "spare"}, "replicas": 1}
    kind = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer"}
    story.play({"apply": {**kind, "metadata": meta, "spec": spec}})
    for _ in range(2):
        story.play({"run": "10m", "restart": None, "expect": {"launched": "<= 2"}})


def test_a_node_that_never_initializes_is_followed_by_one_more() -> None:
    story = Story({"weather": {"ready_failure_rate": 1.0}})
    story.play({"stage": {}, "deploy": {"web": {"replicas": 1}}, "no_place": ["web"], "run": "30m"})
    story.play({"expect": {"launched": 2}})
    story.play(
        {"weather": {"ready_failure_rate": 0.0}, "cure": None, "expect": {"running": {"web": 1}, "within": "3m"}}
    )


@pytest.mark.parametrize("static", [False, True])
def test_after_nodes_that_never_join_there_is_one_at_a_time(*, static: bool) -> None:
    story = Story({"gates": {"static_capacity": True}, "weather": {"boot_failure_rate": 1.0}})
    pool = {"requirements": SMALL, **({"replicas": 6} if static else {})}
    story.play({"stage": {"pools": {"general": pool}}})
    if not static:
        story.play({"deploy": {"web": {"replicas": 6, "cpu": "1500m"}}})
    story.play({"run": "20m"})
    story.play({"run": "2h", "restart": None})
    assert story.sights.unmet({"launched": "<= 14"}) == {}
    story.play({"weather": {"boot_failure_rate": 0.0}, "expect": {"nodes": 6, "within": "25m"}})


def test_when_half_of_the_nodes_never_join_the_others_are_launched_together() -> None:
    story = Story({"weather": {"boot_failure_rate": 0.5}})
    story.play({"stage": {"pools": {"general": {"requirements": SMALL}}}})
    story.play({"deploy": {"web": {"replicas": 30, "cpu": "1500m"}}, "run": "25m", "expect": {"nodes": ">= 20"}})


def test_successors_in_a_static_node_pool_that_never_initialize_are_tried_once_an_hour() -> None:
    """No node that is well makes way for one that is not."""
    story = Story({"gates": {"static_capacity": True}})
    pool = {"replicas": 4, "requirements": SMALL, "budgets": [{"nodes": "1"}]}
    story.play({"stage": {"pools": {"herd": pool}}, "run": "5m", "expect": {"claims": 4}})
    story.play({"weather": {"ready_failure_rate": 1.0}, "edit": {"herd": {"labels": {"v": "2"}}}})
    for _ in range(12):
        story.play({"run": "15m"})
        assert sum(one.value.is_true("Initialized") for one in story.world.server.records(NODE_CLAIM)) == 4
    assert story.sights.unmet({"launched": "<= 10"}) == {}
    story.play({"weather": {"ready_failure_rate": 0.0}, "run": "2h", "expect": {"launched": "<= 14"}})
    story.play({"expect": {"labelled": {"v": ["2"]}, "claims": 4}})


def test_many_replicas_of_one_shape_all_get_their_nodes() -> None:
    """Nodes come up one after the other, and the kube-scheduler takes any that will do."""
    story = Story({"weather": {"scattered": True}})
    wide = {"requirements": ANY, "disruption": {"consolidateAfter": "30s"}}
    story.play({"stage": {"pools": {"general": wide}}, "deploy": {"web": {"replicas": 100, "cpu": "900m"}}})
    story.play({"expect": {"running": {"web": 100}, "within": "3m"}, "always": {"conditions": {NO_MISMATCH: "^ $"}}})
    story.play({"scale": {"web": 150}, "expect": {"running": {"web": 150}, "within": "3m"}})


def test_a_thousand_replicas_of_one_shape_all_get_their_nodes() -> None:
    story = Story({"weather": {"scattered": True}})
    wide = {"requirements": ANY, "disruption": {"consolidateAfter": "30s"}}
    story.play({"stage": {"pools": {"general": wide}}, "always": {"conditions": {NO_MISMATCH: "^ $"}}})
    story.play({"deploy": {"web": {"replicas": 1000, "cpu": "300m"}}})
    story.play({"expect": {"running": {"web": 1000}, "within": "5m"}})


def test_pods_whose_capacity_pods_of_another_shape_take_get_their_nodes() -> None:
    """The kube-scheduler binds the pods of both shapes to any node with capacity, whichever it was made for."""
    story = Story({"weather": {"scattered": True}})
    wide = {"requirements": ANY, "disruption": {"consolidateAfter": "30s"}}
    both = {"web": {"replicas": 40, "cpu": "900m"}, "db": {"replicas": 40, "cpu": "1100m"}}
    story.play({"stage": {"pools": {"general": wide}}, "always": {"conditions": {NO_MISMATCH: "^ $"}}})
    story.play({"deploy": both, "expect": {"running": {"web": 40, "db": 40}, "within": "3m"}})
    story.play({"scale": {"web": 60}, "expect": {"running": {"web": 60}, "within": "3m"}})


def test_a_part_of_the_nodes_is_bad_and_all_replicas_run() -> None:
    story = Story({"weather": {"late_taint": TAINT, "differing_share": 0.3}})
    story.play({"stage": {}, "deploy": {"web": {"replicas": 20, "alone": True}}})
    story.play({"expect": {"running": {"web": 20}, "within": "30m"}})
