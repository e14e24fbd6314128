"""Offerings with an amount of their own, and NodeOverlay: behaviours 67 and 207 to 211 of the catalogue."""

from __future__ import annotations

from typing import Any

from kerf.decide import decide
from kerf.model.aws.instance_type import InstanceType, Offering
from kerf.model.plan import PatchObject
from kerf.model.settings import FeatureGates
from kerf_api import labels
from kerf_api.resources import Resources
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

ON = FeatureGates(node_overlay=True)
TYPES = (c.machine("one", 4, 4, price=1_020_000), c.machine("two", 4, 4, price=1_030_000))


def overlay(name: str, *rows: dict[str, Any], **spec: Any) -> Any:
    return c.made("NodeOverlay", name, spec={"requirements": list(rows), **spec})


def of_type(name: str) -> dict[str, Any]:
    return c.row(labels.INSTANCE_TYPE, "In", name)


def run(*objects: Any, **facts: Any) -> c.Pass:
    return c.run(*objects, **{"catalogue": TYPES, "gates": ON, **facts})


def verdicts(*overlays: Any, **facts: Any) -> dict[str, tuple[str, str]]:
    """Each overlay's ValidationSucceeded: status and reason, as it is about to be written."""
    plan = decide(w.world(w.pool(), list(overlays), **{"catalogue": TYPES, "gates": ON, **facts}))
    found = {}
    for action in plan.actions:
        if isinstance(action, PatchObject) and action.ref.kind == "NodeOverlay":
            for told in action.patch["status"]["conditions"]:
                if told["type"] == "ValidationSucceeded":
                    found[action.ref.name] = (told["status"], told.get("reason", ""))
    return found


def test_067_an_offering_with_an_amount_of_its_own() -> None:
    """Only it has the resource; when it is not to be had, its amount does not count."""
    for available in (True, False):
        base = c.machine("plain", 4, 4)
        special = Offering("plain", "z3", "on-demand", 1, available, capacity=Resources({"example.com/extra": 2}))
        plain = InstanceType("plain", base.requirements, base.capacity, base.allocatable, (*base.offerings, special))
        done = c.run(w.pool(), w.pod("p", requests={"example.com/extra": "1"}), catalogue=(plain,))
        assert done.pending == ([] if available else ["p"])
        if available:
            assert (done.node.zones, done.node.capacity_types) == (("z3",), ("on-demand",))


def test_207_a_price_is_replaced_or_adjusted() -> None:
    """Only of the offerings that match; a claim whose types are affected says so."""
    dear = run(w.pool(), w.pod("p"), overlay("o", of_type("one"), price="13234.223"))
    assert dear.types() == ["two"]
    only = w.pod("p", nodeSelector={labels.INSTANCE_TYPE: "one"})
    shut = run(w.pool(), only, overlay("o", of_type("one"), price="7"), gates=FeatureGates(node_overlay=False))
    assert shut.node.price == 1_020_000
    assert run(w.pool(), only, overlay("o", of_type("one"), price="13234.223")).node.price == 13_234_223_000
    assert run(w.pool(), only, overlay("o", of_type("one"), priceAdjustment="+1000")).node.price == 1_001_020_000
    assert run(w.pool(), only, overlay("o", of_type("one"), priceAdjustment="-50%")).node.price == 510_000
    assert run(w.pool(), only, overlay("o", of_type("one"), priceAdjustment="-1000")).node.price == 0
    (claim,) = run(w.pool(), only, overlay("o", of_type("one"), price="7")).claims()
    assert claim.metadata.annotations["karpenter.sh/price-overlay-applied"] == "true"
    rows: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "capacity type": (c.row(labels.CAPACITY_TYPE, "In", "spot"), {labels.CAPACITY_TYPE: "on-demand"}),
        "zone": (c.row(labels.ZONE, "In", "z1"), {labels.ZONE: "z2"}),
        "pool": (c.row(labels.NODEPOOL, "In", "other"), {}),
        "template label": (c.row("team", "In", "red"), {}),
    }
    for row, selector in rows.values():
        pod = w.pod("p", nodeSelector={labels.INSTANCE_TYPE: "one", **selector})
        assert run(w.pool(), pod, overlay("o", row, price="7")).node.price == 1_020_000
    red = w.pool(labels={"team": "red"})
    assert run(red, only, overlay("o", c.row("team", "In", "red"), price="7")).node.price == 7_000_000


def test_208_two_of_one_weight_that_say_the_same_thing_conflict() -> None:
    """Even with equal values: of `a` and `b` the latter is applied."""
    prices = [overlay("a", of_type("one"), price="7"), overlay("b", of_type("one"), price="7")]
    found = verdicts(*prices)
    assert found["a"] == ("False", "Conflict")
    assert found["b"][0] == "True"
    amounts = [overlay(name, of_type("one"), capacity={"example.com/x": "1"}) for name in "ab"]
    assert verdicts(*amounts)["a"] == ("False", "Conflict")


def test_209_the_heavier_one_wins_and_what_does_not_overlap_is_joined() -> None:
    """Per price and per resource."""
    only = w.pod("p", nodeSelector={labels.INSTANCE_TYPE: "one"})
    prices = [overlay("a", of_type("one"), price="7", weight=5), overlay("b", of_type("one"), price="8", weight=9)]
    assert run(w.pool(), only, prices).node.price == 8_000_000
    assert {status for status, _ in verdicts(*prices).values()} == {"True"}
    x = overlay("a", of_type("one"), capacity={"example.com/x": "1"})
    y = overlay("b", of_type("one"), capacity={"example.com/y": "1"})
    both = w.pod("p", requests={"example.com/x": "1", "example.com/y": "1"})
    done = run(w.pool(), both, x, y)
    assert done.types() == ["one"]
    assert done.claims()[0].metadata.annotations["karpenter.sh/capacity-overlay-applied"] == "true"


def test_210_one_that_is_not_valid_is_applied_nowhere() -> None:
    """Not to the part that does not overlap either, in no pool."""
    only = w.pod("p", nodeSelector={labels.INSTANCE_TYPE: "two"})
    wide, narrow = overlay("a", price="7"), overlay("b", of_type("one"), price="8")
    assert verdicts(wide, narrow)["a"] == ("False", "Conflict")
    for pool in (w.pool(), w.pool(labels={"team": "red"})):
        assert run(pool, only, wide, narrow).node.price == 1_030_000
    odd = overlay("odd", {"key": "bad key", "operator": "In", "values": ["x"]}, price="7")
    assert verdicts(odd)["odd"] == ("False", "RuntimeValidation")
    assert run(w.pool(), only, odd).node.price == 1_030_000


def test_211_a_pool_without_types_holds_up_no_other() -> None:
    """Its overlays are reckoned with as soon as it has some."""
    only = w.pod("p", nodeSelector={labels.INSTANCE_TYPE: "one"})
    ref = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "unknown"}
    lost = w.pool("lost", template={"metadata": {}, "spec": {"nodeClassRef": ref}})
    done = run(w.pool(), lost, only, overlay("o", of_type("one"), price="7"))
    assert done.node.price == 7_000_000
