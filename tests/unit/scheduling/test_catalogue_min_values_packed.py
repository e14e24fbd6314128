"""minValues bounds how many pods share a node (a filling that leaves too few types is not given up whole)."""

from __future__ import annotations

from kerf_api import labels
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

ONE_AND_FOUR = (c.machine("one", 1, 4), c.machine("four", 4, 4))
BY_TYPE = c.row(labels.INSTANCE_TYPE, "Exists", least=2)


def test_121_every_claim_lists_so_many_types() -> None:
    """Two pods would share the larger type; then the smaller could not be listed."""
    done = c.run(c.pool(BY_TYPE), w.replicas(2, "p", "900m"), catalogue=ONE_AND_FOUR)
    assert [set(node.instance_types) for node in done.nodes] == [{"one", "four"}] * 2
    assert c.run(w.pool(), w.replicas(2, "p", "900m"), catalogue=ONE_AND_FOUR[1:]).sizes() == [2]


def test_122_values_of_a_number_count_too() -> None:
    """Above two and below four."""
    three_four = (c.machine("three", 3, 4), c.machine("four", 4, 4))
    over = c.pool(c.row(w.SIZE, "Gt", "2", least=2))
    done = c.run(over, w.replicas(2, "p", "2500m"), catalogue=(*three_four, *ONE_AND_FOUR[:1]))
    assert [set(node.instance_types) for node in done.nodes] == [{"three", "four"}] * 2
    one_three = (*ONE_AND_FOUR, c.machine("three", 3, 4))
    done = c.run(c.pool(c.row(w.SIZE, "Lt", "4", least=2)), w.replicas(2, "p", "900m"), catalogue=one_three)
    assert [set(node.instance_types) for node in done.nodes] == [{"one", "three"}] * 2
