"""NodeOverlays over catalogues: what they reach, which of them counts, what they make of a type, what is remembered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from kerf.model import kinds
from kerf.model.aws.instance_type import Catalogue, InstanceType, Offering
from kerf.model.cluster import Cluster
from kerf.model.overlays import Overlaid, overlaid
from kerf.model.plan import INTERNAL_ERROR
from kerf.model.settings import FeatureGates, Settings
from kerf.model.snapshot import Snapshot
from kerf_api import labels
from kerf_api.v1.nodeoverlay import MOST, NodeOverlay
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

TYPES: Catalogue = (c.machine("one", 4, 4, price=100), c.machine("two", 8, 8, price=200))
ON = Settings("test", gates=FeatureGates(node_overlay=True))


def overlay(name: str, *rows: dict[str, Any], **spec: Any) -> NodeOverlay:
    made: NodeOverlay = c.made("NodeOverlay", name, spec={"requirements": list(rows), **spec})
    return made


def of_type(*names: str) -> dict[str, Any]:
    return c.row(labels.INSTANCE_TYPE, "In", *names)


def over(*overlays: NodeOverlay, types: Catalogue = TYPES, pools: Any = None) -> Overlaid:
    return overlaid(overlays, pools or [w.pool()], {"default": types})


def types(found: Overlaid, pool: str = "default") -> dict[str, InstanceType]:
    return {t.name: t for t in found.catalogues.get((pool, "default"), ())}


def prices(found: Overlaid, name: str = "one", pool: str = "default") -> set[int]:
    return {o.price for o in types(found, pool)[name].offerings}


# --- prices -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"price": "0.5"}, 500_000),
        ({"price": "0"}, 0),
        ({"price": "0.0000004"}, 0),
        ({"price": "0.0000016"}, 2),
        ({"price": "9" * 40}, MOST),
        ({"priceAdjustment": "+.5"}, 500_100),
        ({"priceAdjustment": "-0.00002"}, 80),
        ({"priceAdjustment": "-7"}, 0),
        ({"priceAdjustment": "+10%"}, 110),
        ({"priceAdjustment": "-12.5%"}, 88),
        ({"priceAdjustment": "-100%"}, 0),
    ],
)
def test_prices_are_whole_millionths_of_a_dollar_and_never_negative(spec: dict[str, str], expected: int) -> None:
    assert prices(over(overlay("o", of_type("one"), **spec))) == {expected}


@pytest.mark.parametrize("text", ["", "x", "1e9", "+", "1" * 200, "0x1", "\u0661"])
def test_what_is_no_price_is_a_fault_and_takes_no_time(text: str) -> None:
    found = over(overlay("o", price=text))
    assert (found.catalogues, found.faults["o"].code) == ({}, "RuntimeValidation")
    assert "is not an amount of money" in found.faults["o"].text


def test_a_type_says_what_was_changed_of_it_and_the_others_are_as_they_were() -> None:
    found = types(over(overlay("p", of_type("one"), priceAdjustment="+0"), overlay("c", capacity={"example.com/x": 1})))
    assert (found["one"].price_overlay, found["one"].capacity_overlay) == (True, True)
    assert (found["two"].price_overlay, found["two"].capacity_overlay) == (False, True)
    only = over(overlay("p", of_type("one"), price="1"))
    assert only.catalogues["default", "default"][1] is TYPES[1]


def unpriced(name: str) -> InstanceType:
    made = c.machine(name, 4, 4)
    offerings = tuple(replace(o, price=0, available=False, unpriced=o.zone != "z3") for o in made.offerings)
    return replace(made, offerings=offerings)


def test_where_no_price_is_known_an_overlay_that_names_the_type_tells_it() -> None:
    """On which others build; in a zone that has nothing of it, it is still not to be had."""
    named, more = overlay("a", of_type("new"), price="2"), overlay("b", weight=5, priceAdjustment="+50%")
    found = types(over(named, more, types=(unpriced("new"),)))["new"]
    assert {o.price for o in found.offerings if o.available} == {3_000_000}
    assert {o.zone for o in found.offerings if o.available} == {"z1", "z2"}
    assert not any(o.unpriced for o in found.offerings if o.available)


@pytest.mark.parametrize(
    "one",
    [
        overlay("all", price="2"),
        overlay("narrower", of_type("new"), c.row(labels.ZONE, "In", "z1"), price="2"),
        overlay("others", c.row(labels.INSTANCE_TYPE, "NotIn", "old"), price="2"),
        overlay("more", of_type("new"), priceAdjustment="+2"),
        overlay("capacity", of_type("new"), capacity={"example.com/x": "1"}),
    ],
    ids=lambda one: one.name,
)
def test_no_other_overlay_puts_up_for_sale_what_has_no_price(one: NodeOverlay) -> None:
    assert not any(o.available for o in types(over(one, types=(unpriced("new"),)))["new"].offerings)


# --- capacity -----------------------------------------------------------------------------------------------------
def test_capacity_is_the_whole_types_when_one_offering_is_meant() -> None:
    found = types(over(overlay("o", c.row(labels.ZONE, "In", "z3"), capacity={"example.com/x": "3"})))["one"]
    assert (found.capacity["example.com/x"], found.allocatable["example.com/x"]) == (3, 3)
    assert types(over(overlay("o", c.row(labels.ZONE, "In", "z9"), capacity={"example.com/x": "3"}))) == {}


def test_a_known_amount_is_replaced_and_huge_pages_are_taken_from_memory() -> None:
    gpu = c.machine("gpu", 4, 4, gpu="nvidia.com/gpu")
    found = types(over(overlay("o", capacity={"nvidia.com/gpu": "8", "hugepages-2Mi": "1Gi"}), types=(gpu,)))["gpu"]
    assert (gpu.allocatable["nvidia.com/gpu"], found.allocatable["nvidia.com/gpu"]) == (2, 8)
    assert gpu.allocatable["memory"] - found.allocatable["memory"] == 2**30
    assert found.capacity["memory"] == gpu.capacity["memory"]
    greedy = types(over(overlay("o", capacity={"hugepages-1Gi": "64Gi"}), types=(gpu,)))["gpu"]
    assert greedy.allocatable["memory"] == 0


@pytest.mark.parametrize(("text", "expected"), [("-3", 0), ("9" * 40, MOST), ("1500m", 2), ("0", 0)])
def test_an_amount_is_whole_and_never_negative(text: str, expected: int) -> None:
    found = types(over(overlay("o", capacity={"example.com/x": text})))["one"]
    assert found.allocatable["example.com/x"] == expected


def test_each_resource_is_the_heaviest_overlays() -> None:
    light = overlay("z", capacity={"example.com/x": "1", "example.com/y": "1"})
    found = types(over(light, overlay("a", weight=3, capacity={"example.com/x": "7"})))["one"]
    assert (found.capacity["example.com/x"], found.capacity["example.com/y"]) == (7, 1)


# --- conflicts ----------------------------------------------------------------------------------------------------
def test_what_is_refused_stands_in_nobodys_way() -> None:
    """Of c, b and a the second conflicts with the first; the third only with the second."""
    found = over(
        overlay("c", of_type("one"), price="1"),
        overlay("b", of_type("one", "two"), price="2"),
        overlay("a", of_type("two"), price="3"),
    )
    assert set(found.faults) == {"b"}
    assert (prices(found, "one"), prices(found, "two")) == ({1_000_000}, {3_000_000})
    assert found.faults["b"].text == (
        "NodeOverlay c has the same weight and precedence, and sets the price of one in z1 (spot) too; this "
        "NodeOverlay is not applied: give one of the two another weight"
    )


def test_two_of_one_weight_conflict_although_a_heavier_one_counts() -> None:
    same = [overlay(name, of_type("one"), price="2", weight=3) for name in "ab"]
    found = over(*same, overlay("heavy", of_type("one"), price="9", weight=4))
    assert (set(found.faults), prices(found)) == ({"a"}, {9_000_000})


def test_what_does_not_overlap_does_not_conflict() -> None:
    zones = [overlay(zone, c.row(labels.ZONE, "In", zone), price="2") for zone in w.ZONES]
    pools = [w.pool("red", labels={"team": "red"}), w.pool("blue", labels={"team": "blue"})]
    teams = [overlay(team, c.row("team", "In", team), price="2") for team in ("red", "blue")]
    assert over(*zones).faults == {}
    assert over(*teams, pools=pools).faults == {}
    assert over(overlay("price", price="2"), overlay("x", capacity={"example.com/x": "1"})).faults == {}


def test_one_resource_of_a_type_conflicts_whatever_the_offerings() -> None:
    found = over(*(overlay(z, c.row(labels.ZONE, "In", z), capacity={"example.com/x": "1"}) for z in ("z1", "z2")))
    assert found.faults["z1"].text.startswith(
        "NodeOverlay z2 has the same weight and precedence, and sets example.com/x"
    )


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"requirements": [c.row("bad key", "In", "x")]}, "is no label name"),
        ({"requirements": [c.row(labels.NODECLASS, "In", "x")]}, "is reserved"),
        ({"requirements": [c.row(labels.CAPACITY_TYPE, "In", "free")]}, "is no value of karpenter.sh/capacity-type"),
        ({"requirements": [c.row("size", "Gt", "big")]}, "needs exactly one integer"),
        ({"requirements": [c.row("size", "Around", "big")]}, "is not an operator"),
        ({"capacity": {"vpc.amazonaws.com/efa": "1"}}, "cannot be overlaid"),
        ({"capacity": {"example.com/x": "many"}}, "many"),
    ],
)
def test_one_that_makes_no_sense_is_applied_nowhere(spec: dict[str, Any], words: str) -> None:
    found = over(c.made("NodeOverlay", "odd", spec={"price": "1", **spec}))
    assert (found.catalogues, found.faults["odd"].code) == ({}, "RuntimeValidation")
    assert words in found.faults["odd"].text


def test_one_that_is_going_or_cannot_be_read_is_applied_nowhere() -> None:
    one = overlay("o", price="1")
    going = msgspec.structs.replace(one.metadata, deletion_timestamp=w.NOW)
    assert over(msgspec.structs.replace(one, metadata=going)) == Overlaid()
    torn = msgspec.structs.replace(one.metadata, unreadable="Expected `str`, got `int`")
    assert over(msgspec.structs.replace(one, metadata=torn)).faults["o"].code == "RuntimeValidation"


# --- reach --------------------------------------------------------------------------------------------------------
def test_pools_that_look_the_same_to_all_overlays_share_a_catalogue() -> None:
    pools = [
        w.pool(name, labels={"team": team, "own": name}) for name, team in (("a", "red"), ("b", "red"), ("c", "x"))
    ]
    found = over(overlay("o", c.row("team", "In", "red"), price="1"), pools=pools)
    assert found.catalogues["a", "default"] is found.catalogues["b", "default"]
    assert ("c", "default") not in found.catalogues


@pytest.mark.parametrize(
    ("row", "reached"),
    [
        (c.row(labels.NODEPOOL, "In", "default"), True),
        (c.row(labels.NODEPOOL, "NotIn", "default"), False),
        (c.row("team", "Exists"), False),
        (c.row("team", "DoesNotExist"), True),
        (c.row("team", "NotIn", "red"), True),
        (c.row(w.SIZE, "Gt", "3"), True),
        (c.row(w.SIZE, "Lt", "4"), False),
        (c.row(labels.ZONE_ID, "In", "id-1"), False),
        (c.row("failure-domain.beta.kubernetes.io/zone", "In", "z1"), True),
        (c.row(c.SPECIAL, "DoesNotExist"), True),
        (c.row(c.SPECIAL, "Exists"), False),
    ],
)
def test_pool_and_type_must_meet_all_requirements(row: dict[str, Any], reached: bool) -> None:
    assert bool(over(overlay("o", row, price="1")).catalogues) is reached


@pytest.mark.parametrize(
    "rows",
    [
        (c.row("team", "In", "red"), c.row("team", "DoesNotExist")),
        (c.row("size", "Gt", "5"), c.row("size", "Lt", "3")),
        (c.row("team", "In", "red"), c.row("team", "NotIn", "red")),
        (c.row(labels.ZONE, "In", "z1"), c.row("failure-domain.beta.kubernetes.io/zone", "In", "z2")),
    ],
)
def test_what_contradicts_itself_is_about_nothing(rows: tuple[dict[str, Any], ...]) -> None:
    pools = [w.pool(), w.pool("red", labels={"team": "red"})]
    assert over(overlay("o", *rows, price="1"), pools=pools) == Overlaid()


def test_a_label_of_the_pool_narrows_what_the_type_says() -> None:
    only = overlay("o", c.row(labels.ARCH, "In", "arm64"), price="1")
    both = replace(TYPES[0], requirements=TYPES[0].requirements.without(labels.ARCH))
    assert over(only, types=(both,)).catalogues == {}
    found = over(only, types=(both,), pools=[w.pool(labels={labels.ARCH: "arm64"}), w.pool("plain")])
    assert set(found.catalogues) == {("default", "default")}


def test_types_that_make_no_sense_are_left_as_they_are() -> None:
    nonsense = (replace(TYPES[0], offerings=(Offering("one", "z1", "spot", None),)),)  # type: ignore[arg-type]
    pools = [w.pool(), w.pool("odd", template=_of_class("odd"))]
    found = overlaid([overlay("o", priceAdjustment="+1")], pools, {"default": TYPES, "odd": nonsense})
    assert set(found.catalogues) == {("default", "default")}
    assert found.faults["o"].code == INTERNAL_ERROR
    assert found.faults["o"].text.startswith("the overlay changes no instance type of EC2NodeClass odd: reading them f")


def test_an_overlay_whose_reach_cannot_be_read_has_a_fault_and_the_others_are_applied() -> None:
    nonsense = (replace(TYPES[0], requirements=None),)  # type: ignore[arg-type]
    pools = [w.pool(), w.pool("odd", template=_of_class("odd"))]
    overlays = [overlay("o", of_type("one"), price="1"), overlay("all", capacity={"example.com/x": 1})]
    found = overlaid(overlays, pools, {"default": TYPES, "odd": nonsense})
    assert prices(found) == {1_000_000}
    assert set(found.faults) == {"o"}
    assert found.faults["o"].code == INTERNAL_ERROR


def _of_class(name: str) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"nodeClassRef": {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": name}}}


# --- what is remembered -------------------------------------------------------------------------------------------
class Known:
    """Indexes, and the overlaid catalogues that their snapshots have."""

    def __init__(self, *objects: Any, settings: Settings = ON) -> None:
        self.cluster, self.settings = Cluster(), settings
        self.apply(*objects)

    def apply(self, *objects: Any) -> None:
        for value in objects:
            self.cluster.apply(kinds.BY_NAME[kinds.ref(value).kind], value)

    def look(self, catalogue: Catalogue = TYPES) -> Snapshot:
        return self.cluster.snapshot(now=w.NOW, settings=self.settings, catalogues={"default": catalogue})


def test_nothing_is_worked_out_while_nothing_changes() -> None:
    known = Known(w.pool(), overlay("o", price="1"))
    first = known.look()
    assert first.overlaid
    assert known.look().overlaid is first.overlaid
    pool = w.pool()
    known.apply(msgspec.structs.replace(pool, status=msgspec.structs.replace(pool.status, nodes=3)))
    told = overlay("o", price="1")
    known.apply(msgspec.structs.replace(told, status=msgspec.structs.replace(told.status, conditions=())))
    assert known.look().overlaid is first.overlaid


def test_what_changes_is_seen_at_once() -> None:
    known = Known(w.pool(), overlay("o", c.row("team", "In", "red"), price="1"))
    assert known.look().overlaid == {}
    known.apply(w.pool(labels={"team": "red"}))
    assert set(known.look().overlaid) == {("default", "default")}
    other = (c.machine("one", 4, 4, price=7),)
    assert [t.name for t in known.look(other).overlaid["default", "default"]] == ["one"]
    known.cluster.remove(kinds.NODE_OVERLAY, "", "o")
    assert known.look(other).overlaid == {}
    assert known.look(other).types_for("default", "default") is other


def test_with_the_gate_closed_overlays_change_nothing() -> None:
    known = Known(w.pool(), overlay("o", price="1"), overlay("odd", price="x"), settings=Settings("test"))
    found = known.look()
    assert (found.overlaid, found.overlay_faults) == ({}, {})
    assert found.types_for("default", "default") is TYPES


def test_a_claim_of_another_class_than_its_pools_has_that_classes_types() -> None:
    found = Known(w.pool(), overlay("o", price="1")).look()
    assert found.types_for("default", "default") is not TYPES
    assert found.types_for("", "default") is TYPES
    assert found.types_for("default", "gone") == ()
