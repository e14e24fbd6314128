"""What a NodeOverlay says of itself, and what a claim gets that is launched under one."""

from __future__ import annotations

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.plan import LaunchInstances
from kerf.model.settings import FeatureGates
from kerf_api import labels
from kerf_api.resources import Resources
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeoverlay import NodeOverlay
from tests.unit.lifecycle.world import NOW, World, large, node_claim, node_class, node_pool, prepared, text

EXTRA = "example.com/extra"


def overlay(name: str, *rows: dict[str, Any], **spec: Any) -> NodeOverlay:
    meta = {"name": name, "uid": f"uid-overlay-{name}", "generation": 1, "creationTimestamp": text(NOW)}
    return decode(NodeOverlay, {"metadata": meta, "spec": {"requirements": list(rows), **spec}})


def world(*objects: Any, gate: bool = True, classes: tuple[Any, ...] = ()) -> World:
    made = World(*(classes or (node_class(), node_pool())))
    made.settings = changed(made.settings, gates=FeatureGates(node_overlay=gate))
    for value in objects:
        made.put(value)
    made.settle()
    return made


def conditions(known: World, name: str) -> dict[str, tuple[str, str]]:
    found: NodeOverlay = known.get(kinds.NODE_OVERLAY, name)
    return {c.type: (c.status, c.reason) for c in found.status.conditions}


def message(known: World, name: str) -> str:
    found: NodeOverlay = known.get(kinds.NODE_OVERLAY, name)
    return next(c.message for c in found.status.conditions if c.type == "ValidationSucceeded")


# --- conditions ---------------------------------------------------------------------------------------------------
def test_one_that_is_applied_is_ready() -> None:
    known = world(overlay("o", price="1"))
    assert conditions(known, "o") == {
        "ValidationSucceeded": ("True", "ValidationSucceeded"),
        "Ready": ("True", "Ready"),
    }
    assert not known.decide().actions


def test_one_that_is_refused_says_why_and_is_not_ready() -> None:
    odd = overlay("odd", {"key": labels.HOSTNAME, "operator": "Exists"}, price="1")
    known = world(overlay("a", price="1"), overlay("b", price="1"), odd)
    assert conditions(known, "a") == {
        "ValidationSucceeded": ("False", "Conflict"),
        "Ready": ("False", "UnhealthyDependents"),
    }
    assert message(known, "a").startswith(
        "NodeOverlay b has the same weight and precedence, and sets the price of m5.large"
    )
    assert conditions(known, "odd")["ValidationSucceeded"] == ("False", "RuntimeValidation")
    assert "KERF-NO-102" in message(known, "odd")
    assert conditions(known, "b")["Ready"] == ("True", "Ready")
    refused = {refusal.subject: refusal.reason.code for refusal in known.decide().refusals}
    assert refused == {"nodeoverlay/a": "Conflict", "nodeoverlay/odd": "RuntimeValidation"}


def test_when_the_other_one_goes_or_changes_it_is_applied() -> None:
    known = world(overlay("a", price="1"), overlay("b", price="1"))
    other: NodeOverlay = known.get(kinds.NODE_OVERLAY, "b")
    meta = replace(other.metadata, generation=2)
    known.put(replace(other, metadata=meta, spec=replace(other.spec, weight=7)))
    known.now += timedelta(minutes=1)
    known.settle()
    assert conditions(known, "a")["Ready"] == ("True", "Ready")
    found: NodeOverlay = known.get(kinds.NODE_OVERLAY, "b")
    assert {c.observed_generation for c in found.status.conditions} == {2}
    assert {c.last_transition_time for c in found.status.conditions} == {NOW}


def test_until_types_are_known_what_was_found_before_stays() -> None:
    """As after a restart; a fault that needs no types is told all the same."""
    known = world(overlay("a", price="1"), overlay("b", price="1"))
    known.facts["catalogues"] = {}
    known.put(overlay("new", price="1"))
    known.put(overlay("odd", {"key": "bad key", "operator": "Exists"}))
    known.settle()
    assert conditions(known, "a")["ValidationSucceeded"] == ("False", "Conflict")
    assert conditions(known, "b")["ValidationSucceeded"] == ("True", "ValidationSucceeded")
    assert conditions(known, "new")["ValidationSucceeded"] == ("Unknown", "AwaitingReconciliation")
    assert conditions(known, "odd")["ValidationSucceeded"] == ("False", "RuntimeValidation")


def test_without_any_pool_there_is_nothing_to_wait_for() -> None:
    known = world(overlay("o", price="1"), classes=(node_class(),))
    assert conditions(known, "o")["Ready"] == ("True", "Ready")


def test_with_the_gate_closed_nothing_is_said() -> None:
    assert conditions(world(overlay("o", price="1"), gate=False), "o") == {}


def test_one_that_cannot_be_read_is_left_alone_and_told_of() -> None:
    torn = overlay("o", price="1")
    known = world(replace(torn, metadata=replace(torn.metadata, unreadable="Expected `str`, got `int`")))
    assert conditions(known, "o") == {}
    assert [(r.subject, r.reason.code) for r in known.decide().refusals] == [("nodeoverlay/o", "Malformed")]


# --- launches -----------------------------------------------------------------------------------------------------
def launching(*overlays: NodeOverlay, **claim: Any) -> World:
    known = prepared()
    known.settings = changed(known.settings, gates=FeatureGates(node_overlay=True))
    for value in (*overlays, node_claim("a", **claim)):
        known.put(value)
    known.settle()
    return known


def test_a_launch_goes_by_the_price_of_the_overlay() -> None:
    known = launching(overlay("o", price="7"), meta={"annotations": {labels.PRICE_OVERLAY: "true"}})
    (launch,) = known.done(LaunchInstances)
    assert [o.price for o in launch.request.overrides] == [7_000_000]
    assert launch.request.prioritized


def test_without_an_overlay_ec2_goes_by_its_own() -> None:
    (launch,) = launching().done(LaunchInstances)
    assert [o.price for o in launch.request.overrides] == [96_000]
    assert not launch.request.prioritized


def test_a_claim_that_wants_what_only_an_overlay_knows_of_is_launched_and_says_what_it_has() -> None:
    known = launching(overlay("o", capacity={EXTRA: "3"}), resources={"requests": {"cpu": "1", EXTRA: "2"}})
    assert known.condition("Launched") == ("True", "Launched")
    status = known.claim().status
    assert (status.capacity[EXTRA], status.allocatable[EXTRA]) == ("3", "3")


def test_a_claim_without_a_pool_has_no_overlay() -> None:
    known = launching(overlay("o", price="7"), meta={"labels": {}})
    (launch,) = known.done(LaunchInstances)
    assert [o.price for o in launch.request.overrides] == [96_000]


def test_a_claim_says_what_a_machine_of_its_offering_has() -> None:
    special = tuple(changed(o, capacity=Resources({EXTRA: 2})) for o in large().offerings)
    known = prepared(node_claim("a", resources={"requests": {"cpu": "1", EXTRA: "2"}}))
    known.facts["catalogues"] = {"default": (changed(large(), offerings=special),)}
    known.settle()
    assert known.condition("Launched") == ("True", "Launched")
    assert known.claim().status.allocatable[EXTRA] == "2"
