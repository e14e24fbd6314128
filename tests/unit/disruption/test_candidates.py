"""What speaks against disrupting a node, one row per blocker, and the order in which they are asked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from api import labels
from reconciler.disruption import costs
from reconciler.disruption.candidates import Blocker, Candidate, candidate
from reconciler.disruption.view import view
from reconciler.model.objects import Pod
from tests.unit.disruption.worlds import NOW, claim, node, pdb, pod, pool, snapshot, torn

PROTECTED = {labels.DO_NOT_DISRUPT: "true"}
MINUTE = timedelta(minutes=1)
READY_FALSE = [{"type": "Ready", "status": "False"}]


def judged(*objects: Any, key: str = "a", eventual: bool = False, **facts: Any) -> Candidate | Blocker:
    return candidate(view(snapshot(objects, **facts)), key, eventual=eventual)


def code(*objects: Any, **more: Any) -> str:
    found = judged(*objects, **more)
    return found.code if isinstance(found, Blocker) else ""


def plain(**spec: Any) -> list[Any]:
    a = claim("a", **spec)
    return [pool(), a, node(a)]


def test_a_plain_node_is_a_candidate_with_price_cost_and_movable_pods() -> None:
    found = judged(*plain(), pod("web", "a"), pod("log", "a", owner="DaemonSet"))
    assert isinstance(found, Candidate)
    assert (found.price, found.cost) == (96_000, 2 * costs.ONE)
    assert [p.key for p in found.movable] == ["shop/web"]


def test_node_blockers() -> None:
    a = claim("a")
    foreign = claim("a", nodeClassRef={"group": "other.io", "kind": "Thing", "name": "x"})
    unready = node(claim("a", annotations={}))
    rows = [
        ("NoNode", [pool(), a]),
        ("Unmanaged", [pool(), foreign, node(foreign)]),
        ("NodeDoNotDisrupt", [pool(), a, node(a, annotations=PROTECTED)]),
        ("", [pool(), a, node(a, annotations={labels.DO_NOT_DISRUPT: "false"})]),
        ("", [pool(), a, node(a, annotations={labels.DO_NOT_DISRUPT: "5m"})]),
        ("NodePoolNotFound", [pool("other"), a, unready]),
    ]
    assert [code(*objects) for _, objects in rows] == [expected for expected, _ in rows]


def test_a_node_without_a_claim_is_not_ours_and_quiet() -> None:
    found = judged(pool(), node(claim("a")), key="node/node-a")
    assert found == Blocker("Unmanaged", "no NodeClaim of ours is behind this node", quiet=True)


@pytest.mark.parametrize("of", ["NodeClaim", "Node", "NodePool", "Pod"])
@pytest.mark.parametrize("eventual", [False, True])
def test_what_could_be_read_only_in_part_keeps_the_node(of: str, eventual: bool) -> None:
    objects = [torn(o) if type(o).__name__ == of else o for o in (*plain(), pod("web", "a"))]
    found = judged(*objects, eventual=eventual)
    assert isinstance(found, Blocker)
    assert found.code == "Unreadable"
    assert found.text.endswith("cannot be read: Expected `str`, got `int` - at `$.spec`")


def test_a_nominated_node_waits_until_the_window_has_passed() -> None:
    assert code(*plain(), nominated_until={"a": NOW + MINUTE}) == "Nominated"
    assert code(*plain(), nominated_until={"a": NOW}) == ""


def test_a_node_on_which_the_kube_scheduler_keeps_room_waits() -> None:
    """It says so while a pod waits for its volumes, or for others to make way."""
    assert code(*plain(), expected("web", "node-a")) == "Nominated"
    assert code(*plain(), expected("web", "node-b")) == ""
    assert code(*plain(), expected("web", "node-a", phase="Succeeded")) == ""


def expected(name: str, node_name: str, **more: Any) -> Pod:
    one = pod(name, **more)
    return replace(one, status=replace(one.status, nominated_node_name=node_name))


def test_a_pool_without_instance_types_blocks() -> None:
    assert code(*plain(), catalogues={}) == "NodePoolNotFound"


@pytest.mark.parametrize(
    ("expected", "a_pod"),
    [
        ("PodDoNotDisrupt", {"annotations": PROTECTED}),
        ("PodDoNotDisrupt", {"annotations": PROTECTED, "owner": "DaemonSet"}),
        ("PodDoNotDisrupt", {"annotations": PROTECTED, "owner": "Node"}),
        ("", {"annotations": PROTECTED, "phase": "Succeeded"}),
        ("", {"annotations": PROTECTED, "deletion": NOW + MINUTE}),
        ("", {"annotations": {labels.DO_NOT_DISRUPT: "abc"}}),
        ("", {"annotations": {labels.DO_NOT_DISRUPT: "-5m"}}),
        ("PodDoNotDisrupt", {"annotations": {labels.DO_NOT_DISRUPT: "2m"}, "started": NOW - MINUTE}),
        ("", {"annotations": {labels.DO_NOT_DISRUPT: "2m"}, "started": NOW - 3 * MINUTE}),
    ],
)
def test_protected_pods(expected: str, a_pod: dict[str, Any]) -> None:
    assert code(*plain(), pod("web", "a", **a_pod)) == expected


@pytest.mark.parametrize(
    ("expected", "a_pod", "budgets"),
    [
        ("PodDisruptionBudget", {}, [pdb("one")]),
        ("", {}, [pdb("one", 1)]),
        ("PodDisruptionBudget", {}, [pdb("one", 1), pdb("two", 1)]),
        ("", {}, [pdb("one", namespace="other")]),
        ("", {}, [pdb("one", app="db")]),
        ("PodDisruptionBudget", {"owner": "DaemonSet"}, [pdb("one")]),
        ("", {"owner": "Node"}, [pdb("one")]),
        ("", {"phase": "Failed"}, [pdb("one")]),
        ("", {"deletion": NOW}, [pdb("one")]),
        ("", {"tolerations": [{"operator": "Exists"}]}, [pdb("one")]),
        ("PodDisruptionBudget", {"pod_conditions": READY_FALSE}, [pdb("one")]),
        ("", {"pod_conditions": READY_FALSE}, [pdb("one", unhealthyPodEvictionPolicy="AlwaysAllow")]),
    ],
)
def test_pod_disruption_budgets(expected: str, a_pod: dict[str, Any], budgets: list[Any]) -> None:
    assert code(*plain(), pod("web", "a", **a_pod), *budgets) == expected


@pytest.mark.parametrize("eventual", [True, False])
@pytest.mark.parametrize("grace", [None, "1h"])
def test_a_termination_grace_period_waives_pods_for_drift_only(grace: str | None, eventual: bool) -> None:
    objects = plain(terminationGracePeriod=grace) if grace else plain()
    blocked = not (eventual and grace)
    assert code(*objects, pod("web", "a", annotations=PROTECTED), eventual=eventual) == "PodDoNotDisrupt" * blocked
    assert code(*objects, pod("web", "a"), pdb("one"), eventual=eventual) == "PodDisruptionBudget" * blocked


def test_the_annotation_of_any_pod_comes_before_the_budget_of_another() -> None:
    assert code(*plain(), pod("a-web", "a"), pod("b-job", "a", annotations=PROTECTED), pdb("one")) == "PodDoNotDisrupt"


@pytest.mark.parametrize(
    ("cost", "more"),
    [
        (1.0, {}),
        (2.0, {"priority": 2**25}),
        (0.0, {"priority": -(2**25)}),
        (10.0, {"priority": 2_000_000_000}),
        (-10.0, {"priority": -2_000_000_000}),
        (2.0, {"annotations": {labels.POD_DELETION_COST: str(2**27)}}),
        (1.0, {"annotations": {labels.POD_DELETION_COST: "much"}}),
        (1.0, {"annotations": {labels.POD_DELETION_COST: "nan"}}),
        (10.0, {"annotations": {labels.POD_DELETION_COST: "1e300"}}),
    ],
)
def test_eviction_costs(cost: float, more: dict[str, Any]) -> None:
    assert costs.eviction_cost(pod("web", "a", **more)) == cost * costs.ONE


def test_pods_that_cost_nothing_or_move_nowhere_leave_a_node_empty() -> None:
    cheap = {labels.POD_DELETION_COST: str(-(2**27))}
    going = pod("going", "a", deletion=NOW)
    assert costs.empty([pod("log", "a", owner="DaemonSet"), pod("cheap", "a", annotations=cheap), going])
    assert not costs.empty([pod("db", "a", owner="StatefulSet", deletion=NOW)])
    assert not costs.empty([pod("web", "a")])


def test_a_replacement_is_kept_while_its_command_lasts() -> None:
    command = {labels.COMMAND: "{}"}
    new = claim("new", annotations={labels.REPLACES: "a"})
    old, freed = claim("a", annotations=command), claim("a")
    assert code(pool(), new, node(new), old, key="new") == "Replacement"
    assert code(pool(), new, node(new), freed, key="new") == ""
    assert code(pool(), new, node(new), key="new") == ""
