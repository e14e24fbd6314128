"""The canary of a change on a real control plane, with a restart at every step: one node is replaced first, and a pod
that fails there alone stops the change until a person continues it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from .control_plane import ControlPlane
from .fleet import MANIFEST, Fleet, condition
from .fleet import fleet as a_fleet
from .installation import Installation

pytestmark = pytest.mark.cluster

NODES = 3
SOAK = "20s"
#: Longer than several reconciles: a roll-out that is not kept back begins within seconds.
QUIET_SECONDS = 20


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(control_plane, tmp_path_factory.mktemp("canary")) as installation:
        installation.kubectl("apply", "-f", str(MANIFEST.with_name("workloads.yaml")))
        yield installation


@pytest.fixture
def fleet(kerf: Installation) -> Iterator[Fleet]:
    with a_fleet(kerf) as ready:
        yield ready


def test_the_others_follow_after_the_soak_time_over_restarts(fleet: Fleet) -> None:
    kerf, old = fleet.kerf, staged(fleet, "1h")
    fleet.change_template("two")
    kerf.wait(lambda: told(fleet, "reason") == "Replacing", 60, "the canary is replaced")
    restarted(kerf)
    kerf.wait(lambda: told(fleet, "reason") == "Soaking", 180, "the canary is observed")
    restarted(kerf)
    assert len(old & fleet.uids()) == NODES - 1
    assert "waits for the canary of plan" in kerf.kerf("why", "node", waiting(fleet, old), *flags(kerf))
    # Only now may it pass: how long the restarts and the command take depends on the machine.
    kerf.kubectl("annotate", "nodepool", fleet.name, "kerf.sh/canary-soak=1s", "--overwrite")
    kerf.wait(lambda: told(fleet, "reason") == "CanaryPassed", 180, "the canary has passed")
    restarted(kerf)
    kerf.wait(lambda: not old & fleet.uids() and fleet.whole(NODES), 240, "all nodes are replaced")
    assert condition(fleet.pool(), "Ready")["status"] == "True"


def test_a_pod_that_fails_on_the_canary_stops_the_change(fleet: Fleet) -> None:
    kerf, old = fleet.kerf, staged(fleet, SOAK)
    before = names(fleet)
    fleet.change_template("two")
    kerf.wait(lambda: told(fleet, "reason") == "Soaking", 240, "the canary is observed")
    (new,) = names(fleet) - before
    report(kerf, new, ready=False)
    kerf.wait(lambda: told(fleet, "reason") == "CanaryFailed", 240, "the change stops")
    restarted(kerf)
    time.sleep(QUIET_SECONDS)
    assert len(old & fleet.uids()) == NODES - 1
    message = told(fleet, "message")
    assert new in message
    assert any(new in text for text in kerf.events("CanaryFailed"))
    (digest,) = set(re.findall(r"kerf\.sh/continued-plan: ([0-9a-f]{20}) on it", message))
    report(kerf, new, ready=True)
    kerf.kubectl("annotate", "nodepool", fleet.name, f"kerf.sh/continued-plan={digest}")
    kerf.wait(lambda: not old & fleet.uids() and fleet.whole(NODES), 300, "all nodes are replaced")


def test_invalid_values_are_refused(fleet: Fleet) -> None:
    soak = fleet.kerf.kubectl("annotate", "nodepool", fleet.name, "kerf.sh/canary-soak=soon", check=False)
    assert "metadata.annotations[kerf.sh/canary-soak]" in soak
    assert "must be a duration" in soak
    digest = fleet.kerf.kubectl("annotate", "nodepool", fleet.name, "kerf.sh/continued-plan=all", check=False)
    assert "metadata.annotations[kerf.sh/continued-plan]" in digest
    assert "must be the digest of a plan" in digest


def staged(fleet: Fleet, soak: str) -> set[str]:
    """The UIDs of the NodeClaims of a NodePool with a canary, whose budgets allow all of them to go."""
    patch = {
        "metadata": {"annotations": {"kerf.sh/canary-soak": soak}},
        "spec": {"disruption": {"budgets": [{"nodes": "100%"}]}},
    }
    fleet.kerf.kubectl("patch", "nodepool", fleet.name, "--type=merge", "-p", json.dumps(patch))
    fleet.allow(NODES)
    fleet.scale(NODES)
    fleet.kerf.wait(lambda: told(fleet, "reason") == "NothingToReplace", 60, "the NodePool is noted")
    return fleet.uids()


def report(kerf: Installation, pod: str, *, ready: bool) -> None:
    """The status of a pod whose container has restarted three times, as a kubelet writes it."""
    state = "True" if ready else "False"
    row = {"type": "Ready", "status": state, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    restarts = {"name": "main", "restartCount": 3, "ready": ready, "image": "main", "imageID": ""}
    patch = {"status": {"conditions": [row], "containerStatuses": [restarts]}}
    kerf.kubectl("patch", "pod", pod, "--subresource=status", "--type=strategic", "-p", json.dumps(patch))


def restarted(kerf: Installation) -> None:
    kerf.stop_controller()
    kerf.start_controller()
    kerf.wait(lambda: kerf.readiness()[0] == 200, 60, "the controller is ready again")


def waiting(fleet: Fleet, old: set[str]) -> str:
    """The name of a NodeClaim that waits."""
    return str(next(one["metadata"]["name"] for one in fleet.claims() if one["metadata"]["uid"] in old))


def names(fleet: Fleet) -> set[str]:
    return {pod["metadata"]["name"] for pod in fleet.kerf.get("pods", selector=f"app={fleet.name}")}


def flags(kerf: Installation) -> tuple[str, str]:
    return "--kubeconfig", str(kerf.control_plane.kubeconfig)


def told(fleet: Fleet, field: str) -> str:
    """A field of the condition CanaryPassed; empty when it is not there."""
    found: dict[str, Any] = condition(fleet.pool(), "CanaryPassed")
    return str(found.get(field, ""))
