"""How flexible a NodePool wants its claims to be: behaviours 121 to 129 of the catalogue (minValues)."""

from __future__ import annotations

from kerf_api import labels
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

ONE_AND_FOUR = (c.machine("one", 1, 4), c.machine("four", 4, 4))
BY_TYPE = c.row(labels.INSTANCE_TYPE, "Exists", least=2)


def test_123_a_pod_that_leaves_too_few_values_waits() -> None:
    """It is told which key is short."""
    done = c.run(c.pool(BY_TYPE), w.pod("p", nodeSelector={labels.INSTANCE_TYPE: "one"}), catalogue=ONE_AND_FOUR)
    assert done.pending == ["p"]
    assert "minValues requirement is not met for label(s)" in done.why()
    assert labels.INSTANCE_TYPE in done.why()


def test_124_the_largest_number_for_a_key_counts_and_all_keys() -> None:
    """Several entries for one key; several keys."""
    types = (*ONE_AND_FOUR, c.machine("eight", 8, 8))
    rows = [BY_TYPE, c.row(labels.INSTANCE_TYPE, "Exists", least=3)]
    done = c.run(c.pool(*rows), w.pod("a", "900m"), w.pod("b", "3"), catalogue=types)
    assert done.pending == ["b"]
    assert len(done.of("a").instance_types) == 3
    both = [BY_TYPE, c.row(labels.ARCH, "Exists", least=2)]
    assert c.run(c.pool(*both), w.pod("p", "900m"), catalogue=types).pending == ["p"]
    arm = c.machine("arm", 4, 4, arch="arm64")
    node = c.run(c.pool(*both), w.pod("p", "900m"), catalogue=(*types, arm)).node
    assert {"arm"} < set(node.instance_types)


def test_125_a_pool_that_can_never_be_so_flexible_is_not_used() -> None:
    """An event on the pool says that minValues is the reason."""
    strict = c.pool(c.row(labels.INSTANCE_TYPE, "Exists", least=3))
    done = c.run(strict, w.pod("p"), catalogue=ONE_AND_FOUR)
    assert done.pending == ["p"]
    events = c.plan(strict, w.pod("p"), catalogue=ONE_AND_FOUR).events
    (event,) = (e for e in events if e.reason == "NoCompatibleInstanceTypes")
    assert event.message == (
        "NodePool requirements filtered out all compatible available instance types due to minValues incompatibility"
    )


def test_126_a_list_that_is_cut_keeps_its_values_or_the_node_is_not_made() -> None:
    """The cut prefers cheap types, but not at the cost of a value; where it cannot keep them, the pods wait."""
    arm = c.machine("arm", 4, 40, arch="arm64")
    types = (*(c.machine(f"amd-{number}", 4, 4) for number in range(6)), arm)
    rows = c.pool(c.row(labels.ARCH, "Exists", least=2))
    node = c.run(rows, w.pod("p"), catalogue=types, max_instance_types=3).node
    assert len(node.instance_types) == 3
    assert "arm" in node.instance_types
    strict = c.pool(c.row(labels.INSTANCE_TYPE, "Exists", least=4))
    assert c.run(strict, w.pod("p"), catalogue=types, max_instance_types=3).pending == ["p"]


def test_127_a_best_effort_takes_what_there_is() -> None:
    """Three wanted and two to be had: the claim wants two, and says that this is less."""
    pool = c.pool(c.row(labels.INSTANCE_TYPE, "Exists", least=3))
    done = c.run(pool, w.pod("p", "900m"), catalogue=ONE_AND_FOUR, min_values_policy="BestEffort")
    assert done.node.min_values_relaxed
    (claim,) = done.claims()
    assert claim.metadata.annotations[labels.MIN_VALUES_RELAXED] == "true"
    assert {e.key: e.min_values for e in claim.spec.requirements}[labels.INSTANCE_TYPE] == 2
    kept = c.run(c.pool(BY_TYPE), w.pod("p", "900m"), catalogue=ONE_AND_FOUR, min_values_policy="BestEffort")
    assert kept.claims()[0].metadata.annotations[labels.MIN_VALUES_RELAXED] == "false"


def test_128_a_heavier_pool_is_relaxed_before_a_lighter_one_is_taken() -> None:
    """Under Strict the lighter one serves."""
    heavy = c.pool(c.row(labels.INSTANCE_TYPE, "Exists", least=3), name="heavy", weight=9)
    for policy, name in (("BestEffort", "heavy"), ("Strict", "light")):
        done = c.run(heavy, w.pool("light"), w.pod("p", "900m"), catalogue=ONE_AND_FOUR, min_values_policy=policy)
        assert done.node.pool == name


def test_129_zones_are_relaxed_like_types() -> None:
    """Three zones wanted, two offered; and both keys together."""
    two_zones = tuple(
        c.machine(name, 4, 4, markets=(("z1", "on-demand"), ("z2", "on-demand"))) for name in ("one", "two")
    )
    zones = c.row(labels.ZONE, "Exists", least=3)
    for rows in ([zones], [zones, c.row(labels.INSTANCE_TYPE, "Exists", least=4)]):
        done = c.run(c.pool(*rows), w.pod("p"), catalogue=two_zones, min_values_policy="BestEffort")
        found = {e.key: e.min_values for e in done.claims()[0].spec.requirements}
        assert {found[row["key"]] for row in rows} == {2}
        assert c.run(c.pool(*rows), w.pod("p"), catalogue=two_zones).pending == ["p"]
