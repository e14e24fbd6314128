"""The real kube-scheduler and Kerf agree on spreads, affinity terms and DaemonSet pods, and no node is bought in vain.

The pods that no node helps wait from the start; the other tests run meanwhile. The tests depend on their order.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import record
from .control_plane import ControlPlane
from .installation import Installation

pytestmark = [pytest.mark.cluster, pytest.mark.long]

HERE = Path(__file__).parent
STAGE = str(HERE / "topology_facts.yaml")
ZONE = "topology.kubernetes.io/zone"
POOLS = ("team-ab", "team-other", "team-terms", "team-small", "team-wide")
#: Replicas of the Deployments that have pods from the start.
AT_ONCE = {"short": 1, "larger": 1, "loner": 1, "cache": 1, "queue": 1, "spread": 4}
#: Kerf makes a provisioning pass several times meanwhile, and consolidation looks at the nodes.
QUIET_SECONDS = 15.0
#: A verdict comes 60 s after the initialization of a node.
VERDICT_SECONDS = 150.0


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("topology")
    with Installation(control_plane, folder, webhook=False, families=("c6a",)) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        installation.kubectl("apply", "-f", STAGE)
        names = [f"nodepool/{pool}" for pool in POOLS]
        installation.kubectl("wait", "--for=condition=Ready", "--timeout=60s", *names)
        for app, replicas in AT_ONCE.items():
            scale(installation, app, replicas)
        yield installation
        installation.kubectl("delete", "--wait=false", "-f", STAGE)
        installation.wait(lambda: not any(claims(installation, pool) for pool in POOLS), 120, "no node is left")


def claims(kerf: Installation, pool: str) -> list[dict[str, Any]]:
    return kerf.get("nodeclaims", selector=f"karpenter.sh/nodepool={pool}")


def created(kerf: Installation, pool: str) -> int:
    """The number of NodeClaims of a NodePool that Kerf has ever created, by the API server's record."""
    return sum(
        event["verb"] == "create"
        and event["objectRef"]["resource"] == "nodeclaims"
        and event["objectRef"].get("name", "").startswith(f"{pool}-")
        and event["responseStatus"]["code"] == 201
        for event in record.events(kerf.control_plane.record)
    )


def refusals(kerf: Installation, app: str) -> list[str]:
    """The messages of Kerf's refusals of an app's pods; those of the kube-scheduler have another form."""
    return [
        event["message"]
        for event in kerf.get("events")
        if event["reason"] == "FailedScheduling"
        and event["involvedObject"]["name"].startswith(f"{app}-")
        and event["message"].startswith("Failed to schedule pod")
    ]


def mismatch(kerf: Installation, pool: str) -> dict[str, Any]:
    """The condition NodeMismatch of a NodePool; empty when there is none."""
    (found,) = (one for one in kerf.get("nodepools") if one["metadata"]["name"] == pool)
    rows = (one for one in found["status"].get("conditions", []) if one["type"] == "NodeMismatch")
    return next(rows, {})


def scale(kerf: Installation, app: str, replicas: int) -> None:
    kerf.kubectl("scale", f"deployment/{app}", f"--replicas={replicas}")


def test_a_spread_has_no_domains_of_a_nodepool_that_its_pods_cannot_use(kerf: Installation) -> None:
    """NodePool `team-other` offers zone c; the pods select nodes of `team-ab`, in zones a and b."""
    kerf.wait(lambda: len(kerf.running("spread")) == 4, 150, "4 pods run")
    zones = {one["metadata"]["name"]: one["metadata"]["labels"][ZONE] for one in kerf.get("nodes")}
    pods = [one for one in kerf.get("pods", selector="app=spread") if one["metadata"]["uid"] in kerf.running("spread")]
    assert Counter(zones[one["spec"]["nodeName"]] for one in pods) == {"us-west-2a": 2, "us-west-2b": 2}


def test_two_affinity_terms_ask_for_one_pod_that_matches_both(kerf: Installation) -> None:
    kerf.wait(lambda: bool(kerf.running("cache") and kerf.running("queue")), 150, "a pod for each term runs")
    before = created(kerf, "team-terms")
    assert before >= 1
    scale(kerf, "follower", 1)
    kerf.wait(lambda: bool(refusals(kerf, "follower")), 60, "the follower is refused")
    time.sleep(QUIET_SECONDS)
    assert created(kerf, "team-terms") == before
    assert not kerf.running("follower")
    scale(kerf, "cache-and-queue", 1)
    kerf.wait(lambda: bool(kerf.running("follower")), 90, "the follower runs")
    assert created(kerf, "team-terms") == before + 1


def test_other_pods_are_served_while_some_wait(kerf: Installation) -> None:
    scale(kerf, "served", 1)
    kerf.wait(lambda: bool(kerf.running("served")), 90, "the other pod runs")
    assert not kerf.running("loner")
    assert not kerf.running("short")


def test_nodes_with_less_allocatable_than_planned_are_bought_twice_at_most(kerf: Installation) -> None:
    """The second node is of a larger type where the NodePool has one; else the pods wait."""
    kerf.wait(lambda: mismatch(kerf, "team-small").get("status") == "True", VERDICT_SECONDS, "the mismatch is reported")
    assert "allocatable cpu is 1500m, expected 1930m" in mismatch(kerf, "team-small")["message"]
    kerf.wait(lambda: bool(kerf.running("larger")), 90, "the pod with a larger type runs")
    assert created(kerf, "team-wide") == 2
    kerf.wait(lambda: not claims(kerf, "team-small"), 90, "no empty node is left")
    kerf.wait(lambda: not mismatch(kerf, "team-wide"), 30, "the mismatch of the pod that runs is over")
    time.sleep(QUIET_SECONDS)
    assert 1 <= created(kerf, "team-small") <= 2
    assert created(kerf, "team-wide") == 2
    assert not kerf.running("short")


def test_a_pod_that_keeps_away_from_pods_of_a_daemonset_gets_no_node(kerf: Installation) -> None:
    """All this time; the one node of its NodePool was made for the other pod."""
    assert not kerf.running("loner")
    assert created(kerf, "team-other") == 1
    assert any("DaemonSet kube-system/log-agent" in message for message in refusals(kerf, "loner"))
