"""What a disruption costs pods, and what nodes cost (31 to 34 of the disruption catalogue)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kerf.disruption.candidates import costs
from kerf.disruption.candidates.candidates import Candidate
from kerf.disruption.consolidation.balanced import totals
from kerf.disruption.view import view
from kerf_api import labels
from tests.unit.disruption import worlds as w


def cost(**of_pod: Any) -> float:
    """In costs of a plain pod."""
    return costs.eviction_cost(w.pod("web", "a", **of_pod)) / costs.ONE


def deletion_cost(text: str) -> dict[str, Any]:
    return {"annotations": {labels.POD_DELETION_COST: text}}


def candidate_of(*objects: Any, **facts: Any) -> Candidate:
    found = w.judged(*objects, **facts)
    assert isinstance(found, Candidate)
    return found


def test_031_a_plain_pod_costs_one_and_others_more_or_less() -> None:
    assert cost() == 1
    by_priority = [cost(priority=priority) for priority in (-(2**25), -1, 0, 1, 2**25)]
    assert by_priority == sorted(set(by_priority)), "strictly more with each"
    assert (by_priority[0], by_priority[2], by_priority[4]) == (0, 1, 2)
    by_annotation = [cost(**deletion_cost(text)) for text in ("-134217728", "-1", "0", "1", "134217728")]
    assert (by_annotation[0], by_annotation[2], by_annotation[4]) == (0, 1, 2)
    assert by_annotation == sorted(set(by_annotation))
    assert [cost(**deletion_cost(text)) for text in ("much", "nan", "")] == [1, 1, 1]


def test_032_no_pod_costs_more_than_ten_and_none_makes_a_node_cheaper() -> None:
    assert (cost(priority=2_000_000_000), cost(priority=-2_000_000_000)) == (10, -10)
    assert (cost(**deletion_cost("1e300")), cost(**deletion_cost("-1e300"))) == (10, -10)
    gladly = w.pod("gladly", "a", priority=-2_000_000_000)
    assert costs.reschedule_cost([gladly]) == costs.ONE
    assert costs.reschedule_cost([gladly, w.pod("web", "a")]) == 2 * costs.ONE


def test_033_a_node_has_its_price_though_its_offering_is_sold_out() -> None:
    sold_out = {offering.key: w.NOW + w.HOUR for offering in w.CATALOGUE[0].offerings}
    assert candidate_of(w.pool(), *w.pairs("a"), out_of_stock=sold_out).price == 96_000


@pytest.mark.parametrize("known", [(), w.CATALOGUE[1:]], ids=["no offering", "no such type"])
def test_034_a_node_without_a_known_price_costs_nothing(known: Any) -> None:
    """What its pool costs is still a number."""
    bare = known or (replace(w.CATALOGUE[0], offerings=()), *w.CATALOGUE[1:])
    world = [w.pool(), *w.pairs("a"), *w.pairs("b", instance_type="m5.xlarge")]
    facts: dict[str, Any] = {"catalogues": {"default": bare}}
    assert candidate_of(*world, **facts).price == 0
    assert totals(view(w.snapshot(world, **facts)), w.pool()).price == 192_000
