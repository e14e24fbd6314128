"""What a used-up quota says of other types and zones. Source: EC2 user guide, "On-Demand Instance quotas"."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kerf.ec2.errors import OUT_OF_STOCK
from kerf.ec2.quotas import STANDARD, UsedUp, closed_by_quota, group_of, used_up
from kerf.model.aws.cloud import FleetError, FleetRequest, FleetResult, Instance
from kerf.model.aws.instance_type import OfferingKey
from kerf.model.snapshot import LaunchFailure
from kerf.sandbox.aws.catalogue import region

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REGION = region(("us-west-2a", "us-west-2b"))
ZONES = REGION.zones_by_type["m5.xlarge"]


def closed(
    *errors: FleetError, members: int = 1, launched: int = 0, capacity_type: str = "on-demand"
) -> set[tuple[str, str, str]]:
    names = tuple(f"claim-{index}" for index in range(members))
    request = FleetRequest(group="g", capacity_type=capacity_type, members=names, templates=(), overrides=())
    instances = tuple(
        Instance(f"i-{index}", "m5.xlarge", "us-west-2a", "pending", capacity_type, NOW) for index in range(launched)
    )
    return set(closed_by_quota(request, FleetResult(instances, errors), REGION))


def refusal(instance_type: str, code: str = "VcpuLimitExceeded") -> FleetError:
    return FleetError(code, "no", instance_type, "us-west-2a", True)


def sizes(keys: set[tuple[str, str, str]]) -> set[int]:
    return {REGION.types[name].vcpus for name, _, _ in keys}


@pytest.mark.parametrize(
    ("instance_type", "group"),
    [
        *(
            (name, STANDARD)
            for name in ("a1.large", "c7g.large", "im4gn.large", "is4gen.large", "r5.large", "z1d.large")
        ),
        ("inf2.xlarge", "inf"),
        ("trn1.2xlarge", "trn"),
        ("dl1.24xlarge", "dl"),
        ("hpc7g.4xlarge", "hpc"),
        ("mac2.metal", "mac"),
        ("g5.xlarge", "g"),
        ("vt1.3xlarge", "g"),
        ("p4d.24xlarge", "p"),
        ("p5.48xlarge", "p5"),
        ("x2idn.16xlarge", "x"),
        ("u-6tb1.metal", "u"),
        ("", ""),
    ],
)
def test_families_by_the_quota_that_counts_them(instance_type: str, group: str) -> None:
    assert group_of(instance_type) == group


def test_each_type_with_as_many_vcpus_is_closed_in_each_zone() -> None:
    found = closed(refusal("m5.xlarge"))
    assert {("m5.xlarge", zone, "on-demand") for zone in ZONES} <= found
    assert min(sizes(found)) == 4
    assert all(group_of(name) == STANDARD for name, _, _ in found)
    every = {name for name, info in REGION.types.items() if group_of(name) == STANDARD and info.vcpus >= 4}
    assert {name for name, _, _ in found} == every


def test_the_quota_of_spot_says_nothing_of_on_demand() -> None:
    found = closed(refusal("m5.xlarge", "MaxSpotInstanceCountExceeded"), capacity_type="spot")
    assert {capacity_type for _, _, capacity_type in found} == {"spot"}


def test_several_that_do_not_fit_together_say_nothing_of_one() -> None:
    """Two of three were launched: one more of 4 vCPUs is too many. None of three: 12 are, perhaps not 4."""
    assert min(sizes(closed(refusal("m5.xlarge"), members=3, launched=2))) == 4
    assert min(sizes(closed(refusal("m5.xlarge"), members=3))) >= 12


@pytest.mark.parametrize(
    "error",
    [
        refusal("m5.xlarge", "InsufficientInstanceCapacity"),
        refusal("m5.xlarge", "MaxFleetCountExceeded"),
        refusal("gone.xlarge"),
        refusal(""),
    ],
    ids=lambda error: f"{error.code} {error.instance_type}",
)
def test_other_errors_say_nothing(error: FleetError) -> None:
    assert not closed(error)


def test_a_call_that_launched_all_closes_nothing() -> None:
    assert not closed(refusal("m5.xlarge"), members=1, launched=1)


# --- the used-up quotas of a cluster ----------------------------------------------------------------------------------
VCPUS = {"m5.large": 2, "m5.xlarge": 4, "c5.4xlarge": 16, "g5.xlarge": 4}


def quotas(failures: list[LaunchFailure], out: dict[OfferingKey, datetime]) -> dict[UsedUp, frozenset[OfferingKey]]:
    return dict(used_up(failures, out, VCPUS, NOW + timedelta(minutes=1)))


def test_a_used_up_quota_has_the_offerings_that_its_failure_closed() -> None:
    until = NOW + OUT_OF_STOCK
    mine = {("m5.xlarge", "a", "on-demand"), ("c5.4xlarge", "b", "on-demand"), ("m5.xlarge", "b", "on-demand in pg-1")}
    others = {("m5.large", "a", "on-demand"), ("m5.xlarge", "a", "spot"), ("g5.xlarge", "a", "on-demand")}
    out = dict.fromkeys(mine | others, until) | {("m5.xlarge", "c", "on-demand"): until + timedelta(seconds=1)}
    ((found, keys),) = quotas([LaunchFailure((refusal("m5.xlarge"),), NOW)], out).items()
    assert keys == mine
    assert (found.code, found.capacity_type, found.group, found.vcpus) == (
        "VcpuLimitExceeded",
        "on-demand",
        STANDARD,
        4,
    )
    assert (found.since, found.until, found.message, found.service_quota) == (NOW, until, "no", "L-1216C47A")


def test_several_missing_instances_close_the_larger_types_and_the_named_one() -> None:
    out = dict.fromkeys([(name, "us-west-2a", "on-demand") for name in VCPUS], NOW + OUT_OF_STOCK)
    (keys,) = quotas([LaunchFailure((refusal("m5.large"),), NOW, missing=4)], out).values()
    assert {name for name, _, _ in keys} == {"m5.large", "c5.4xlarge"}


def test_the_text_says_which_sizes_are_not_requested() -> None:
    out = dict.fromkeys([(name, "us-west-2a", "on-demand") for name in VCPUS], NOW + OUT_OF_STOCK)
    (found,) = quotas([LaunchFailure((refusal("m5.large"),), NOW, missing=4)], out)
    assert "Kerf requests no types with 8 or more vCPUs until" in str(found)
    (of_unknown,) = used_up([LaunchFailure((refusal("m5.large"),), NOW)], out, {}, NOW)
    assert "Kerf requests none of the types that EC2 refused until" in str(of_unknown)


def test_the_first_failure_is_that_before_which_launches_did_not_fail() -> None:
    ago = [LaunchFailure((refusal("m5.xlarge"),), NOW - timedelta(minutes=minutes)) for minutes in (0, 3, 6, 12)]
    (found,) = quotas(ago, {("m5.xlarge", "us-west-2a", "on-demand"): NOW + OUT_OF_STOCK})
    assert found.since == NOW - timedelta(minutes=6)


def test_quotas_of_other_families_have_no_code_that_kerf_knows() -> None:
    (found,) = quotas(
        [LaunchFailure((refusal("g5.xlarge"),), NOW)], {("g5.xlarge", "a", "on-demand"): NOW + OUT_OF_STOCK}
    )
    assert (found.service_quota, found.name) == ("", "the quota of on-demand vCPUs of the g families")
