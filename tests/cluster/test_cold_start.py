"""Thirty pods come to a cluster without nodes: how soon the machines are launched, with how many calls of AWS, and
that nothing is launched only to be replaced.

Kerf has `NOMINATE_PODS` set: without it the kube-scheduler puts pods that go anywhere where those should go that have
to be spread, and one to three nodes more are made for these. Karpenter's own figures are those of a run of the same
pods on the same parts (1.14.1, same API server and emulator).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
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
from .moto_aws.client import Call

pytestmark = pytest.mark.cluster

MANIFEST = Path(__file__).parent / "cold_start.yaml"
DEPLOYMENTS = {"cold-web": 20, "cold-api": 10}
#: What Karpenter needed: seconds from apply to launch; calls until all nodes were initialized, and in 14.5 minutes.
PEER = {"launched": 2.3, "CreateFleet": 5, "CreateLaunchTemplate": 11, "calls in 14.5 min": 313}
#: A call launches machines that are alike. The cheapest plan has seven that are not: a small one and a larger on demand
#: in each of two zones, one in the third, two sizes on spot. They take five numbers of pods, and a template for each.
#: The pods are planned in one decision if they come within a second of each other. On a busy machine the Deployments'
#: pods may come in two parts, and each decision has its calls.
AT_MOST = {"CreateFleet": 7, "CreateLaunchTemplate": 5, "calls in 14.5 min": 150}

#: Seconds within which each step happens also on a busy machine.
SOON = 240


@pytest.fixture
def kerf(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Installation]:
    with Installation(control_plane, tmp_path, values={"settings.nominatePods": "true"}) as installation:
        yield installation
        installation.kubectl("delete", "--wait=false", "-f", str(MANIFEST))
        installation.wait(lambda: not installation.get("nodeclaims"), 120, "no claim is left")
        installation.wait(lambda: "cold" not in str(installation.get("ec2nodeclasses")), 60, "no class is left")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("minutes", [0.5, pytest.param(14.5, marks=pytest.mark.long, id="14.5 minutes")])
def test_thirty_pods_on_an_empty_cluster(kerf: Installation, minutes: float) -> None:
    ground, pods = MANIFEST.read_text().rsplit("---", 1)
    kerf.kubectl("apply", "-f", "-", input_=ground)
    kerf.wait(lambda: any(_is_ready(pool) for pool in kerf.get("nodepools")), SOON, "the pool is Ready")
    before = kerf.aws.calls()
    connect: Any = kubernetes.config.new_client_from_config
    create: Any = kubernetes.utils.create_from_dict
    client = connect(str(kerf.control_plane.kubeconfig))
    applied = time.time()  # kubectl needs a second of its own before it asks for anything
    create(client, yaml.safe_load(pods))
    kerf.wait(lambda: all(len(kerf.running(name)) == many for name, many in DEPLOYMENTS.items()), SOON, "all pods run")
    kerf.wait(lambda: all(is_true(claim, "Initialized") for claim in kerf.get("nodeclaims")), SOON, "nodes initialized")
    running, first = time.time(), {claim["metadata"]["uid"] for claim in kerf.get("nodeclaims")}
    time.sleep(max(minutes * 60 - (running - applied), 0))
    calls = kerf.aws.calls()
    kept = {claim["metadata"]["uid"] for claim in kerf.get("nodeclaims")}
    launched = [at - applied for at in _launches(kerf)]
    _show(calls[len(before) :], before, applied, running, minutes, launched)
    found, decisions = _made(calls[len(before) :]), list(_decisions(kerf))
    assert len(decisions) == 1 or minutes < 1
    allowed = {name: AT_MOST[name] * len(decisions) for name in ("CreateFleet", "CreateLaunchTemplate")}
    assert {name: found[name] for name, most in allowed.items() if found[name] > most} == {}
    assert sum(pods for _, pods in decisions) <= sum(DEPLOYMENTS.values()), "no pod is planned twice"
    assert sum(claims for claims, _ in decisions) == len(launched) == len(kept)
    assert found["CreateFleet"] <= len(launched)
    assert len(calls) <= AT_MOST["calls in 14.5 min"]
    assert kept == first
    assert found["TerminateInstances"] == 0


def _is_ready(pool: Json) -> bool:
    return pool["metadata"]["name"] == "cold" and is_true(pool, "Ready")


def _made(calls: Iterable[Call]) -> Counter[str]:
    """How often each action was called; a call tried again is one."""
    return Counter(action for action, _ in {(call.action, call.digest) for call in calls})


def _launches(kerf: Installation) -> Iterator[float]:
    """When the controller told, with what EC2 had answered, that a node claim was launched; seconds since the epoch."""
    for row in record.said(kerf.log("controller"), "launched nodeclaim"):
        yield datetime.fromisoformat(row["time"]).timestamp()


def _decisions(kerf: Installation) -> Iterator[tuple[int, int]]:
    """The number of node claims of each decision that made some, and the number of their pods."""
    for row in record.said(kerf.log("controller"), "computed new nodeclaim(s) to fit pod(s)"):
        yield row["nodeclaims"], row["pods"]


def _show(
    calls: list[Call], before: list[Call], applied: float, running: float, minutes: float, launched: list[float]
) -> None:
    """Ours and the peer's, side by side."""
    early = _made(call for call in calls if call.time <= running)
    fleets = [f"{call.time - applied:.2f}" for call in calls if call.action == "CreateFleet"]
    print(f"\n{'':24}{'Kerf':>8}{'Karpenter 1.14.1':>18}")
    print(f"{'asked for, s after apply':24}{' '.join(fleets):>8}{'':>18}")
    print(f"{'first launched, s':24}{min(launched):>8.2f}{PEER['launched']:>18}")
    print(f"{'last launched, s':24}{max(launched):>8.2f}")
    for name in ("CreateFleet", "CreateLaunchTemplate"):
        print(f"{name:24}{early[name]:>8}{PEER[name]:>18}")
    print(f"{f'calls in {minutes:g} min':24}{len(before) + len(calls):>8}{PEER['calls in 14.5 min']:>18}")
    print(f"{'nodes':24}{len(launched):>8}")
    print("calls:", dict(Counter(call.action for call in [*before, *calls]).most_common()), flush=True)
