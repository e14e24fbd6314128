"""A budget that allows more disruptions ends as many back-offs of evictions that it refused, and no others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.kubernetes.objects import Node, Pod, PodDisruptionBudget
from kerf.model.plan import EvictPod, Reason
from kerf.model.settings import Settings
from kerf.ports import EvictionBlocked, Forbidden, SeveralBudgets, Throttled
from kerf.runtime.act.results import absorb
from kerf.runtime.inbox import Changed, Done, Listed, Removed
from kerf.runtime.state.state import State
from kerf_api import labels
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BLOCKED = ("blocked", EvictionBlocked("x"))


def text(seconds: float) -> str:
    return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Evicting:
    """The state of a controller, whose evictions are refused, and the budgets that it sees."""

    def __init__(self) -> None:
        self.state = State(Settings(cluster_name="c"), build=lambda *_: (), interpret=lambda _: None)
        self._version = 0

    def see(self, kind: kinds.Kind, type_: Any, name: str, namespace: str = "", **parts: Any) -> None:
        self._version += 1
        meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": str(self._version)}
        meta |= parts.pop("meta", {})
        self.state.take(Changed(kind, decode(type_, {"metadata": meta, **parts})), NOW)

    def pods(self, *names: str, node: str = "n", namespace: str = "d", meta: Any = None) -> None:
        for name in names:
            running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            made = {"labels": {"app": "web"}, **(meta or {})}
            self.see(kinds.POD, Pod, name, namespace, meta=made, spec={"nodeName": node}, status=running)

    def node(self, name: str, deleted: float = 0, **annotations: str) -> None:
        """A node that is drained since then, with annotations of its NodeClaim."""
        meta = {"deletionTimestamp": text(deleted), "finalizers": ["f"], "annotations": annotations}
        self.see(kinds.NODE, Node, name, spec={"providerID": f"aws:///a/i-{name}"})
        status = {"providerID": f"aws:///a/i-{name}"}
        reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "c"}
        spec = {"requirements": [], "nodeClassRef": reference}
        self.see(kinds.NODE_CLAIM, NodeClaim, f"claim-{name}", meta=meta, spec=spec, status=status)

    def budget(
        self,
        allows: int,
        *,
        name: str = "web",
        namespace: str = "d",
        app: str = "web",
        generation: int = 1,
        seen: int = 1,
    ) -> None:
        spec = {"selector": {"matchLabels": {"app": app}}}
        status = {"disruptionsAllowed": allows, "observedGeneration": seen}
        meta = {"generation": generation}
        self.see(kinds.PDB, PodDisruptionBudget, name, namespace, meta=meta, spec=spec, status=status)

    def forget(self, name: str) -> None:
        """A budget is deleted."""
        self.state.take(Removed(kinds.PDB, "d", name), NOW)

    def answer(
        self, *names: str, namespace: str = "d", times: int = 8, outcome: str = "blocked", error: Any = BLOCKED[1]
    ) -> None:
        for name in names * times:
            action = EvictPod(ref=kinds.Ref("Pod", namespace, name), uid=f"uid-{name}", reason=Reason("Test"))
            absorb(Done(action, outcome, NOW, None, error), self.state)

    @property
    def waiting(self) -> list[str]:
        """The pods that are left alone now."""
        return sorted(key.rpartition("/")[2] for key in self.state.snapshot(NOW).not_before)


def blocked(*names: str) -> Evicting:
    """Pods under a budget that allows none; the eviction of each was refused."""
    found = Evicting()
    found.budget(0)
    found.pods(*names)
    found.answer(*names)
    assert found.waiting == sorted(names)
    return found


@pytest.mark.parametrize(("allows", "left"), [(1, ["b", "c"]), (2, ["c"]), (9, [])])
def test_as_many_are_tried_again_as_the_budget_allows(allows: int, left: list[str]) -> None:
    found = blocked("a", "b", "c")
    found.budget(allows)
    assert found.waiting == left


def test_a_deleted_budget_ends_the_waits_of_its_pods_and_of_no_others() -> None:
    found = blocked("a", "b")
    found.budget(0, name="api", app="api")
    found.pods("c", meta={"labels": {"app": "api"}})
    found.answer("c")
    found.forget("web")
    assert found.waiting == ["c"]


def test_a_status_that_allows_no_more_than_before_ends_no_wait() -> None:
    """Each accepted eviction lowers it: those are no occasions."""
    found = blocked("a", "b", "c", "e", "f")
    found.budget(2)
    assert found.waiting == ["c", "e", "f"]
    for allows in (2, 1, 1, 0):
        found.budget(allows)
        assert found.waiting == ["c", "e", "f"]
    found.budget(1)
    assert found.waiting == ["e", "f"]


def test_a_refusal_after_that_waits_longer_and_for_the_next_rise() -> None:
    found = Evicting()
    found.budget(0)
    found.pods("a")
    found.answer("a", times=3)
    first = found.state.snapshot(NOW).not_before["eviction/d/a"]
    found.budget(1)
    found.answer("a", times=1)
    assert found.state.snapshot(NOW).not_before["eviction/d/a"] > first
    found.budget(1)
    found.budget(0)
    assert found.waiting == ["a"]
    found.budget(1)
    assert found.waiting == []


def test_a_stale_status_ends_no_wait_until_its_controller_has_seen_the_edit() -> None:
    found = blocked("a", "b")
    found.budget(5, generation=2)
    assert found.waiting == ["a", "b"]
    found.budget(1, generation=2, seen=2)
    assert found.waiting == ["b"]


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        ("blocked", SeveralBudgets("two")),
        ("forbidden", Forbidden("a webhook denies it")),
        ("throttled", Throttled("busy", 3.0)),
    ],
)
def test_a_refusal_of_another_kind_waits_as_long_as_before(outcome: str, error: Exception) -> None:
    found = blocked("a")
    found.answer("a", times=1, outcome=outcome, error=error)
    found.budget(1)
    assert found.waiting == ["a"]
    found.answer("a", times=1)
    found.budget(2)
    assert found.waiting == [], "a budget was the latest to refuse it"


@pytest.mark.parametrize("budget", [{"name": "other", "app": "other"}, {"name": "web", "namespace": "other"}])
def test_a_budget_of_other_pods_ends_no_wait(budget: dict[str, Any]) -> None:
    found = blocked("a")
    found.budget(1, **budget)
    assert found.waiting == ["a"]


def test_pods_that_cannot_be_evicted_any_more_take_no_turn() -> None:
    """One that ends, one that may not be disrupted, one that is gone."""
    found = blocked("a", "b", "c", "e")
    found.pods("a", meta={"deletionTimestamp": text(30)})
    found.pods("b", meta={"annotations": {labels.DO_NOT_DISRUPT: "true"}})
    found.state.take(Removed(kinds.POD, "d", "c", "uid-c"), NOW)
    found.budget(1)
    assert found.waiting == ["a", "b", "c"]


def test_a_list_counts_as_its_changes_do() -> None:
    found = blocked("a", "b")
    allowing = decode(
        PodDisruptionBudget,
        {
            "metadata": {"name": "web", "namespace": "d", "uid": "uid-web", "resourceVersion": "90"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 1},
        },
    )
    found.state.take(Listed(kinds.PDB, (allowing,), "90", NOW), NOW)
    assert found.waiting == ["b"]
    found.state.take(Listed(kinds.PDB, (allowing,), "91", NOW), NOW)
    assert found.waiting == ["b"]


# --- the order --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"deleted": 5}),
        ({"deleted": 5, labels.TERMINATION_TIMESTAMP: text(900)}, {}),
        ({labels.TERMINATION_TIMESTAMP: text(600)}, {labels.TERMINATION_TIMESTAMP: text(900)}),
        ({"deleted": 5, labels.ENDS: f"{text(5)} SpotInterrupted"}, {labels.TERMINATION_TIMESTAMP: text(600)}),
        ({labels.TERMINATION_TIMESTAMP: text(600)}, {labels.TERMINATION_TIMESTAMP: "soon"}),
    ],
)
def test_reclaimed_instances_and_close_deadlines_come_first_and_then_the_oldest_drain(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    """The keys of the pods alone, or the names of the nodes, say the opposite."""
    found = Evicting()
    found.node("z", **first)
    found.node("y", **second)
    found.pods("q", "r", node="z")
    found.pods("a", "b", node="y")
    found.answer("a", "b", "q", "r")
    found.budget(2)
    assert found.waiting == ["a", "b"]
    found.budget(3)
    assert found.waiting == ["b"]


def test_one_node_is_emptied_after_another() -> None:
    found = Evicting()
    found.node("y")
    found.node("z")
    found.pods("a", "q", node="y")
    found.pods("b", "r", node="z")
    found.answer("a", "b", "q", "r")
    found.budget(2)
    assert found.waiting == ["b", "r"]


def test_waits_move_with_a_clock_that_is_set_back() -> None:
    found = blocked("a", "b")
    found.state.snapshot(NOW)
    back = NOW - timedelta(hours=1)
    waits = found.state.snapshot(back).not_before
    assert all(back < until <= back + timedelta(seconds=11) for until in waits.values())
    assert len(waits) == 2
