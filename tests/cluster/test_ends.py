"""How nodes come to their end on real parts: deleted by hand, interrupted, sick, expired. A roll-out: test_roll_out.py.

Each test begins and ends with three nodes of a pod each; their PodDisruptionBudget lets one pod go at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from .control_plane import ControlPlane
from .fleet import Fleet, condition, is_true
from .fleet import fleet as a_fleet
from .installation import Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
NODES = 3
BORNE = timedelta(minutes=30)
BUDGET = "PodDisruptionBudget default/"
UNHEALTHY = "karpenter_nodeclaims_unhealthy_disrupted_total"
#: A twentieth of a life is there to make a successor ready: 18 seconds.
LIFE = timedelta(minutes=6)


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder, values = tmp_path_factory.mktemp("ends"), {"settings.featureGates.nodeRepair": "true"}
    with Installation(control_plane, folder, webhook=False, values=values) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        yield installation


@pytest.fixture(scope="module")
def ready(kerf: Installation) -> Iterator[Fleet]:
    with a_fleet(kerf) as found:
        found.scale(NODES)
        yield found


@pytest.fixture
def fleet(ready: Fleet) -> Fleet:
    """As `ready`, whatever the test before has done; its PodDisruptionBudget allows one again."""
    ready.allow(1)
    ready.kerf.wait(lambda: ready.whole(NODES), 60, "three nodes with a pod each")
    return ready


# --- deleted by hand --------------------------------------------------------------------------------------------
def test_a_claim_and_a_node_that_are_deleted_wait_for_the_budget_of_their_pods(fleet: Fleet) -> None:
    kerf, (one, other) = fleet.kerf, fleet.claims()[:2]
    going, instances = {_uid(one), _uid(other)}, {_instance(one), _instance(other)}
    before, evicted = _instances_ever(kerf), len(kerf.events("Evicted"))
    fleet.allow(0)
    kerf.kubectl("delete", "nodeclaim", one["metadata"]["name"], "--wait=false")
    kerf.kubectl("delete", "node", _node(other), "--wait=false")
    kerf.wait(lambda: len(_refused(kerf, one, other)) == 2, 60, "both nodes say what holds them")
    assert len(fleet.running()) == NODES
    assert instances <= _live(kerf)
    fleet.allow(1)
    fewest = _fewest_running(fleet, lambda: not going & fleet.uids() and fleet.whole(NODES), 120)
    assert fewest == NODES - 1, "one pod after the other"
    assert len(kerf.events("Evicted")) == evicted + 2
    assert not instances & _live(kerf)
    assert _instances_ever(kerf) == before + 2
    assert not _marked(fleet)


def _refused(kerf: Installation, *claims: dict[str, Any]) -> set[str]:
    """Which of their nodes have said that the PodDisruptionBudget holds their drain."""
    refused = [
        e for e in kerf.get("events", namespace="") if e["reason"] == "FailedDraining" and BUDGET in e["message"]
    ]
    return {e["involvedObject"]["name"] for e in refused} & {_node(claim) for claim in claims}


# --- interrupted ------------------------------------------------------------------------------------------------
def test_the_successor_of_an_interrupted_node_is_asked_for_at_once(fleet: Fleet) -> None:
    """While the old instance is still there: EC2 gives it two minutes."""
    kerf, old = fleet.kerf, fleet.claims()[0]
    known, before = fleet.uids(), _instances_ever(kerf)
    assert old["metadata"]["labels"]["karpenter.sh/capacity-type"] == "spot", "the pool allows it and it is cheaper"
    begun = time.monotonic()
    kerf.aws.interrupt(_instance(old))
    kerf.wait(lambda: bool(fleet.uids() - known), 30, "a successor is asked for")
    asked = time.monotonic() - begun
    assert _instance(old) in _live(kerf)
    kerf.wait(lambda: _uid(old) not in fleet.uids() and fleet.whole(NODES), 120, "the node is replaced")
    print(f"\ninterrupted: successor asked for after {asked:.1f} s, replaced after {time.monotonic() - begun:.1f} s")
    assert kerf.events("TerminatingOnInterruption")
    assert _instances_ever(kerf) == before + 1


# --- sick -------------------------------------------------------------------------------------------------------
def test_a_node_that_is_not_ready_for_too_long_goes_whatever_the_budget_of_its_pods_says(fleet: Fleet) -> None:
    """The toleration is half an hour, so the condition is given an age: five seconds are left to bear."""
    kerf, old = fleet.kerf, fleet.claims()[0]
    replaced, before = kerf.metric(UNHEALTHY), _instances_ever(kerf)
    fleet.allow(0)
    begun = time.monotonic()
    since = fleet.sicken(_node(old), BORNE.total_seconds() - 5)
    kerf.wait(lambda: _deleted(fleet.claim(_uid(old))) is not None, 30, "the sick node goes")
    gone = _deleted(fleet.claim(_uid(old)))
    assert gone is None or gone >= since + BORNE
    kerf.wait(lambda: _uid(old) not in fleet.uids() and fleet.whole(NODES), 120, "the sick node is replaced")
    print(f"\nsick node replaced {time.monotonic() - begun:.1f} s after it fell sick, five of them borne")
    told = f"condition Ready has been False since {since.isoformat().replace('+00:00', 'Z')}"
    assert any(told in message for message in kerf.events("NodeUnhealthy"))
    assert kerf.metric(UNHEALTHY) == replaced + 1
    assert _instance(old) not in _live(kerf)
    assert _instances_ever(kerf) == before + 1


def test_when_too_many_are_sick_none_goes_until_enough_are_well_again(fleet: Fleet) -> None:
    kerf, (one, other) = fleet.kerf, fleet.claims()[:2]
    before = _instances_ever(kerf)
    fleet.sicken(_node(one), 0)
    fleet.sicken(_node(other), BORNE.total_seconds() + 60)
    words = f"2 of {NODES} nodes of NodePool {fleet.name} are unhealthy"
    kinds = {"Node", "NodeClaim", "NodePool"}
    kerf.wait(lambda: _told(kerf, "NodeRepairBlocked", words) == kinds, 30, "it is said why none is repaired")
    time.sleep(5)
    assert not any(_deleted(claim) for claim in fleet.claims())
    fleet.heal(_node(one))
    kerf.wait(lambda: _uid(other) not in fleet.uids() and fleet.whole(NODES), 120, "the one that is left is replaced")
    assert _uid(one) in fleet.uids()
    assert _instances_ever(kerf) == before + 1


def _told(kerf: Installation, reason: str, words: str) -> set[str]:
    """The kinds of objects on which an event says so."""
    events = [e for e in kerf.get("events", namespace="") if e["reason"] == reason and words in e["message"]]
    return {event["involvedObject"]["kind"] for event in events}


# --- expired ----------------------------------------------------------------------------------------------------
@pytest.mark.long
def test_an_expired_node_has_its_successor_ready_before_it_goes_and_then_waits_for_its_pods(kerf: Installation) -> None:
    life = f"{LIFE.total_seconds():.0f}s"
    with a_fleet(kerf, "ageing") as fleet:
        patch = f'{{"spec": {{"template": {{"spec": {{"expireAfter": "{life}"}}}}}}}}'
        kerf.kubectl("patch", "nodepool", fleet.name, "--type=merge", "-p", patch)
        fleet.scale(1)
        fleet.keep(1)
        (old,) = fleet.claims()
        known = fleet.uids()
        kerf.wait(lambda: bool(_expiring(fleet, old)), LIFE.total_seconds(), "the claim says when it goes")
        said = _expiring(fleet, old)
        kerf.wait(lambda: _deleted(fleet.claim(_uid(old))) is not None, 60, "it goes")
        (successor,) = [claim for claim in fleet.claims() if _uid(claim) not in known]
        gone = _deleted(fleet.claim(_uid(old)))
        assert is_true(successor, "Initialized")
        print(f"\nexpiring: {said}; successor ready {_since(successor, 'Initialized')}, deleted {gone}")
        assert BUDGET in said
        assert gone is not None
        assert _since(successor, "Initialized") <= gone <= _born(old) + LIFE + timedelta(seconds=5)
        kerf.wait(lambda: bool(_refused(kerf, old)), 60, "the drain says what holds it")
        assert len(fleet.running()) == 1
        fleet.allow(1)
        kerf.wait(lambda: _uid(old) not in fleet.uids() and fleet.whole(1), 120, "the old node goes")
        assert fleet.uids() == {_uid(successor)}


def _expiring(fleet: Fleet, claim: dict[str, Any]) -> str:
    found = fleet.claim(_uid(claim))
    return str(condition(found, "Expiring").get("message", "")) if found is not None else ""


# --- aids -------------------------------------------------------------------------------------------------------
def _fewest_running(fleet: Fleet, reached: Callable[[], bool], seconds: float) -> int:
    """Wait until it is so; the fewest pods that ran meanwhile."""
    fewest = len(fleet.running())

    def seen() -> bool:
        nonlocal fewest
        fewest = min(fewest, len(fleet.running()))
        return reached()

    fleet.kerf.wait(seen, seconds, "the nodes are replaced")
    return fewest


def _marked(fleet: Fleet) -> list[str]:
    """Nodes of the fleet that still bear the taint of a disruption."""
    nodes = fleet.kerf.get("nodes", selector=f"karpenter.sh/nodepool={fleet.name}")
    going = [n for n in nodes if any(t["key"] == "karpenter.sh/disrupted" for t in n["spec"].get("taints", []))]
    return [node["metadata"]["name"] for node in going]


def _uid(thing: dict[str, Any]) -> str:
    return str(thing["metadata"]["uid"])


def _node(claim: dict[str, Any]) -> str:
    return str(claim["status"]["nodeName"])


def _instance(claim: dict[str, Any]) -> str:
    return str(claim["status"]["providerID"]).rpartition("/")[2]


def _live(kerf: Installation) -> set[str]:
    return {instance["id"] for instance in kerf.running_instances()}


def _instances_ever(kerf: Installation) -> int:
    return len(kerf.aws.instances())


def _deleted(claim: dict[str, Any] | None) -> datetime | None:
    text = claim["metadata"].get("deletionTimestamp") if claim is not None else None
    return datetime.fromisoformat(text) if text is not None else None


def _born(claim: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(claim["metadata"]["creationTimestamp"])


def _since(thing: dict[str, Any], type_: str) -> datetime:
    return datetime.fromisoformat(condition(thing, type_)["lastTransitionTime"])
