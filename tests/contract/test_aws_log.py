"""What moto records for measurements: who called, what CreateFleet made when, and how long an instance was there."""

from __future__ import annotations

import time

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.cluster.bootstrapper import MACHINES
from tests.cluster.moto_aws import MotoAws

from .cloud_accounts import MotoAccount
from .launches import request

pytestmark = pytest.mark.only_real("records of moto, which the sandbox does not keep")


def test_a_fleet_is_recorded_with_its_times_and_instances(aws: MotoAws, real: MotoAccount) -> None:
    before, known = time.time(), len(aws.fleets())
    (launched,) = real.cloud.create_fleet(request(real, "recorded")).instances
    (fleet,) = aws.fleets()[known:]
    assert (fleet.instances, fleet.errors) == ((launched.id,), ())
    assert before <= fleet.asked <= fleet.answered <= time.time()


def test_an_instance_has_an_end_from_its_termination_on(aws: MotoAws, real: MotoAccount) -> None:
    (launched,) = real.cloud.create_fleet(request(real, "ended")).instances
    (row,) = [one for one in aws.instances() if one["id"] == launched.id]
    assert row["ended"] is None
    before = time.time()
    aws.terminate(launched.id)
    (row,) = [one for one in aws.instances() if one["id"] == launched.id]
    assert row["launched"] <= before <= row["ended"] <= time.time()


def test_calls_are_recorded_with_the_key_of_the_caller(aws: MotoAws) -> None:
    aws.clear_calls()
    aws.client("ec2").describe_subnets()
    machines = boto3.session.Session(MACHINES, MACHINES, region_name=aws.region)
    machines.client("ec2", endpoint_url=aws.endpoint_url).describe_instance_types(InstanceTypes=["m5.large"])
    assert [(one.action, one.caller) for one in aws.calls()] == [
        ("DescribeSubnets", "kerf"),
        ("DescribeInstanceTypes", MACHINES),
    ]


def test_instance_types_can_be_asked_for_dry(aws: MotoAws) -> None:
    with pytest.raises(ClientError, match="DryRunOperation"):
        aws.client("ec2").describe_instance_types(DryRun=True)
