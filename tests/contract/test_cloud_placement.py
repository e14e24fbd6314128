"""What every adapter of the Cloud port promises of placement groups."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from kerf.ec2 import errors
from kerf.model.aws.cloud import ClassFacts, FleetRequest, PlacementGroup
from kerf.ports import Throttled
from kerf_api.v1.ec2nodeclass import PlacementGroupSelector
from tests.cluster.moto_aws import MotoAws

from .cloud_accounts import Account, MotoAccount
from .launches import ZONES, listed, node_class, request

RACKS = PlacementGroup("pg-000000000000ac501", "racks", "partition", 3)


def selected(account: Account, selector: PlacementGroupSelector | None) -> ClassFacts:
    plain = node_class(account)
    wanted = msgspec.structs.replace(plain.spec, placement_group_selector=selector)
    return account.cloud.resolve(msgspec.structs.replace(plain, spec=wanted), account.cloud.cluster())


def problems(facts: ClassFacts) -> Mapping[str, str]:
    return {condition: reason for condition, (reason, _) in facts.problems.items()}


def placed(account: Account, group: str, members: int, *, id_: str, partition: int = 0) -> FleetRequest:
    """So many machines in one zone, in this placement group."""
    plain = request(account, group, members=tuple(f"claim-{n}" for n in range(members)), types=("m5.large",))
    (template,) = plain.templates
    name = f"{template.name}-{id_}-{partition}"
    into = msgspec.structs.replace(template, name=name, placement_group=id_, partition=partition)
    overrides = tuple(msgspec.structs.replace(o, template=name) for o in plain.overrides if o.zone == ZONES[0])
    return msgspec.structs.replace(plain, templates=(into,), overrides=overrides)


def test_198_a_placement_group_is_selected_by_id_or_name(account: Account) -> None:
    account.group(RACKS.id, RACKS.name, RACKS.strategy, RACKS.partitions)
    account.group("pg-000000000000ea102", "near", "cluster")
    for selector in (PlacementGroupSelector(id=RACKS.id), PlacementGroupSelector(name=RACKS.name)):
        facts = selected(account, selector)
        assert (facts.placement_group, "PlacementGroupReady" in facts.problems) == (RACKS, False)
    near = selected(account, PlacementGroupSelector(name="near")).placement_group
    assert near == PlacementGroup("pg-000000000000ea102", "near", "cluster")


def test_198_one_that_is_not_there_is_a_problem_of_the_class_and_none_is_none(account: Account) -> None:
    for selector in (PlacementGroupSelector(id="pg-00000000000000e03"), PlacementGroupSelector(name="nowhere")):
        facts = selected(account, selector)
        assert facts.placement_group is None
        assert problems(facts)["PlacementGroupReady"] == "PlacementGroupNotFound"
    facts = selected(account, None)
    assert (facts.placement_group, "PlacementGroupReady" in facts.problems) == (None, False)


@pytest.mark.only_real("placement groups that are on their way in or out (in the sandbox they are there or not)")
def test_198_one_that_is_not_available_is_none(aws: MotoAws) -> None:
    real = MotoAccount(aws)
    aws.group("pg-0000000000000de04", "gone", "cluster", state="deleting")
    facts = selected(real, PlacementGroupSelector(id="pg-0000000000000de04"))
    assert problems(facts)["PlacementGroupReady"] == "PlacementGroupNotFound"


@pytest.mark.only_real("calls that fail (in the sandbox a test of the loop makes them fail)")
def test_198_what_cannot_be_asked_is_no_answer(aws: MotoAws) -> None:
    real = MotoAccount(aws)
    aws.fail("DescribePlacementGroups", "RequestLimitExceeded", times=2)
    with pytest.raises(Throttled):
        selected(real, PlacementGroupSelector(id=RACKS.id))


def test_machines_say_where_they_are_as_soon_as_they_are_listed(account: Account, group: str) -> None:
    """The partition that was asked for at once; one that EC2 has chosen when it is listed."""
    account.group(RACKS.id, RACKS.name, RACKS.strategy, RACKS.partitions)
    (asked,) = account.cloud.create_fleet(placed(account, group, 1, id_=RACKS.id, partition=2)).instances
    assert (asked.placement_group, asked.partition) == (RACKS.id, 2)
    (free,) = account.cloud.create_fleet(placed(account, f"{group}-free", 1, id_=RACKS.id)).instances
    assert free.placement_group == RACKS.id
    account.eventually(lambda: all(listed(account, one.id) is not None for one in (asked, free)))
    one, other = listed(account, asked.id), listed(account, free.id)
    assert one is not None
    assert other is not None
    assert (one.placement_group, one.partition) == (RACKS.id, 2)
    assert (other.placement_group, other.partition in (1, 3)) == (RACKS.id, True)


def test_053_a_spread_group_that_is_full_in_a_zone_says_so(account: Account, group: str) -> None:
    id_ = "pg-00000000000000d05"
    account.group(id_, "wide", "spread")
    wanted = placed(account, group, 8, id_=id_)
    result = account.cloud.create_fleet(wanted)
    assert len(result.instances) == 7
    (error,) = result.errors
    assert (error.capacity, error.zone) == (True, ZONES[0])
    assert list(errors.closed(wanted, error)) == [("m5.large", ZONES[0], f"on-demand in {id_}")]
