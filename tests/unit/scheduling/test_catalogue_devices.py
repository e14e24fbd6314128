"""Devices by claim (dynamic resource allocation), ignored: behaviour 222 of the catalogue, and what comes of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kerf.kube.interning import interner
from kerf.model import kinds
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import CreateNodeClaim
from kerf.scheduling.solve import SolveOptions, solve
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

REFUSED = "pod has Dynamic Resource Allocation requirements that are not yet supported"
CLAIMS = {"resources": {"claims": [{"name": "c"}]}}
SPECS: dict[str, dict[str, Any]] = {
    "the pod": {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "c"}], "containers": [{"name": "m"}]},
    "a container": {"containers": [{"name": "m"}, {"name": "c", **CLAIMS}]},
    "an init container": {"containers": [{"name": "m"}], "initContainers": [{"name": "c", **CLAIMS}]},
    "all": {"resourceClaims": [{"name": "c"}], "containers": [{"name": "c", **CLAIMS}]},
}


def claiming(who: str = "all", name: str = "p", **more: Any) -> Pod:
    told = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    return c.made("Pod", name, "default", spec={**SPECS[who], **more}, status=told)  # type: ignore[no-any-return]


@pytest.mark.parametrize("who", SPECS)
def test_222_pods_that_claim_devices_are_refused(who: str) -> None:
    """With a reason, and no node, not even one that is there; pods without claims are not affected."""
    done = c.run(w.pool(), w.node("n"), claiming(who), w.pod("other", "3"))
    assert done.pending == ["p"]
    assert REFUSED in done.why("p")
    assert done.placed == {"other": "node/n"}
    assert c.run(w.pool(), claiming(who)).nodes == ()


def test_the_event_says_why_and_no_claim_is_made() -> None:
    plan = c.plan(w.pool(), claiming())
    assert not [action for action in plan.actions if isinstance(action, CreateNodeClaim)]
    (event,) = (event for event in plan.events if event.reason == "FailedScheduling")
    assert event.message == f"Failed to schedule pod, {REFUSED} by Kerf"
    assert [(refusal.subject, refusal.reason.code) for refusal in plan.refusals] == [
        ("pod/default/p", "ResourceClaims")
    ]


def test_a_node_with_such_a_pod_has_no_replacement() -> None:
    """It runs there, takes its share, and has nowhere else to go."""
    bound = claiming(
        nodeName="n", containers=[{"name": "m", "resources": {"requests": {"cpu": "3"}, **CLAIMS["resources"]}}]
    )
    bound = msgspec.structs.replace(bound, status=msgspec.structs.replace(bound.status, phase="Running", conditions=()))
    snapshot = w.world(w.pool(), w.node("n"), w.node("m"), bound, w.pod("large", "2"))
    moved = solve(snapshot, [bound], SolveOptions(exclude=frozenset({"node/n"})))
    assert list(moved.unplaced) == ["default/p"]
    assert solve(snapshot, list(snapshot.pods.pending.values())).placed == {"default/large": "node/m"}


def test_claims_survive_the_sharing_of_equal_parts() -> None:
    """What is left out of a pod when it is read must not be what refuses it."""
    share = interner(kinds.POD)
    assert share is not None
    for who in SPECS:
        assert c.run(w.pool(), share(claiming(who))).pending == ["p"]
