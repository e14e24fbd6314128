"""While a NodePool or its EC2NodeClass settles, pods wait without a warning, and no edit is offered."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kerf.model.snapshot import Batch
from kerf.provisioning.provision import provision
from kerf.scheduling.offerings.settling import PATIENCE, SETTLING
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.accounts import refusal

DEDICATED = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
LONG_AGO = w.NOW - timedelta(hours=1)


def stamp(at: Any) -> str:
    return str(at.strftime("%Y-%m-%dT%H:%M:%SZ"))


def conditions(ready: str, generation: int, since: Any, **others: str) -> dict[str, Any]:
    rows = {"Ready": ready, **others}
    made = [
        {"type": t, "status": s, "reason": "X", "observedGeneration": generation, "lastTransitionTime": stamp(since)}
        for t, s in rows.items()
    ]
    return {"conditions": made}


def pool(ready: str, *, observed: int = 2, since: Any = LONG_AGO, followed: str = "True", **meta: Any) -> NodePool:
    """A NodePool of generation 2."""
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    body = {
        "metadata": {"name": "late", "uid": "u", "generation": 2, "creationTimestamp": stamp(LONG_AGO), **meta},
        "spec": {"template": {"spec": {"nodeClassRef": ref, "requirements": []}}},
        "status": conditions(ready, observed, since, NodeClassReady=followed),
    }
    return decode(NodePool, body)


def node_class(ready: str, *, observed: int = 2, since: Any = LONG_AGO, **meta: Any) -> EC2NodeClass:
    """An EC2NodeClass of generation 2."""
    body = {
        "metadata": {"name": "default", "generation": 2, "creationTimestamp": stamp(LONG_AGO), **meta},
        "spec": {},
        "status": conditions(ready, observed, since),
    }
    return decode(EC2NodeClass, body)


GOOD, JUST_NOW = node_class("True"), w.NOW - timedelta(seconds=5)


@pytest.mark.parametrize(
    ("one", "of"),
    [
        (pool("Unknown", since=JUST_NOW), GOOD),
        (pool("False", observed=1), GOOD),
        (pool("False", followed="False"), node_class("Unknown", since=JUST_NOW)),
        (pool("False", followed="False"), node_class("False", observed=1)),
        (pool("False", followed="False"), GOOD),
        (pool("False", followed="False", creationTimestamp=stamp(JUST_NOW)), None),
    ],
)
def test_pods_wait_without_a_warning(one: NodePool, of: EC2NodeClass | None) -> None:
    """Nor is there advice, although one taint more would do on a node that is there."""
    objects = [one, w.node("n", taints=DEDICATED), w.pod("p"), *([of] if of is not None else [])]
    found = refusal(*objects)
    assert found.code == SETTLING
    assert found.text.startswith("NodePool late is settling: ")
    assert str(found).count("is settling: ") == 1
    assert found.account is not None
    assert (found.account.edits, found.account.fixes) == ((), ())
    assert "one edit" not in str(found)
    at = w.NOW - timedelta(seconds=10)
    plan = provision(w.world(*objects, batch=Batch(at, at)))
    assert [event for event in plan.events if event.type == "Warning"] == []
    assert [r.reason.code for r in plan.refusals if r.subject == "pod/default/p"] == [SETTLING]


@pytest.mark.parametrize(
    ("one", "of"),
    [
        (pool("False", followed="True"), GOOD),
        (pool("False", followed="False"), node_class("False")),
        (pool("False", followed="False"), None),
        (pool("Unknown", deletionTimestamp=stamp(JUST_NOW)), GOOD),
    ],
)
def test_what_is_settled_is_warned_of_with_advice(one: NodePool, of: EC2NodeClass | None) -> None:
    found = refusal(one, w.node("n", taints=DEDICATED), w.pod("p"), *([of] if of is not None else []))
    assert found.code == "NoNodePool"
    assert "it would fit with one edit: tolerate the taint dedicated=ml:NoSchedule" in str(found)


def test_what_does_not_settle_is_warned_of_without_advice() -> None:
    since = w.NOW - PATIENCE
    one, of = pool("False", followed="False"), node_class("Unknown", since=since)
    found = refusal(one, of, w.node("n", taints=DEDICATED), w.pod("p"))
    assert (found.code, found.pools["late"].partition(":")[0]) == ("NoNodePool", "is settling")
    assert "one edit" not in str(found)


def test_a_pool_that_settles_speaks_for_pods_that_others_refuse() -> None:
    ready = w.pool("ready", taints=DEDICATED)
    found = refusal(ready, pool("Unknown", since=JUST_NOW), GOOD, w.pod("p"))
    assert found.code == SETTLING
    later = refusal(ready, pool("Unknown", since=LONG_AGO), GOOD, w.pod("p"))
    assert later.code == "Incompatible"
    assert "one edit" not in str(later)


def test_a_static_pool_is_not_waited_for() -> None:
    found = refusal(w.pool("static", replicas=3, ready="Unknown"), w.pod("p"))
    assert found.code == "NoNodePool"


SYSTEM = (
    "CriticalAddonsOnly",
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node.kubernetes.io/disk-pressure",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
    "node.cilium.io/agent-not-ready",
    "ebs.csi.aws.com/agent-not-ready",
    "karpenter.sh/disrupted",
    "karpenter.sh/unregistered",
    "ToBeDeletedByClusterAutoscaler",
    "aws-node-termination-handler/spot-itn",
    "eks.amazonaws.com/compute-type",
    "readiness.k8s.io/network",
)


@pytest.mark.parametrize("key", SYSTEM)
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_no_advice_about_taints_of_system_nodes(key: str, effect: str) -> None:
    taint = {"key": key, "value": "x", "effect": effect}
    assert "taint" not in _advice(w.node("n", taints=[taint]), w.pod("p"))
    assert "taint" not in _advice(w.pool(taints=[taint]), w.pod("p"))


def test_no_advice_about_start_up_taints() -> None:
    agent = {"key": "example.com/agent", "effect": "NoExecute"}
    others = w.pool(taints=[*DEDICATED, {"key": "x", "effect": "NoSchedule"}], startupTaints=[agent])
    assert "taint" not in _advice(others, w.node("n", taints=[agent]), w.pod("p"))


def test_advice_about_other_taints_stays() -> None:
    for key in ("nvidia.com/gpu", "dedicated", "example.com/critical"):
        taint = {"key": key, "effect": "NoSchedule"}
        assert f"tolerate the taint {key}:NoSchedule" in _advice(w.node("n", taints=[taint]), w.pod("p"))


def _advice(*objects: Any) -> str:
    return str(refusal(*objects)).partition("it would fit with one edit")[2]
