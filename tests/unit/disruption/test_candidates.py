"""What speaks against disrupting a node, one row per blocker, and the order in which they are asked."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.candidates import costs
from kerf.disruption.candidates.candidates import Blocker, Candidate
from kerf.model.changes.pdbs import Pdbs
from kerf.model.kubernetes.objects import Pod
from kerf_api import labels
from tests.unit.disruption.worlds import PROTECTED, claim, code, judged, node, pdb, pod, pool, snapshot, torn

READY_TRUE = [{"type": "Ready", "status": "True"}]
READY_FALSE = [{"type": "Ready", "status": "False"}]


def plain(**spec: Any) -> list[Any]:
    a = claim("a", **spec)
    return [pool(), a, node(a)]


def test_a_plain_node_is_a_candidate_with_price_cost_and_movable_pods() -> None:
    found = judged(*plain(), pod("web", "a"), pod("log", "a", owner="DaemonSet"))
    assert isinstance(found, Candidate)
    assert (found.price, found.cost) == (96_000, 2 * costs.ONE)
    assert [p.key for p in found.movable] == ["shop/web"]


@pytest.mark.parametrize("of", ["NodeClaim", "Node", "NodePool", "Pod"])
@pytest.mark.parametrize("eventual", [False, True])
def test_what_could_be_read_only_in_part_keeps_the_node(of: str, eventual: bool) -> None:
    objects = [torn(o) if type(o).__name__ == of else o for o in (*plain(), pod("web", "a"))]
    found = judged(*objects, eventual=eventual)
    assert isinstance(found, Blocker)
    assert found.code == "Unreadable"
    assert found.text.endswith("cannot be read: Expected `str`, got `int` - at `$.spec`")


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
    ("expected", "a_pod", "budgets"),
    [
        ("PodDisruptionBudget", {}, [pdb("one")]),
        ("", {}, [pdb("one", 1)]),
        ("", {}, [pdb("one", namespace="other")]),
        ("", {}, [pdb("one", app="db")]),
        ("", {"tolerations": [{"operator": "Exists"}]}, [pdb("one")]),
        ("PodDisruptionBudget", {"pod_conditions": READY_FALSE}, [pdb("one")]),
        ("", {"pod_conditions": READY_FALSE}, [pdb("one", unhealthyPodEvictionPolicy="AlwaysAllow")]),
    ],
)
def test_pod_disruption_budgets(expected: str, a_pod: dict[str, Any], budgets: list[Any]) -> None:
    assert code(*plain(), pod("web", "a", **a_pod), *budgets) == expected


@pytest.mark.parametrize(
    ("blocks", "policy", "a_pod", "healthy", "desired", "budgets"),
    [
        (True, "IfHealthyBudget", {"pod_conditions": READY_TRUE}, 2, 2, 1),
        (False, "IfHealthyBudget", {"pod_conditions": READY_FALSE}, 2, 2, 1),
        (False, "IfHealthyBudget", {}, 2, 2, 1),
        (True, "IfHealthyBudget", {"pod_conditions": READY_FALSE}, 1, 2, 1),
        (True, "IfHealthyBudget", {"pod_conditions": READY_FALSE}, 0, 0, 1),
        (True, "IfHealthyBudget", {"pod_conditions": READY_FALSE}, 2, 2, 2),
        (False, "AlwaysAllow", {}, 0, 2, 1),
        (True, "AlwaysAllow", {"pod_conditions": READY_TRUE}, 0, 2, 1),
        (True, "AlwaysAllow", {"pod_conditions": READY_FALSE}, 2, 2, 2),
        (False, "IfHealthyBudget", {"phase": "Pending"}, 0, 2, 1),
        (False, "IfHealthyBudget", {"phase": "Pending"}, 0, 2, 2),
    ],
)
def test_budgets_hold_a_pod_as_the_eviction_api_does(
    blocks: bool, policy: str, a_pod: dict[str, Any], healthy: int, desired: int, budgets: int
) -> None:
    """It lets a pod go that is not ready while the application is healthy, and knows no budget of a Pending one."""
    rows = [pdb(f"b{n}", unhealthyPodEvictionPolicy=policy, minAvailable=2) for n in range(budgets)]
    status = replace(rows[0].status, current_healthy=healthy, desired_healthy=desired)
    rows = [replace(one, status=status) for one in rows]
    world = (*plain(), pod("web", "a", **a_pod), *rows)
    assert (code(*world) == "PodDisruptionBudget") is blocks
    found = snapshot(world)
    pdbs = Pdbs(found.pdb_selectors, found.pdb_budgets)
    (one,) = found.pods.on("node-a")
    assert bool(pdbs.blocking(one, found.now)) is blocks
    assert pdbs.forbids(one, found.now) is (blocks and budgets == 2)


def test_a_budget_that_was_edited_lets_nothing_go_until_its_status_follows() -> None:
    budget = pdb("one", 1)
    edited = replace(budget, metadata=replace(budget.metadata, generation=2))
    assert code(*plain(), pod("web", "a"), edited) == "PodDisruptionBudget"
    assert code(*plain(), pod("web", "a"), replace(edited, status=replace(edited.status, observed_generation=2))) == ""


def test_the_annotation_of_any_pod_comes_before_the_budget_of_another() -> None:
    assert code(*plain(), pod("a-web", "a"), pod("b-job", "a", annotations=PROTECTED), pdb("one")) == "PodDoNotDisrupt"


def test_a_replacement_is_kept_while_its_command_lasts() -> None:
    command = {labels.COMMAND: "{}"}
    new = claim("new", annotations={labels.REPLACES: "a"})
    old, freed = claim("a", annotations=command), claim("a")
    assert code(pool(), new, node(new), old, key="new") == "Replacement"
    assert code(pool(), new, node(new), freed, key="new") == ""
    assert code(pool(), new, node(new), key="new") == ""
