"""Times and numbers that no clock has, on real parts: they concern their own object, and no other node waits."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .control_plane import ControlPlane
from .fleet import Fleet, condition
from .fleet import fleet as a_fleet
from .installation import Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
#: The pods' grace period, 3,000 years, and the time that the pool leaves a drain.
GRACE_SECONDS, DRAIN_SECONDS = 100_000_000_000, 20
END_OF_TIME = "9999-12-31T23:59:59Z"


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder, values = tmp_path_factory.mktemp("hostile"), {"settings.featureGates.nodeRepair": "true"}
    with Installation(control_plane, folder, webhook=False, values=values) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        yield installation


def test_a_pod_with_a_grace_period_of_three_thousand_years_makes_no_node_undeletable(kerf: Installation) -> None:
    with a_fleet(kerf, "graceful") as fleet:
        _patch(kerf, "nodepool", fleet.name, {"template": {"spec": {"terminationGracePeriod": f"{DRAIN_SECONDS}s"}}})
        pods = {"template": {"spec": {"terminationGracePeriodSeconds": GRACE_SECONDS}}}
        _patch(kerf, "deployment", fleet.name, pods)
        fleet.scale(1)
        fleet.allow(0)
        (old,) = fleet.claims()
        begun = time.monotonic()
        kerf.kubectl("delete", "nodeclaim", old["metadata"]["name"], "--wait=false")
        kerf.wait(lambda: fleet.claim(_uid(old)) is None, DRAIN_SECONDS + 60, "the node goes")
        print(f"\nnode with a pod of endless grace: gone after {time.monotonic() - begun:.1f} s")
        fleet.allow(1)


def test_a_node_that_is_sick_since_the_year_9999_holds_up_no_spot_interruption(kerf: Installation) -> None:
    with a_fleet(kerf, "endless") as fleet:
        fleet.scale(2)
        sick, old = fleet.claims()
        _sicken_for_ever(fleet, _node(sick))
        known = fleet.uids()
        begun = time.monotonic()
        kerf.aws.interrupt(str(old["status"]["providerID"]).rpartition("/")[2])
        kerf.wait(lambda: bool(fleet.uids() - known), 30, "a successor is asked for")
        print(f"\nspot interruption beside a node of the year 9999: successor after {time.monotonic() - begun:.1f} s")
        kerf.wait(lambda: _uid(old) not in fleet.uids(), 120, "the interrupted node goes")
        assert _uid(sick) in fleet.uids(), "its repair is as far away as its time"
        fleet.heal(_node(sick))


def _sicken_for_ever(fleet: Fleet, node: str) -> None:
    fleet.sicken(node, 0)
    row = {"type": "Ready", "status": "False", "lastTransitionTime": END_OF_TIME}
    patch = json.dumps({"status": {"conditions": [row]}})
    fleet.kerf.kubectl("patch", "node", node, "--subresource=status", "--type=strategic", "-p", patch)
    found = fleet.kerf.one("node", node)
    assert condition(found, "Ready")["lastTransitionTime"] == END_OF_TIME


def _patch(kerf: Installation, kind: str, name: str, spec: dict[str, Any]) -> None:
    kerf.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps({"spec": spec}))


def _uid(claim: dict[str, Any]) -> str:
    return str(claim["metadata"]["uid"])


def _node(claim: dict[str, Any]) -> str:
    return str(claim["status"]["nodeName"])
