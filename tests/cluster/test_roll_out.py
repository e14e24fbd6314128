"""A roll-out on real parts: how many nodes go at once, and that `kubectl wait` and kstatus can wait for its end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .control_plane import ControlPlane
from .installation import Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
MANIFEST = HERE / "rolling.yaml"
IN_PROGRESS, FAILED, CURRENT = "InProgress", "Failed", "Current"


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(control_plane, tmp_path_factory.mktemp("rolling")) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        yield installation


@pytest.fixture
def fleet(kerf: Installation) -> Iterator[Installation]:
    """With the pool, the Deployment without pods, and their PodDisruptionBudget."""
    kerf.kubectl("apply", "-f", str(MANIFEST))
    yield kerf
    kerf.kubectl("delete", "--wait=false", "-f", str(MANIFEST))
    kerf.wait(lambda: not kerf.get("nodeclaims") and not kerf.running_instances(), 180, "all nodes are given back")


@dataclass
class Watched:
    """What was seen of a roll-out, sample by sample."""

    seconds: float = 0.0
    most_going: int = 0
    fewest_running: int = 10**6
    words: list[str] = field(default_factory=list)
    #: Samples in which kstatus called the pool Current though a node of the old template was there.
    too_early: list[str] = field(default_factory=list)


def test_a_roll_out_is_in_progress_until_the_last_node_is_replaced(fleet: Installation) -> None:
    watched = _rolled(fleet, nodes=3, limit=180)
    assert watched.most_going == 1
    assert watched.fewest_running >= 2
    assert any("being replaced" in text for text in watched.words)


def test_what_holds_a_roll_out_is_named_and_it_goes_on_when_let_go(fleet: Installation) -> None:
    _scaled(fleet, 1)
    old = _names(fleet)
    fleet.kubectl("patch", "pdb", "rolling", "--type=merge", "-p", '{"spec": {"maxUnavailable": 0}}')
    _template(fleet, "held")

    def blocked() -> bool:
        found = _condition(_pool(fleet), "UpToDate")
        return found.get("reason") == "Blocked" and "PodDisruptionBudget default/rolling" in found["message"]

    fleet.wait(blocked, 60, "the pool says what holds it")
    assert _kstatus(_pool(fleet)) == IN_PROGRESS
    answer = fleet.kubectl("wait", "--for=condition=UpToDate", "nodepool/rolling", "--timeout=2s", check=False)
    assert "timed out" in answer
    fleet.kubectl("patch", "pdb", "rolling", "--type=merge", "-p", '{"spec": {"maxUnavailable": 1}}')
    fleet.kubectl("wait", "--for=condition=UpToDate", "nodepool/rolling", "--timeout=120s")
    assert not old & _names(fleet)
    assert _kstatus(_pool(fleet)) == CURRENT


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_twenty_nodes_roll_within_ten_percent(fleet: Installation) -> None:
    watched = _rolled(fleet, nodes=20, limit=1500)
    assert watched.most_going <= 2
    assert watched.fewest_running >= 19


# --- a roll-out, watched ----------------------------------------------------------------------------------------
def _rolled(kerf: Installation, *, nodes: int, limit: float) -> Watched:
    """The pool's nodes are replaced, and everything that has to hold in the meantime is looked at."""
    _scaled(kerf, nodes)
    kerf.kubectl("wait", "--for=condition=UpToDate", "nodepool/rolling", "--timeout=60s")
    old, evicted = _names(kerf), len(kerf.events("Evicted"))
    assert len(old) == nodes
    begun, seen = time.monotonic(), Watched()
    _template(kerf, "next")
    with ThreadPoolExecutor(1) as pool:
        waiting: Future[str] = pool.submit(
            kerf.kubectl, "wait", "--for=condition=UpToDate", "nodepool/rolling", f"--timeout={limit:.0f}s"
        )
        while not waiting.done():
            _sample(kerf, old, seen)
            time.sleep(0.5)
        waiting.result()
    seen.seconds = time.monotonic() - begun
    assert not old & _names(kerf), "kubectl wait ended while a node of the old template was there"
    assert _kstatus(_pool(kerf)) == CURRENT
    assert seen.too_early == []
    evictions = len(kerf.events("Evicted")) - evicted
    print(
        f"\n{nodes} nodes rolled in {seen.seconds:.0f} s: at most {seen.most_going} at once, "
        f"{evictions} evictions, at least {seen.fewest_running} of {nodes} pods running"
    )
    return seen


def _sample(kerf: Installation, old: set[str], seen: Watched) -> None:
    pool, claims = _pool(kerf), _claims(kerf)
    going = [c for c in claims if c["metadata"]["name"] in old and _is_going(c)]
    seen.most_going = max(seen.most_going, len(going))
    seen.fewest_running = min(seen.fewest_running, len(kerf.running("rolling")))
    condition = _condition(pool, "UpToDate")
    text = str(condition.get("message", ""))
    if text and text not in seen.words:
        seen.words.append(text)
    judged = condition.get("observedGeneration") == pool["metadata"]["generation"]
    if judged and _kstatus(pool) == CURRENT and old & _names(kerf):
        seen.too_early.append(text)


def _is_going(claim: dict[str, Any]) -> bool:
    """As budgets count: from the command until the drain is over and the instance is told to end."""
    if _condition(claim, "InstanceTerminating").get("status") == "True":
        return False
    return "deletionTimestamp" in claim["metadata"] or bool(_condition(claim, "DisruptionReason"))


def _kstatus(thing: dict[str, Any]) -> str:
    """As the kstatus library reads conditions that every kind may have."""
    if _condition(thing, "Stalled").get("status") == "True":
        return FAILED
    if _condition(thing, "Reconciling").get("status") == "True":
        return IN_PROGRESS
    return CURRENT if _condition(thing, "Ready").get("status") == "True" else IN_PROGRESS


# --- aids -------------------------------------------------------------------------------------------------------
def _scaled(kerf: Installation, replicas: int) -> None:
    kerf.kubectl("scale", "deployment", "rolling", f"--replicas={replicas}")
    kerf.wait(lambda: len(kerf.running("rolling")) == replicas, 180, f"{replicas} pods run")
    kerf.wait(lambda: all(_is_ready(c) for c in _claims(kerf)), 60, "their nodes are initialized")


def _template(kerf: Installation, version: str) -> None:
    """A label more in the template: every node drifts."""
    patch = {"spec": {"template": {"metadata": {"labels": {"version": version}}}}}
    kerf.kubectl("patch", "nodepool", "rolling", "--type=merge", "-p", json.dumps(patch))


def _pool(kerf: Installation) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kerf.kubectl("get", "nodepool", "rolling", "-o", "json"))
    return found


def _claims(kerf: Installation) -> list[dict[str, Any]]:
    return kerf.get("nodeclaims", "-l", "karpenter.sh/nodepool=rolling")


def _names(kerf: Installation) -> set[str]:
    return {c["metadata"]["name"] for c in _claims(kerf)}


def _is_ready(claim: dict[str, Any]) -> bool:
    return _condition(claim, "Initialized").get("status") == "True"


def _condition(thing: dict[str, Any], type_: str) -> dict[str, Any]:
    """Empty when it is not there."""
    conditions: list[dict[str, Any]] = thing.get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == type_), {})
