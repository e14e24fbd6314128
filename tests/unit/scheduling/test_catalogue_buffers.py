"""CapacityBuffers: behaviours 202 to 206 of the catalogue (gate CapacityBuffer)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kerf.decide import decide
from kerf.model.plan import CreateNodeClaim, PatchObject, Plan
from kerf.model.settings import FeatureGates
from kerf.model.snapshot import Batch
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

ON = FeatureGates(capacity_buffer=True)
ROOMY = (c.machine("roomy", 64, 256, pods=100),)


def template(cpu: str = "1") -> Any:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    return c.made("PodTemplate", "t", "default", template={"metadata": {"labels": {"app": "buffer"}}, "spec": spec})


def buffer(name: str = "b", *, workload: str = "", **spec: Any) -> Any:
    ref = (
        {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": workload}}
        if workload
        else {"podTemplateRef": {"name": "t"}}
    )
    return c.made("CapacityBuffer", name, "default", spec={**ref, **spec})


def deployment(replicas: int | None) -> Any:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    own: dict[str, Any] = {"template": {"metadata": {"labels": {"app": "d"}}, "spec": spec}}
    return c.made("Deployment", "d", "default", spec=own if replicas is None else {**own, "replicas": replicas})


def planned(*objects: Any, **facts: Any) -> Plan:
    closed = Batch(w.NOW, w.NOW)
    known = {"catalogue": ROOMY, "gates": ON, "batch": closed, "batch_idle": timedelta(0), **facts}
    return decide(w.world(*objects, **known))


def held(*objects: Any) -> int:
    """How many virtual pods there are: what the planned claims have slots for."""
    claims = [a.claim for a in planned(w.pool(), *objects).actions if isinstance(a, CreateNodeClaim)]
    return sum(int(str(claim.spec.resources.requests["pods"])) for claim in claims)


def told(plan: Plan, type_: str) -> tuple[str, str] | None:
    """The buffer's condition as it is about to be written; None when it is left alone."""
    for action in plan.actions:
        if isinstance(action, PatchObject) and action.ref.kind == "CapacityBuffer":
            for condition in action.patch.get("status", {}).get("conditions", ()):
                if condition["type"] == type_:
                    return condition["status"], condition["reason"]
    return None


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({"replicas": 7}, 7),
        ({"replicas": 10, "limits": {"cpu": "3"}}, 3),
        ({"limits": {"cpu": "5"}}, 5),
        ({"replicas": 7, "limits": {"cpu": "100"}}, 7),
        ({"replicas": 7, "limits": {"example.com/unused": "1"}}, 7),
    ],
)
def test_202_how_large_a_buffer_is(spec: dict[str, Any], count: int) -> None:
    """So many replicas, as far as limits allow; with limits alone, all that they allow."""
    assert held(template(), buffer(**spec)) == count


@pytest.mark.parametrize(
    ("replicas", "spec", "count"),
    [
        (10, {"percentage": 20}, 2),
        (10, {"replicas": 5, "percentage": 20}, 5),
        (10, {"replicas": 5, "percentage": 80}, 8),
        (10, {"percentage": 80, "limits": {"cpu": "4"}}, 4),
        (1, {"percentage": 10}, 1),
        (0, {"percentage": 50}, 0),
        (None, {"percentage": 100}, 1),
    ],
)
def test_203_a_share_of_a_workload(replicas: int | None, spec: dict[str, Any], count: int) -> None:
    """Rounded up; the larger of it and the replicas. A workload that says nothing has one replica."""
    assert held(deployment(replicas), buffer(workload="d", **spec)) == count


def test_204_whether_the_buffer_is_there() -> None:
    """On existing nodes it is; where a node is needed it is not; nor while it is not ready, or of nobody."""
    node = w.node("n", cpu="64", memory="64Gi")
    ready = buffer(replicas=2)
    cases: list[tuple[list[Any], tuple[str, str]]] = [
        ([template(), ready, node], ("True", "FitsExistingCapacity")),
        ([template(), ready], ("False", "RequiresNewCapacity")),
        ([ready], ("False", "NotReadyForProvisioning")),
        ([template(), buffer(replicas=0)], ("False", "BufferEmpty")),
    ]
    for objects, verdict in cases:
        assert told(planned(w.pool(), *objects), "Provisioning") == verdict
    unseen = planned(w.pool(), template(), ready, batch_idle=timedelta(hours=1))
    assert told(unseen, "Provisioning") is None


def test_205_what_a_buffer_needs() -> None:
    """Its template or workload: without it the pods are gone, and the condition says why."""
    good = planned(w.pool(), template(), buffer(replicas=2))
    assert told(good, "ReadyForProvisioning") == ("True", "Resolved")
    assert held(template(), buffer(replicas=2)) == 2
    assert told(planned(w.pool(), buffer(replicas=2)), "ReadyForProvisioning") == ("False", "PodTemplateNotFound")
    lost = planned(w.pool(), buffer(workload="d", replicas=2))
    assert told(lost, "ReadyForProvisioning") == ("False", "ScalableRefNotFound")
    neither = c.made("CapacityBuffer", "b", "default", spec={"replicas": 2})
    assert told(planned(w.pool(), neither), "ReadyForProvisioning") == ("False", "ResolutionFailed")
    assert held(buffer(replicas=2)) == held(buffer(workload="d", replicas=2)) == held(neither) == held() == 0


def test_206_virtual_pods_keep_the_nodes_that_they_are_on() -> None:
    """A node that only they use is not empty; it is as soon as the buffer is gone. They are never promised a node."""
    node = w.node("n", cpu="64", memory="64Gi")
    plan = planned(w.pool(), template(), buffer(replicas=2), node)
    assert dict(plan.buffer_pods) == {"node/n": 2}
    assert plan.nominations == ()
    assert dict(planned(w.pool(), node).buffer_pods) == {}
