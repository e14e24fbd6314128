"""What an instance makes of its claim, against the claims of a recorded cluster."""

from __future__ import annotations

from dataclasses import replace as copy

import pytest

from kerf.ec2.instances import claim_labels, claim_status
from kerf.model.aws.cloud import HeldReservation, Instance, Subnet
from kerf_api.resources import Resources
from tests.unit.ec2.ec2_facts import NOW, catalogue, claim, node_class, one, ready

CLASS = ready(node_class())


def instance(name: str = "m7a.medium", capacity_type: str = "on-demand") -> Instance:
    tags = {"karpenter.sh/nodepool": "default"}
    return Instance(
        "i-1", name, "us-west-2c", "running", capacity_type, NOW, image_id="ami-1", tags=tags, zone_id="own"
    )


def test_the_labels_of_a_recorded_claim() -> None:
    prefix = "karpenter.k8s.aws/instance-"
    found = claim_labels(instance(), one("m7a.medium"), CLASS)
    assert found.pop("karpenter.k8s.aws/nitro-sandbox") == "false"
    assert found == {
        f"{prefix}capability-flex": "false",
        f"{prefix}category": "m",
        f"{prefix}cpu": "1",
        f"{prefix}cpu-manufacturer": "amd",
        f"{prefix}cpu-sustained-clock-speed-mhz": "3700",
        f"{prefix}ebs-bandwidth": "10000",
        f"{prefix}encryption-in-transit-supported": "true",
        f"{prefix}family": "m7a",
        f"{prefix}generation": "7",
        f"{prefix}hypervisor": "nitro",
        f"{prefix}memory": "4096",
        f"{prefix}network-bandwidth": "390",
        f"{prefix}size": "medium",
        f"{prefix}tenancy": "default",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.sh/nodepool": "default",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m7a.medium",
        "topology.k8s.aws/zone-id": "usw2-az3",
        "topology.kubernetes.io/region": "us-west-2",
        "topology.kubernetes.io/zone": "us-west-2c",
    }
    assert list(found) == sorted(found)


def test_a_machine_in_a_reservation_says_in_which() -> None:
    held = HeldReservation(id="cr-1", type="capacity-block")
    found = claim_labels(copy(instance(capacity_type="reserved"), reservation=held), one("m7a.medium"), CLASS)
    plain = claim_labels(instance(capacity_type="reserved"), one("m7a.medium"), CLASS)
    assert {key: value for key, value in found.items() if key not in plain} == {
        "karpenter.k8s.aws/capacity-reservation-id": "cr-1",
        "karpenter.k8s.aws/capacity-reservation-interruptible": "false",
        "karpenter.k8s.aws/capacity-reservation-type": "capacity-block",
    }


def test_without_class_or_type_what_the_instance_says_itself() -> None:
    assert claim_labels(instance(capacity_type="spot"), None, None) == {
        "karpenter.k8s.aws/instance-tenancy": "default",
        "karpenter.sh/capacity-type": "spot",
        "karpenter.sh/nodepool": "default",
        "node.kubernetes.io/instance-type": "m7a.medium",
        "topology.k8s.aws/zone-id": "own",
        "topology.kubernetes.io/zone": "us-west-2c",
    }


def test_a_type_offered_in_one_other_zone_does_not_mislead() -> None:
    elsewhere = catalogue("m7a.medium", subnets=(Subnet("subnet-a", "us-west-2a", "usw2-az1"),))[0]
    found = claim_labels(copy(instance(), zone_id=""), elsewhere, None)
    assert found["topology.kubernetes.io/zone"] == "us-west-2c"
    assert "topology.k8s.aws/zone-id" not in found


@pytest.mark.parametrize(
    ("name", "capacity", "allocatable"),
    [
        (
            "m7a.medium",
            {
                "cpu": "1",
                "ephemeral-storage": "20Gi",
                "memory": "3788Mi",
                "pods": "8",
                "vpc.amazonaws.com/pod-eni": "4",
            },
            {
                "cpu": "940m",
                "ephemeral-storage": "17Gi",
                "memory": "3345Mi",
                "pods": "8",
                "vpc.amazonaws.com/pod-eni": "4",
            },
        ),
        (
            "c6a.4xlarge",
            {"cpu": "16", "ephemeral-storage": "20Gi", "memory": "30310Mi", "pods": "234"}
            | {"vpc.amazonaws.com/pod-eni": "54"},
            {"cpu": "15890m", "ephemeral-storage": "17Gi", "memory": "27381Mi", "pods": "234"}
            | {"vpc.amazonaws.com/pod-eni": "54"},
        ),
    ],
)
def test_the_status_of_a_recorded_claim(name: str, capacity: dict[str, str], allocatable: dict[str, str]) -> None:
    assert claim_status(claim(), instance(name), one(name)) == {
        "providerID": "aws:///us-west-2c/i-1",
        "imageID": "ami-1",
        "capacity": capacity,
        "allocatable": allocatable,
    }


def test_an_unknown_type_leaves_the_amounts_alone() -> None:
    assert claim_status(claim(), instance(), None) == {"providerID": "aws:///us-west-2c/i-1", "imageID": "ami-1"}


def test_what_there_is_none_of_and_interfaces_that_were_not_made_are_not_promised() -> None:
    kind = copy(one("m5.large"), capacity=Resources({"cpu": 1000, "x": 0, "vpc.amazonaws.com/efa": 1}))
    assert claim_status(claim(), instance(), kind)["capacity"] == {"cpu": "1"}
