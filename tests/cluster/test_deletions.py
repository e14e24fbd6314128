"""Nobody empties the cluster by one line that is gone: the API server refuses, and what comes through waits."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .control_plane import ControlPlane
from .fleet import NAME, Fleet, condition, is_true
from .fleet import fleet as a_fleet
from .installation import Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
NODES, WAIT_SECONDS = 4, 25
ALLOW = "kerf.sh/allow-deletion"


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    guarded = {"settings.deletionGuardWait": f"{WAIT_SECONDS}s", "webhook.deletionGuard": "true"}
    with Installation(control_plane, tmp_path_factory.mktemp("deletions"), values=guarded) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        yield installation


@pytest.fixture(scope="module")
def fleet(kerf: Installation) -> Iterator[Fleet]:
    with a_fleet(kerf) as found:
        found.scale(NODES)
        yield found
        kerf.kubectl("annotate", "nodepool", NAME, f"{ALLOW}=all", "--overwrite")


def deleted(kerf: Installation, what: str, *more: str) -> str:
    """What kubectl says when this would be deleted; nothing is."""
    return kerf.kubectl("delete", what, "--dry-run=server", *more, check=False)


def said(fleet: Fleet) -> str:
    return str(condition(fleet.pool(), "DeletionHeld").get("message", ""))


def test_a_pool_with_nodes_goes_only_when_it_says_that_it_is_meant(fleet: Fleet) -> None:
    kerf = fleet.kerf
    kerf.wait(lambda: fleet.pool()["status"]["nodes"] == NODES, 30, "the NodePool counts its nodes")
    for propagation in ("background", "foreground", "orphan"):
        refused = deleted(kerf, f"nodepool/{NAME}", f"--cascade={propagation}")
        assert "deletion.webhook.kerf.sh" in refused
        assert f"NodePool {NAME} has 4 nodes" in refused
    assert "has 4 nodes" in deleted(kerf, "nodepools", "--all")
    kerf.kubectl("annotate", "nodepool", NAME, f"{ALLOW}=4")
    assert "dry run" in deleted(kerf, f"nodepool/{NAME}")
    kerf.kubectl("annotate", "nodepool", NAME, f"{ALLOW}-")


def test_the_definitions_go_only_when_they_say_so(kerf: Installation) -> None:
    name = "nodeclaims.karpenter.sh"
    assert f"annotate crd {name} {ALLOW}=all" in deleted(kerf, f"crd/{name}")
    assert "dry run" in deleted(kerf, "crd/nodeoverlays.karpenter.sh")
    kerf.kubectl("annotate", "crd", name, f"{ALLOW}=all")
    assert "dry run" in deleted(kerf, f"crd/{name}")
    kerf.kubectl("annotate", "crd", name, f"{ALLOW}-")


def test_the_webhook_is_not_asked_about_what_another_controller_has(kerf: Installation) -> None:
    reference = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    # A budget that Kerf's webhook refuses, and no schema.
    budget = {"nodes": "10%", "schedule": "61 * * * *", "duration": "1h"}
    requirement = {"key": "eks.amazonaws.com/instance-category", "operator": "In", "values": ["c"]}
    template = {"spec": {"nodeClassRef": reference, "requirements": [requirement]}}
    pool: dict[str, Any] = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "auto", "annotations": {"kerf.sh/back-off": "{}"}},
        "spec": {"template": template, "disruption": {"consolidateAfter": "0s", "budgets": [budget]}},
    }
    assert "nodepool.karpenter.sh/auto created" in kerf.kubectl("create", "-f", "-", input_=json.dumps(pool))
    patch = json.dumps({"status": {"nodes": 40}})
    kerf.kubectl("patch", "nodepool", "auto", "--subresource=status", "--type=merge", "-p", patch)
    before = kerf.kubectl("get", "nodepool", "auto", "-o", "yaml")
    assert "dry run" in deleted(kerf, "nodepool/auto")
    mine = {
        **pool,
        "metadata": {"name": "mine"},
        "spec": {
            **pool["spec"],
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "requirements": [requirement],
                }
            },
        },
    }
    assert "webhook.kerf.sh" in kerf.kubectl("create", "-f", "-", input_=json.dumps(mine), check=False)
    time.sleep(5)  # for as long the controller has had the time to write to it
    assert kerf.kubectl("get", "nodepool", "auto", "-o", "yaml") == before
    kerf.kubectl("delete", "nodepool", "auto")


def test_a_webhook_that_is_down_keeps_nobody_from_deleting(fleet: Fleet) -> None:
    fleet.kerf.kill_webhook()  # what its processes have begun they may end yet
    fleet.kerf.wait(lambda: "dry run" in deleted(fleet.kerf, f"nodepool/{NAME}"), 20, "nobody refuses any more")
    fleet.kerf.start_webhook()


def test_claims_that_are_deleted_all_at_once_wait_and_their_successors_come_first(fleet: Fleet) -> None:
    kerf, before, pods = fleet.kerf, fleet.uids(), fleet.running()
    kerf.kubectl("delete", "nodeclaims", "--all", "--wait=false")
    kerf.wait(lambda: f"{ALLOW}=4" in said(fleet), 20, "the NodePool says that deletions are held, and what to do")
    kerf.wait(lambda: len(fleet.uids() - before) == NODES, 20, "as many nodes again are on their way")
    assert len(fleet.running() & pods) >= NODES // 2, "half of them may go at once, and no more"
    assert any(ALLOW in message for message in kerf.events("DeletionHeld"))
    kerf.wait(lambda: not before & fleet.uids() and fleet.whole(NODES), 180, "the old nodes are gone, step by step")
    kerf.wait(lambda: not is_true(fleet.pool(), "DeletionHeld"), 20, "and the NodePool says so")
