"""Volumes that EC2 refuses, and volumes that it creates."""

from __future__ import annotations

from typing import Any

import pytest

from kerf_api.lint import validate
from tests.unit.api.manifests import changed

REFUSED, BEYOND, DEVICE = "KERF-EC2-113", "KERF-EC2-220", "KERF-EC2-114"
UNTYPED = "KERF-EC2-224"
SNAPSHOT = "snap-0123456789abcdef0"


def row(size: str = "100Gi", device: str = "/dev/xvda", **ebs: Any) -> dict[str, Any]:
    return {"deviceName": device, "ebs": {"volumeSize": size, **ebs}}


def found(*rows: dict[str, Any], family: str = "AL2023") -> list[tuple[str, str]]:
    """The rules, each with the last field of its place."""
    manifest = changed("EC2NodeClass", "spec.blockDeviceMappings", list(rows))
    manifest["spec"] |= {"amiFamily": family, "amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}]}
    problems = [one for one in validate(manifest) if one.rule not in ("KERF-EC2-214", "KERF-EC2-218")]
    return [(one.rule, str(one.steps[-1])) for one in problems]


@pytest.mark.parametrize(
    ("rule", "field", "volume"),
    [
        (REFUSED, "ebs", row(volumeType="io1")),
        (REFUSED, "ebs", row(volumeType="io2", iops=0)),
        (REFUSED, "iops", row(volumeType="io2", iops=99)),
        (REFUSED, "iops", row(volumeType="gp3", iops=2999)),
        (REFUSED, "iops", row(volumeType="gp3", iops=-1)),
        (REFUSED, "iops", row(volumeType="gp2", iops=3000)),
        (REFUSED, "iops", row("500Gi", "/dev/sdf", volumeType="st1", iops=500)),
        (REFUSED, "throughput", row(volumeType="gp2", throughput=250)),
        (REFUSED, "throughput", row(volumeType="io2", iops=4000, throughput=250)),
        (REFUSED, "throughput", row(volumeType="gp3", throughput=124)),
        (REFUSED, "volumeSize", row("3Gi", volumeType="io1", iops=100)),
        (REFUSED, "volumeSize", row("124Gi", "/dev/sdf", volumeType="sc1")),
        (REFUSED, "volumeSize", row("133G", "/dev/sdf", volumeType="st1")),
        (REFUSED, "volumeType", row("500Gi", volumeType="st1")),
        (REFUSED, "kmsKeyID", row(kmsKeyID="alias/nodes")),
        (REFUSED, "kmsKeyID", row(volumeType="gp3", kmsKeyID="alias/nodes", encrypted=False)),
        (UNTYPED, "iops", row(iops=4000)),
        (UNTYPED, "iops", row(iops=4000, throughput=250)),
        (UNTYPED, "throughput", row(throughput=250)),
        (BEYOND, "volumeSize", row("17Ti", volumeType="gp2")),
        (BEYOND, "volumeSize", row("1025Gi", volumeType="standard")),
        (BEYOND, "iops", row(volumeType="gp3", iops=50001)),
        (BEYOND, "iops", row("10Ti", volumeType="gp3", iops=80001)),
        (BEYOND, "iops", row(volumeType="io1", iops=5001)),
        (BEYOND, "iops", row("8Gi", volumeType="io2", iops=8001)),
        (BEYOND, "throughput", row(volumeType="gp3", throughput=751)),
        (BEYOND, "throughput", row(volumeType="gp3", iops=16000, throughput=2001)),
    ],
)
def test_a_volume_that_ec2_refuses_is_found(rule: str, field: str, volume: dict[str, Any]) -> None:
    assert found(volume) == [(rule, field)]


@pytest.mark.parametrize(
    "volume",
    [
        row(),
        row("1Gi", volumeType="gp3", iops=3000, throughput=750),
        row("5Gi", volumeType="gp3", iops=3000),
        row("64T", volumeType="gp3", iops=80000, throughput=2000),
        row("4Gi", volumeType="io1", iops=200),
        row("256Gi", volumeType="io2", iops=256000),
        row("134G", "/dev/sdf", volumeType="st1"),
        row("16Ti", volumeType="gp2", iops=0, throughput=0),
        row("1Ti", volumeType="standard"),
        row(iops=0, throughput=0),
        row(volumeType="gp3", kmsKeyID="alias/nodes", encrypted=True),
        {"deviceName": "/dev/xvda", "ebs": {"snapshotID": SNAPSHOT, "volumeType": "gp3", "iops": 80000}},
        {"deviceName": "/dev/xvda", "ebs": {"snapshotID": SNAPSHOT, "volumeType": "io2", "iops": 9000}},
    ],
)
def test_a_volume_that_ec2_creates_passes(volume: dict[str, Any]) -> None:
    assert found(volume) == []


@pytest.mark.parametrize(
    ("family", "device", "boots"),
    [
        ("AL2", "/dev/xvda", True),
        ("Bottlerocket", "/dev/xvda", True),
        ("Bottlerocket", "/dev/xvdb", False),
        ("Windows2022", "/dev/sda1", True),
        ("Windows2022", "/dev/xvdb", False),
        ("Custom", "/dev/xvda", False),
    ],
)
def test_no_instance_boots_from_a_disk_that_is_slow(family: str, device: str, boots: bool) -> None:
    assert found(row("500Gi", device, volumeType="sc1"), family=family) == ([(REFUSED, "volumeType")] if boots else [])


def test_a_volume_without_a_type_is_information_for_its_type_may_be_that_of_the_image() -> None:
    volume = {**row(iops=5000, throughput=500), "rootVolume": True}
    manifest = changed("EC2NodeClass", "spec.blockDeviceMappings", [volume])
    assert [(one.rule, one.severity) for one in validate(manifest)] == [(UNTYPED, "info")]


def test_each_volume_has_a_device_name_of_its_own() -> None:
    without = {"ebs": {"volumeSize": "1Gi"}}
    assert found(row(), row(device="/dev/xvdb")) == []
    assert found(row(), row(device="/dev/xvdb"), row("1Gi")) == [(DEVICE, "deviceName")]
    assert found(without, {"deviceName": "", **without}) == [(DEVICE, "deviceName")] * 2
