"""A node on its way up: launched, joined, registered, initialised. What the scheduler may count on at each step."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model.kubernetes.objects import Node
from kerf.model.snapshot import StateNode
from kerf_api.resources import Resources
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim

PROVIDER_ID = "aws:///zone-1a/i-1"
OWN = {"key": "example.com/batch", "effect": "NoSchedule"}
STARTUP = {"key": "example.com/agent", "effect": "NoExecute"}
UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
STRANGE = {"key": "example.com/strange", "effect": "NoSchedule"}


def claim(**status: Any) -> NodeClaim:
    """A launched claim of the pool `general`."""
    manifest = {
        "metadata": {
            "name": "general-x1",
            "labels": {"karpenter.sh/nodepool": "general", "from": "claim"},
            "annotations": {"from": "claim"},
        },
        "spec": {"nodeClassRef": {"name": "default"}, "taints": [OWN], "startupTaints": [STARTUP]},
        "status": {
            "providerID": PROVIDER_ID,
            "capacity": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
            "allocatable": {"cpu": "3900m", "memory": "15Gi", "nvidia.com/gpu": "1"},
            **status,
        },
    }
    return decode(NodeClaim, manifest)


def node(*steps: str, taints: tuple[dict[str, str], ...] = (), **metadata: Any) -> Node:
    """The claim's Node, which has taken these steps (`registered`, `initialized`)."""
    marks = {f"karpenter.sh/{step}": "true" for step in steps}
    manifest = {
        "metadata": {
            "name": "ip-10-0-0-1",
            "labels": {"karpenter.sh/nodepool": "general", "from": "node", **marks},
            "annotations": {"from": "node"},
            **metadata,
        },
        "spec": {"providerID": PROVIDER_ID, "taints": list(taints)},
        "status": {
            "capacity": {"cpu": "4", "memory": "15Gi", "nvidia.com/gpu": "0"},
            "allocatable": {"cpu": "3800m", "memory": "14Gi", "nvidia.com/gpu": "0"},
        },
    }
    return decode(Node, manifest)


def keys(state: StateNode) -> list[str]:
    return [taint.key for taint in state.taints]


LAUNCHED = StateNode(claim(), None)
JOINED = StateNode(claim(), node(taints=(UNREGISTERED, OWN, STARTUP, NOT_READY)))
REGISTERED = StateNode(claim(), node("registered", taints=(OWN, STARTUP, NOT_READY, STRANGE)))
INITIALIZED = StateNode(claim(), node("registered", "initialized", taints=(OWN, NOT_READY, STARTUP)))
UNMANAGED = StateNode(None, node(taints=(OWN, NOT_READY)))


@pytest.mark.parametrize(
    ("state", "steps"),
    [
        (LAUNCHED, (False, False)),
        (JOINED, (False, False)),
        (REGISTERED, (True, False)),
        (INITIALIZED, (True, True)),
        (UNMANAGED, (True, True)),
    ],
)
def test_how_far_it_has_come(state: StateNode, steps: tuple[bool, bool]) -> None:
    assert (state.registered, state.initialized) == steps


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(LAUNCHED, [OWN["key"]], id="launched: those of the claim, start-up taints will go"),
        pytest.param(JOINED, [OWN["key"]], id="joined: what the kubelet brought does not count yet"),
        pytest.param(REGISTERED, [OWN["key"], STRANGE["key"]], id="registered: the node's, less what goes by itself"),
        pytest.param(INITIALIZED, [OWN["key"], NOT_READY["key"], STARTUP["key"]], id="initialised: all that are there"),
        pytest.param(UNMANAGED, [OWN["key"], NOT_READY["key"]], id="unmanaged: all that are there"),
    ],
)
def test_taints_that_a_pod_must_tolerate(state: StateNode, expected: list[str]) -> None:
    assert keys(state) == expected


def test_a_startup_taint_goes_by_key_and_effect() -> None:
    again = {**STARTUP, "effect": "NoSchedule"}
    valued = {**STARTUP, "value": "other"}
    state = StateNode(claim(), node("registered", taints=(again, valued)))
    assert [taint.effect for taint in state.taints] == ["NoSchedule"]


@pytest.mark.parametrize(
    ("state", "source"),
    [(LAUNCHED, "claim"), (JOINED, "claim"), (REGISTERED, "node"), (INITIALIZED, "node"), (UNMANAGED, "node")],
)
def test_labels_and_annotations_are_the_nodes_once_it_is_registered(state: StateNode, source: str) -> None:
    assert (state.labels["from"], state.annotations["from"]) == (source, source)
    assert state.pool_name == "general"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(LAUNCHED, {"cpu": "3900m", "memory": "15Gi", "nvidia.com/gpu": "1"}, id="launched: the promise"),
        pytest.param(JOINED, {"cpu": "3800m", "memory": "14Gi", "nvidia.com/gpu": "1"}, id="joined: zero is missing"),
        pytest.param(REGISTERED, {"cpu": "3800m", "memory": "14Gi", "nvidia.com/gpu": "1"}, id="registered: the same"),
        pytest.param(
            INITIALIZED, {"cpu": "3800m", "memory": "14Gi", "nvidia.com/gpu": "0"}, id="initialised: as it is"
        ),
        pytest.param(UNMANAGED, {"cpu": "3800m", "memory": "14Gi", "nvidia.com/gpu": "0"}, id="unmanaged: as it is"),
    ],
)
def test_allocatable(state: StateNode, expected: dict[str, str]) -> None:
    assert state.allocatable == Resources.parse(expected)


def test_capacity_follows_the_same_rule() -> None:
    assert LAUNCHED.capacity == Resources.parse({"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"})
    assert JOINED.capacity == Resources.parse({"cpu": "4", "memory": "15Gi", "nvidia.com/gpu": "1"})
    assert INITIALIZED.capacity == Resources.parse({"cpu": "4", "memory": "15Gi", "nvidia.com/gpu": "0"})


def test_names_and_provider_ids() -> None:
    assert (LAUNCHED.name, JOINED.name, UNMANAGED.name) == ("general-x1", "ip-10-0-0-1", "ip-10-0-0-1")
    assert {state.provider_id for state in (LAUNCHED, JOINED, UNMANAGED)} == {PROVIDER_ID}
    assert StateNode(claim(providerID=""), None).provider_id == ""


DELETED = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(INITIALIZED, False, id="neither"),
        pytest.param(
            StateNode(claim(conditions=[{"type": "InstanceTerminating", "status": "True"}]), None),
            True,
            id="its instance is being terminated",
        ),
        pytest.param(
            StateNode(claim(conditions=[{"type": "InstanceTerminating", "status": "False"}]), None), False, id="not yet"
        ),
        pytest.param(StateNode(claim(), node(deletionTimestamp=DELETED)), False, id="only the Node of a claim"),
        pytest.param(StateNode(None, node(deletionTimestamp=DELETED)), True, id="a Node without a claim"),
    ],
)
def test_deleting(state: StateNode, expected: bool) -> None:
    assert state.deleting is expected
