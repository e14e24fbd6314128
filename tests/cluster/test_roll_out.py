"""A roll-out on real parts: how many nodes go at once, and that `kubectl wait` and kstatus can wait for its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .control_plane import ControlPlane
from .fleet import Fleet, condition, is_true
from .fleet import fleet as a_fleet
from .installation import Installation

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
IN_PROGRESS, FAILED, CURRENT = "InProgress", "Failed", "Current"


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(control_plane, tmp_path_factory.mktemp("rolling")) as installation:
        installation.kubectl("apply", "-f", str(HERE / "workloads.yaml"))
        yield installation


@pytest.fixture
def fleet(kerf: Installation) -> Iterator[Fleet]:
    with a_fleet(kerf) as ready:
        yield ready


@dataclass
class Watched:
    """What was seen of a roll-out, sample by sample."""

    seconds: float = 0.0
    #: Nodes that went at once, as budgets count.
    most_going: int = 0
    fewest_running: int = 10**6
    words: list[str] = field(default_factory=list)
    #: Samples in which more nodes went than a tenth of those there were, successors included.
    too_many: list[str] = field(default_factory=list)
    #: Samples in which kstatus called the pool Current though a node of the old template was there.
    too_early: list[str] = field(default_factory=list)


def test_a_roll_out_is_in_progress_until_the_last_node_is_replaced(fleet: Fleet) -> None:
    watched = _rolled(fleet, nodes=3, limit=180)
    assert watched.most_going == 1
    assert watched.fewest_running >= 2
    assert any("being replaced" in text for text in watched.words)


def test_what_holds_a_roll_out_is_named_and_it_goes_on_when_let_go(fleet: Fleet) -> None:
    fleet.scale(1)
    old = fleet.uids()
    fleet.allow(0)
    fleet.change_template("held")

    def blocked() -> bool:
        found = condition(fleet.pool(), "UpToDate")
        words = str(found.get("message"))
        named = (
            "PodDisruptionBudget default/rolling does not allow the eviction of pod" in words
            and "of Deployment rolling" in words
        )
        return found.get("reason") == "Blocked" and named

    fleet.kerf.wait(blocked, 60, "the pool says what holds it")
    assert _kstatus(fleet.pool()) == IN_PROGRESS
    answer = fleet.kerf.kubectl("wait", "--for=condition=UpToDate", "nodepool/rolling", "--timeout=2s", check=False)
    assert "timed out" in answer
    fleet.allow(1)
    fleet.kerf.kubectl("wait", "--for=condition=UpToDate", "nodepool/rolling", "--timeout=120s")
    assert not old & fleet.uids()
    assert _kstatus(fleet.pool()) == CURRENT


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_twenty_nodes_roll_within_ten_percent(fleet: Fleet) -> None:
    """A tenth of 20 nodes are two; while two have a successor there are 22, of which a tenth, rounded up, are three."""
    watched = _rolled(fleet, nodes=20, limit=1500)
    assert watched.most_going in (2, 3)
    assert watched.fewest_running >= 19


# --- a roll-out, watched ----------------------------------------------------------------------------------------
def _rolled(fleet: Fleet, *, nodes: int, limit: float) -> Watched:
    """The pool's nodes are replaced, and everything that has to hold in the meantime is looked at."""
    kerf = fleet.kerf
    fleet.scale(nodes)
    kerf.kubectl("wait", "--for=condition=UpToDate", "nodepool/rolling", "--timeout=60s")
    old, evicted = fleet.uids(), len(kerf.events("Evicted"))
    assert len(old) == nodes
    begun, seen = time.monotonic(), Watched()
    fleet.change_template("next")
    with ThreadPoolExecutor(1) as pool:
        waiting: Future[object] = pool.submit(
            kerf.control_plane.kubectl,
            *("wait", "--for=condition=UpToDate", "nodepool/rolling", f"--timeout={limit:.0f}s"),
            timeout=limit + 30,
        )
        while not waiting.done():
            _sample(fleet, old, seen)
            time.sleep(0.5)
        waiting.result()
    seen.seconds = time.monotonic() - begun
    assert not old & fleet.uids(), "kubectl wait ended while a node of the old template was there"
    assert _kstatus(fleet.pool()) == CURRENT
    assert seen.too_early == []
    assert seen.too_many == []
    evictions = len(kerf.events("Evicted")) - evicted
    print(
        f"\n{nodes} nodes rolled in {seen.seconds:.0f} s: at most {seen.most_going} at once, {evictions} evictions, "
        f"at most {nodes - seen.fewest_running} at once"
    )
    assert evictions == nodes
    return seen


def _sample(fleet: Fleet, old: set[str], seen: Watched) -> None:
    pool, claims = fleet.pool(), fleet.claims()
    counted = [c for c in claims if is_true(c, "Initialized") and not is_true(c, "InstanceTerminating")]
    going = sum(map(_is_going, counted))
    if going > -(-len(counted) // 10):
        seen.too_many.append(f"{going} of {len(counted)}")
    seen.most_going = max(seen.most_going, going)
    seen.fewest_running = min(seen.fewest_running, len(fleet.running()))
    found = condition(pool, "UpToDate")
    text = str(found.get("message", ""))
    if text and text not in seen.words:
        seen.words.append(text)
    judged = found.get("observedGeneration") == pool["metadata"]["generation"]
    if judged and _kstatus(pool) == CURRENT and old & fleet.uids():
        seen.too_early.append(text)


def _is_going(claim: dict[str, Any]) -> bool:
    """As budgets count: from the command until the drain is over and the instance is told to end."""
    return "deletionTimestamp" in claim["metadata"] or bool(condition(claim, "DisruptionReason"))


def _kstatus(thing: dict[str, Any]) -> str:
    """As the kstatus library reads conditions that every kind may have."""
    if is_true(thing, "Stalled"):
        return FAILED
    if is_true(thing, "Reconciling"):
        return IN_PROGRESS
    return CURRENT if is_true(thing, "Ready") else IN_PROGRESS
