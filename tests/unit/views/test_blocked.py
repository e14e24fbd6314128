"""The cost of blocked nodes: by PodDisruptionBudget and by owner of do-not-disrupt pods."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kerf.model.kubernetes.objects import Pod
from kerf.views.blocked import BlockedCost
from kerf.views.board import board
from kerf_api import labels
from tests.unit.disruption.worlds import claim, drifted, node, pdb
from tests.unit.judgement.yards import worker
from tests.unit.views import worlds
from tests.unit.views.test_page import page


def protected(made: Pod) -> Pod:
    """The pod with the annotation."""
    notes = {**made.metadata.annotations, labels.DO_NOT_DISRUPT: "true"}
    return replace(made, metadata=replace(made.metadata, annotations=notes))


def costs(*more: Any) -> dict[str, BlockedCost]:
    """By the name of the blocker."""
    return {one.name: one for one in board(worlds.cluster(*more)).blocked}


def test_a_budget_has_the_price_of_its_nodes() -> None:
    (one,) = board(worlds.cluster(pdb("keep", app="web"))).blocked
    price = board(worlds.cluster()).node("node-a")
    assert price is not None
    assert (one.kind, one.name, one.nodes, one.pods) == ("PodDisruptionBudget", "shop/keep", ("node-a",), 1)
    assert (one.price, one.wanted, one.alone) == (price.machine.price, 0, price.machine.price)


def test_a_drifted_node_is_due() -> None:
    found = costs(*drifted("d"), worker("web-9", "d", "500m"))["shop/keep"]
    assert ("node-d" in found.nodes, found.reasons) == (True, ("Drifted",))
    assert 0 < found.wanted < found.price


def test_protected_pods_count_for_their_owner() -> None:
    others = claim("c")
    pods = [protected(worker(f"job-{n}", "c", "100m", of="job", kind="Job")) for n in range(2)]
    one = costs(others, node(others), *pods)["Job shop/job"]
    assert (one.kind, one.nodes, one.pods) == (labels.DO_NOT_DISRUPT, ("node-c",), 2)
    assert one.alone == one.price > 0


def test_a_node_with_two_blockers_counts_for_both_and_is_freed_by_none_alone() -> None:
    found = costs(protected(worker("job-1", "a", "100m", of="job", kind="Job")))
    assert found["Job shop/job"].price == found["shop/keep"].price > 0
    assert found["Job shop/job"].alone == found["shop/keep"].alone == 0


def test_due_costs_come_first() -> None:
    more = [claim("c"), claim("e")]
    pods = [protected(worker(f"job-{one.name}", one.name, "100m", of="job", kind="Job")) for one in more]
    found = board(worlds.cluster(*more, *map(node, more), *pods, *drifted("d"), worker("web-9", "d", "500m"))).blocked
    assert [one.name for one in found] == ["shop/keep", "Job shop/job"]


def test_the_page_names_the_blocker_and_its_nodes() -> None:
    text = page(worlds.cluster()).get("/cost").text
    assert "shop/keep <small>PodDisruptionBudget</small>" in text
    assert '<a href="/nodes/node-a">node-a</a>' in text.split('id="blocked"')[1].split("</section>")[0]
