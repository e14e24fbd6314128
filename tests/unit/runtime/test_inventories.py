"""When launch templates and instance profiles were used last, as far as anybody remembers."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from kerf.model.aws.inventory import PROFILE, TEMPLATE, Resource
from kerf.runtime.state.inventories import Inventories
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from tests.unit.lifecycle.world import NOW, node_class

HOUR = timedelta(hours=1)


def resource(name: str, kind: str = TEMPLATE, age: timedelta = 24 * HOUR) -> Resource:
    return Resource(kind, f"id-{name}", name, NOW - age)


def of(profile: str) -> EC2NodeClass:
    made = node_class()
    return replace(made, status=replace(made.status, instance_profile=profile))


def test_what_was_never_listed_is_not_there() -> None:
    inventories = Inventories()
    assert inventories.told() == {}
    inventories.listed(TEMPLATE, [], NOW)
    assert list(inventories.told()) == [TEMPLATE]


def test_what_is_seen_for_the_first_time_counts_as_used_then_by_who_has_just_begun() -> None:
    inventories = Inventories()
    inventories.listed(TEMPLATE, [resource("a")], NOW)
    assert inventories.told()[TEMPLATE].used == {"a": NOW}
    inventories.listed(TEMPLATE, [resource("a"), resource("b", age=-HOUR)], NOW + 2 * HOUR)
    assert inventories.told()[TEMPLATE].used == {"a": NOW, "b": NOW + HOUR}


def test_a_use_counts_until_it_is_forgotten_with_what_is_gone() -> None:
    inventories = Inventories()
    inventories.listed(TEMPLATE, [resource("a"), resource("b")], NOW)
    inventories.use(TEMPLATE, ["a", "", "young"], NOW + HOUR)
    told = inventories.told()[TEMPLATE]
    assert [one.name for one in told.resources] == ["b", "a"]
    assert told.used == {"a": NOW + HOUR, "b": NOW}
    inventories.listed(TEMPLATE, [resource("b")], NOW + HOUR)
    inventories.listed(TEMPLATE, [resource("a"), resource("b"), resource("young")], NOW + 2 * HOUR)
    assert inventories.told()[TEMPLATE].used == {"a": NOW + HOUR, "b": NOW, "young": NOW + HOUR}
    inventories.listed(TEMPLATE, [], NOW + 2 * HOUR)
    inventories.listed(TEMPLATE, [resource("a")], NOW + 3 * HOUR)
    assert inventories.told()[TEMPLATE].used == {"a": NOW}


def test_what_was_deleted_is_gone_and_counted_until_all_is_listed_again() -> None:
    inventories = Inventories()
    inventories.listed(PROFILE, [resource("a", PROFILE), resource("b", PROFILE)], NOW)
    for _ in range(2):
        inventories.deleted(resource("a", PROFILE))
    told = inventories.told()[PROFILE]
    assert ([one.name for one in told.resources], told.deleted) == (["b"], 1)
    inventories.listed(PROFILE, [resource("b", PROFILE)], NOW)
    assert inventories.told()[PROFILE].deleted == 0


def test_the_profile_that_a_class_names_no_more_was_needed_until_then() -> None:
    inventories = Inventories()
    inventories.listed(PROFILE, [resource(name, PROFILE) for name in "abc"], NOW)
    inventories.noticed(of("a"), of("b"), NOW + HOUR)
    inventories.noticed(of("b"), of("b"), NOW + 2 * HOUR)
    assert inventories.told()[PROFILE].used == {"a": NOW + HOUR, "b": NOW + HOUR, "c": NOW}
    inventories.noticed(of("b"), None, NOW + 3 * HOUR)
    assert inventories.told()[PROFILE].used["b"] == NOW + 3 * HOUR
