"""A change waits for its approval on a real control plane, a restart in between included, and a tool that applies
NodePools from Git by server-side apply neither takes Kerf's notes away nor sees a difference because of them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from ruamel.yaml import YAML

from .control_plane import ControlPlane
from .fleet import MANIFEST, Fleet, approval, condition
from .fleet import fleet as a_fleet
from .installation import Installation

pytestmark = pytest.mark.cluster

NODES = 2
#: Longer than several reconciles: a roll-out that is not kept back begins within seconds.
QUIET_SECONDS = 20
GIT = ("--server-side", "--force-conflicts", "--field-manager=git")


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(control_plane, tmp_path_factory.mktemp("approval")) as installation:
        installation.kubectl("apply", "-f", str(MANIFEST.with_name("workloads.yaml")))
        yield installation


@pytest.fixture
def fleet(kerf: Installation) -> Iterator[Fleet]:
    with a_fleet(kerf) as ready:
        yield ready


def test_a_change_waits_over_a_restart_and_goes_on_when_git_carries_its_digest(fleet: Fleet) -> None:
    kerf = fleet.kerf
    applied(fleet, {"kerf.sh/plan-first": "true"}, "one")
    fleet.scale(NODES)
    kerf.wait(lambda: approval(fleet, "reason") == "NothingToApprove", 60, "nothing is to be approved")
    old = fleet.uids()
    applied(fleet, {"kerf.sh/plan-first": "true"}, "two")
    kerf.wait(lambda: f"would replace {NODES} drifted nodes" in approval(fleet, "message"), 60, "the change waits")
    message = approval(fleet, "message")
    kerf.stop_controller()
    kerf.start_controller()
    kerf.wait(lambda: kerf.readiness()[0] == 200, 60, "the controller is ready again")
    applied(fleet, {"kerf.sh/plan-first": "true"}, "two")
    time.sleep(QUIET_SECONDS)
    assert fleet.uids() == old
    assert (approval(fleet, "status"), approval(fleet, "message")) == ("False", message)
    assert condition(fleet.pool(), "Ready")["status"] == "True"
    assert "kerf.sh/seen-plan" in fleet.pool()["metadata"]["annotations"]
    assert kerf.kubectl("diff", *GIT, "-f", "-", input_=manifest(fleet, {"kerf.sh/plan-first": "true"}, "two")) == ""
    (digest,) = set(re.findall(r"\b[0-9a-f]{20}\b", message))
    assert any(digest in text for text in kerf.events("ChangeAwaitsApproval"))
    assert digest in kerf.kerf("why", "nodepool", fleet.name, "--kubeconfig", str(kerf.control_plane.kubeconfig))
    applied(fleet, {"kerf.sh/plan-first": "true", "kerf.sh/approved-plan": digest}, "two")
    kerf.wait(lambda: not old & fleet.uids() and fleet.whole(NODES), 240, "all nodes are replaced")
    kerf.wait(lambda: approval(fleet, "reason") == "NothingToApprove", 60, "nothing is left to be approved")


def test_an_invalid_approval_is_refused_with_its_place_and_the_valid_form(fleet: Fleet) -> None:
    answer = fleet.kerf.kubectl("annotate", "nodepool", fleet.name, "kerf.sh/approved-plan=latest", check=False)
    assert "metadata.annotations[kerf.sh/approved-plan]" in answer
    assert "must be the digest of a plan" in answer


def manifest(fleet: Fleet, notes: dict[str, str], version: str) -> str:
    """The NodePool as Git has it."""
    documents: list[dict[str, Any]] = list(YAML(typ="safe").load_all(MANIFEST.read_text(encoding="utf-8")))
    pool = next(one for one in documents if one["kind"] == "NodePool")
    pool["metadata"] = {"name": fleet.name, "annotations": notes}
    pool["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {})["version"] = version
    return json.dumps(pool)


def applied(fleet: Fleet, notes: dict[str, str], version: str) -> None:
    """As a tool that applies manifests from Git does."""
    fleet.kerf.kubectl("apply", *GIT, "-f", "-", input_=manifest(fleet, notes, version))
