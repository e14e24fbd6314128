"""A Deployment grows for seconds: the first full node is ordered meanwhile, and none is ordered twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import kubernetes
import pytest
import yaml

from . import record
from .binding import Json
from .control_plane import ControlPlane
from .fleet import is_true
from .installation import Installation

pytestmark = pytest.mark.cluster

MANIFEST = Path(__file__).parent / "early_orders.yaml"
#: Pods at first and in each step; four of them fill a node.
FIRST, MORE = 24, 4
EVERY_SECONDS = 0.5
#: The batch is open for so long after a pod, and never longer than that: far longer than a busy machine needs.
IDLE_SECONDS, MOST_SECONDS = 15, 150
#: The Deployment still grows so many steps after the first order: pods come while nodes are being made.
LAST_STEPS = 4
#: Seconds within which each step happens also on a busy machine.
SOON = 240


@pytest.fixture
def kerf(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Installation]:
    batch = {"settings.batchIdleDuration": f"{IDLE_SECONDS}s", "settings.batchMaxDuration": f"{MOST_SECONDS}s"}
    with Installation(control_plane, tmp_path, values=batch) as installation:
        # Four pods fill a node beside no DaemonSet: tests before this one may have left theirs.
        installation.kubectl("delete", "daemonsets", "--all", "-n", "kube-system")
        yield installation
        installation.kubectl("delete", "--wait=false", "-f", str(MANIFEST))
        installation.wait(lambda: not installation.get("nodeclaims"), 120, "no claim is left")
        installation.wait(lambda: "growing" not in str(installation.get("ec2nodeclasses")), 60, "no class is left")


def test_a_full_node_is_ordered_while_pods_keep_coming(kerf: Installation) -> None:
    ground, pods = MANIFEST.read_text().rsplit("---", 1)
    kerf.kubectl("apply", "-f", "-", input_=ground)
    kerf.wait(lambda: any(_is_ready(pool) for pool in kerf.get("nodepools")), SOON, "the pool is Ready")
    connect: Any = kubernetes.config.new_client_from_config
    create: Any = kubernetes.utils.create_from_dict
    client = connect(str(kerf.control_plane.kubeconfig))
    apps = kubernetes.client.AppsV1Api(client)
    came = [time.time()]
    create(client, yaml.safe_load(pods))
    left = LAST_STEPS
    while left and time.time() < came[0] + MOST_SECONDS:
        time.sleep(EVERY_SECONDS)
        came.append(time.time())
        replicas = FIRST + (len(came) - 1) * MORE
        apps.patch_namespaced_deployment_scale("growing", "default", {"spec": {"replicas": replicas}})
        left -= any(_orders(kerf))
    kerf.wait(lambda: len(kerf.running("growing")) == replicas, SOON, "all pods run")
    orders = list(_orders(kerf))
    print(f"\norders, s before the last pods: {[round(came[-1] - at, 2) for at, *_ in orders]}", flush=True)
    assert orders[0][0] < came[0] + MOST_SECONDS, "the batch was open"
    before = [at for at in came if at < orders[0][0]]
    assert all(b - a < IDLE_SECONDS for a, b in pairwise([*before, orders[0][0]])), "the batch was open"
    # Pods that come after a close may have room on a node that it made: they need no order.
    assert sum(pods for *_, pods in orders) <= replicas, "no pod is planned twice"
    assert sum(nodes for _, nodes, _ in orders) == len(kerf.get("nodeclaims")) == replicas // 4


def _is_ready(pool: Json) -> bool:
    return pool["metadata"]["name"] == "growing" and is_true(pool, "Ready")


def _orders(kerf: Installation) -> Iterator[tuple[float, int, int]]:
    """When nodes were ordered, in seconds since the epoch, how many, and for how many pods."""
    for row in record.said(kerf.log("controller"), "computed new nodeclaim(s) to fit pod(s)"):
        yield datetime.fromisoformat(row["time"]).timestamp(), row["nodeclaims"], row["pods"]
