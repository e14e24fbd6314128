"""What AWS made of each class, and the types that follow: of one class that makes no sense nothing is known."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from kerf.model.aws.cloud import ClassFacts, Region, Subnet
from kerf.model.aws.instance_type import Catalogue
from kerf.model.settings import Settings
from kerf.runtime.state.catalogues import RESOLVE_EVERY, Catalogues
from kerf.runtime.state.notices import Notices, TypesFailed
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode
from tests.unit.lifecycle.world import NOW, large

REGION = Region(name="us-west-2", types={}, zones_by_type={}, on_demand={}, spot={})


def node_class(name: str, **meta: Any) -> EC2NodeClass:
    return decode(EC2NodeClass, {"metadata": {"name": name, "uid": f"uid-{name}", "generation": 1, **meta}})


def catalogues(*names: str, notices: Notices | None = None) -> Catalogues:
    made = Catalogues(Settings(cluster_name="c"), _build, notices)
    made.region = REGION
    for name in names:
        made.resolved(name, f"uid-{name}", ClassFacts(1), NOW)
    return made


def _build(node_class: EC2NodeClass, facts: ClassFacts, region: Region, settings: Settings) -> Catalogue:
    if node_class.name == "odd" and not facts.subnets:
        raise KeyError("no such family")
    return (large(),)


def test_types_that_cannot_be_worked_out_are_unknown_not_none_at_all() -> None:
    """An instance without a type would be labelled for good; one of a type that is not known yet is waited for."""
    made, classes = catalogues("odd", "sound"), [node_class("odd"), node_class("sound")]
    assert {name: len(types) for name, types in made.catalogues(classes).items()} == {"sound": 1}
    reason, words = made.facts["odd"].problems["ValidationSucceeded"]
    assert reason == "InstanceTypesUnknown"
    assert "no such family" in words
    assert not made.facts["sound"].problems


def test_what_cannot_be_worked_out_is_told_and_tried_again_only_when_something_has_changed() -> None:
    made = catalogues("odd", notices=(notices := Notices()))
    for _ in range(3):
        assert made.catalogues([node_class("odd")]) == {}
    [failed] = notices.drain()
    assert isinstance(failed, TypesFailed)
    assert (failed.class_name, type(failed.error)) == ("odd", KeyError)
    made.catalogues([node_class("odd", generation=2)])
    assert len(notices.drain()) == 1


def _subnets(free: int) -> tuple[Subnet, ...]:
    return tuple(Subnet(f"subnet-{zone}", zone, f"id-{zone}", free_addresses=free) for zone in ("a", "b"))


def test_types_are_not_computed_again_for_other_numbers_of_free_addresses_and_a_profile() -> None:
    """A launch takes addresses; an equal catalogue that is another object would make the scheduler read it again."""
    made, classes = catalogues("sound"), [node_class("sound")]
    made.resolved("sound", "uid-sound", ClassFacts(1, _subnets(250)), NOW)
    before = made.catalogues(classes)["sound"]
    made.resolved("sound", "uid-sound", ClassFacts(1, _subnets(249)), NOW)
    assert made.catalogues(classes)["sound"] is before
    assert made.facts["sound"].subnets == _subnets(249)
    made.resolved("sound", "uid-sound", ClassFacts(1, _subnets(249), instance_profile="p"), NOW)
    assert made.catalogues(classes)["sound"] is before
    made.full(["subnet-a"], NOW + timedelta(minutes=3))
    assert made.catalogues(classes)["sound"] is not before


def test_it_is_forgiven_when_its_facts_make_sense_again() -> None:
    made, classes = catalogues("odd"), [node_class("odd")]
    made.catalogues(classes)
    made.resolved("odd", "uid-odd", ClassFacts(1, _subnets(1)), NOW)
    assert len(made.catalogues(classes)["odd"]) == 1
    assert not made.facts["odd"].problems


def test_what_a_class_that_cannot_be_read_selects_is_never_asked() -> None:
    made, sound = catalogues("sound"), node_class("sound")
    due = made.due_at(sound, NOW)
    assert due is not None
    never = made.due_at(node_class("other", unreadable="$.spec"), NOW)
    assert never is not None
    assert never.year > 9000


def test_a_class_is_resolved_again_when_the_clock_was_set_back() -> None:
    made, sound = catalogues("sound"), node_class("sound")
    assert made.due_at(sound, NOW) == NOW + RESOLVE_EVERY
    assert made.due_at(sound, NOW - timedelta(hours=1)) is None


def settled(**told: Any) -> EC2NodeClass:
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "observedGeneration": 1, **told}
    known = {"metadata": {"name": "sound", "uid": "uid-sound", "generation": 1}, "status": {"conditions": [ready]}}
    return decode(EC2NodeClass, known)


def test_while_nothing_happens_a_class_that_is_ready_has_time() -> None:
    made = catalogues("sound")
    assert made.due_at(settled(), NOW) == NOW + RESOLVE_EVERY
    assert made.due_at(settled(), NOW, idle=True) == NOW + Settings(cluster_name="c").refresh


@pytest.mark.parametrize(
    "told", [{"status": "False"}, {"status": "Unknown"}, {"observedGeneration": 0}, {"type": "Other"}]
)
def test_one_that_is_not_ready_as_it_is_now_has_not(told: Mapping[str, Any]) -> None:
    assert catalogues("sound").due_at(settled(**told), NOW, idle=True) == NOW + RESOLVE_EVERY


@pytest.mark.parametrize(
    "facts",
    [
        ClassFacts(1, problems={"SubnetsReady": ("SubnetsNotFound", "none")}),
        ClassFacts(1, subnets=(Subnet("a", "us-west-2a", "", 0), Subnet("b", "us-west-2b", "", 9))),
    ],
)
def test_one_that_lacks_something_has_not_either(facts: ClassFacts) -> None:
    made = catalogues("sound")
    made.resolved("sound", "uid-sound", facts, NOW)
    assert made.due_at(settled(), NOW, idle=True) == NOW + RESOLVE_EVERY


def test_one_has_not_while_a_subnet_of_it_is_full() -> None:
    made, until = catalogues("sound"), NOW + timedelta(minutes=3)
    made.resolved("sound", "uid-sound", ClassFacts(1, subnets=(Subnet("a", "us-west-2a", "", 9),)), NOW)
    made.full(["a"], until)
    assert made.due_at(settled(), NOW, idle=True) == NOW + RESOLVE_EVERY
    made.forget_full(until)
    assert made.due_at(settled(), NOW, idle=True) == NOW + Settings(cluster_name="c").refresh
