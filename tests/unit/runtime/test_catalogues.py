"""What AWS made of each class, and the types that follow: of one class that makes no sense nothing is known."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from api.v1.ec2nodeclass import EC2NodeClass
from api.v1.meta import decode
from reconciler.model.cloud import ClassFacts, Region
from reconciler.model.instance_type import Catalogue
from reconciler.model.settings import Settings
from reconciler.runtime.catalogues import RESOLVE_EVERY, Catalogues
from tests.unit.lifecycle.world import NOW, large

REGION = Region(name="us-west-2", types={}, zones_by_type={}, on_demand={}, spot={})


def node_class(name: str, **meta: Any) -> EC2NodeClass:
    return decode(EC2NodeClass, {"metadata": {"name": name, "uid": f"uid-{name}", "generation": 1, **meta}})


def catalogues(*names: str, on_error: Callable[[str, Exception], None] = lambda name, error: None) -> Catalogues:
    made = Catalogues(Settings(cluster_name="c"), _build, on_error)
    made.region = REGION
    for name in names:
        made.resolved(name, f"uid-{name}", ClassFacts(1), NOW)
    return made


def _build(node_class: EC2NodeClass, facts: ClassFacts, region: Region, settings: Settings) -> Catalogue:
    if node_class.name == "odd" and not facts.instance_profile:
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
    told = list[tuple[str, str]]()
    made = catalogues("odd", on_error=lambda name, error: told.append((name, type(error).__name__)))
    for _ in range(3):
        assert made.catalogues([node_class("odd")]) == {}
    assert told == [("odd", "KeyError")]
    made.catalogues([node_class("odd", generation=2)])
    assert told == 2 * [("odd", "KeyError")]


def test_it_is_forgiven_when_its_facts_make_sense_again() -> None:
    made, classes = catalogues("odd"), [node_class("odd")]
    made.catalogues(classes)
    made.resolved("odd", "uid-odd", ClassFacts(1, instance_profile="p"), NOW)
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
