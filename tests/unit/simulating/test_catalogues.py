"""Runs of one process share the instance types of equal EC2NodeClasses, and no others."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from kerf.ec2.instance_types import catalogue
from kerf.ec2.instance_types.built import of_types
from kerf.ec2.instance_types.formulas import Unresolvable
from kerf.model.aws.cloud import ClassFacts, Region
from kerf.model.aws.instance_type import Catalogue
from kerf.model.settings import Settings
from kerf.sandbox.aws import catalogue as sold
from kerf.simulating.catalogues import SharedCatalogues
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from tests.unit.ec2.ec2_facts import SETTINGS, ZONES, facts, node_class


def region() -> Region:
    """A region of its own at each call, as each run has one."""
    return sold.region(ZONES, ["m5.large", "c5.large"])


def test_equal_inputs_of_two_runs_have_one_catalogue() -> None:
    shared = SharedCatalogues(catalogue.build)
    first = shared(node_class(), facts(), region(), SETTINGS)
    assert shared(node_class(), facts(), region(), SETTINGS) is first
    assert first == catalogue.build(node_class(), facts(), region(), SETTINGS)


def test_facts_that_types_do_not_depend_on_make_no_other_catalogue() -> None:
    """The profile of each run has a name of its own, and each launch takes addresses."""
    shared = SharedCatalogues(catalogue.build)
    first = shared(node_class(), facts(), region(), SETTINGS)
    later = replace(
        facts(),
        generation=7,
        subnets=tuple(replace(one, free_addresses=one.free_addresses - 1) for one in reversed(facts().subnets)),
        security_groups=(),
        instance_profile="another",
        problems={"SubnetsReady": ("NotFound", "")},
        images_complete=False,
    )
    assert shared(node_class(), later, region(), SETTINGS) is first
    assert first == catalogue.build(node_class(), later, region(), SETTINGS)


def test_types_depend_on_no_other_facts() -> None:
    """A field that is new belongs to one of both lists."""
    kept, left_out = of_types(facts()), {"generation", "security_groups", "instance_profile", "problems"}
    left_out |= {"images_complete", "profile_attempt", "subnets"}
    assert {one.name for one in fields(kept)} - left_out == {
        "images",
        "reservations",
        "full_subnets",
        "placement_group",
        "shifted",
        "memory_bytes",
    }
    held = replace(
        facts(), memory_bytes={("m5.large", facts().images[0].id): 7 * 2**30}, shifted=frozenset({"use1-az1"})
    )
    for seen in (facts(), held):
        built = catalogue.build(node_class(), seen, region(), SETTINGS)
        assert catalogue.build(node_class(), of_types(seen), region(), SETTINGS) == built


def test_each_input_has_its_own_catalogue() -> None:
    shared = SharedCatalogues(catalogue.build)
    first = shared(node_class(), facts(), region(), SETTINGS)
    full = facts()
    full = replace(full, full_subnets=frozenset(one.id for one in full.subnets))
    expensive = replace(region(), on_demand={"m5.large": 1, "c5.large": 2})
    for node, seen, here, settings in (
        (node_class(instanceStorePolicy="RAID0"), facts(), region(), SETTINGS),
        (node_class(), full, region(), SETTINGS),
        (node_class(), facts(), expensive, SETTINGS),
        (node_class(), facts(), region(), replace(SETTINGS, vm_memory_overhead_percent=0.2)),
    ):
        found = shared(node, seen, here, settings)
        assert found is not first
        assert found == catalogue.build(node, seen, here, settings)


def test_a_failure_is_not_kept() -> None:
    failures = [Unresolvable("Broken", "no value")]

    def build(node: EC2NodeClass, seen: ClassFacts, here: Region, settings: Settings) -> Catalogue:
        if failures:
            raise failures.pop()
        return catalogue.build(node, seen, here, settings)

    shared = SharedCatalogues(build)
    with pytest.raises(Unresolvable):
        shared(node_class(), facts(), region(), SETTINGS)
    assert len(shared(node_class(), facts(), region(), SETTINGS)) == 2


def test_the_least_recently_used_catalogue_is_dropped() -> None:
    shared = SharedCatalogues(catalogue.build)
    first = shared(node_class(), facts(), region(), SETTINGS)
    others = [replace(facts(), shifted=frozenset({f"zone-{number}"})) for number in range(100)]
    for seen in others:
        shared(node_class(), seen, region(), SETTINGS)
        assert shared(node_class(), facts(), region(), SETTINGS) is first
    for seen in others:
        shared(node_class(), seen, region(), SETTINGS)
    assert shared(node_class(), facts(), region(), SETTINGS) is not first
