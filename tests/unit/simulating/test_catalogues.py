"""Runs of one process share the instance types of equal EC2NodeClasses, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kerf.ec2.instance_types import catalogue
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
    others = [replace(facts(), generation=number) for number in range(1000, 1100)]
    for seen in others:
        shared(node_class(), seen, region(), SETTINGS)
        assert shared(node_class(), facts(), region(), SETTINGS) is first
    for seen in others:
        shared(node_class(), seen, region(), SETTINGS)
    assert shared(node_class(), facts(), region(), SETTINGS) is not first
