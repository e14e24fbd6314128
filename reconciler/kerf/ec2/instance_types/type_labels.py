"""The labels a node of an instance type will carry, as requirements of the type.

A label the type has no value for is DoesNotExist, so that a demand for it rules the type out. Source: AWS provider
reference §4.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kerf.ec2.families import Family
from kerf.ec2.images import ARCHITECTURES
from kerf.model.aws.cloud import Gpu, InstanceTypeInfo
from kerf_api import labels, type_names
from kerf_api.requirements import Requirement, Requirements

_PREFIX = f"{labels.AWS_GROUP}/"
_KEBAB = re.compile(r"[^a-z0-9.]+")
_ABSENT = {key: Requirement(key, False) for key in (*sorted(labels.AWS_LABELS), labels.WINDOWS_BUILD)}
TENANCY = f"{_PREFIX}instance-tenancy"
TENANCIES = ("default", "dedicated")


def requirements(info: InstanceTypeInfo, family: Family, region: str, zone_ids: dict[str, str]) -> Requirements:
    """The type's requirements. `zone_ids` maps the zones that it can be launched in to their IDs ("" if unknown)."""
    ids = sorted({zone_id for zone_id in zone_ids.values() if zone_id})
    offered = [usage for usage in info.usage_classes if usage in (labels.ON_DEMAND, labels.SPOT)]
    rows = {
        labels.INSTANCE_TYPE: _one(labels.INSTANCE_TYPE, info.name),
        labels.REGION: _one(labels.REGION, region),
        labels.ZONE: Requirement(labels.ZONE, False, frozenset(zone_ids)),
        labels.CAPACITY_TYPE: Requirement(labels.CAPACITY_TYPE, False, frozenset(offered)),
        **_ABSENT,
    }
    if ids:
        rows[labels.ZONE_ID] = Requirement(labels.ZONE_ID, False, frozenset(ids))
    rows.update((row.key, row) for row in _system(info, family))
    rows[TENANCY] = Requirement(TENANCY, False, frozenset(TENANCIES))
    rows.update((key, _one(key, value)) for key, value in type_names.labels_of(info.name))
    for suffix, value in _values(info):
        rows[_PREFIX + suffix] = _one(_PREFIX + suffix, value)
    return Requirements(rows.values())


def architecture(info: InstanceTypeInfo) -> str:
    """Kubernetes' name of the type's architecture; empty when it has none that nodes can have."""
    return next((ARCHITECTURES[name] for name in info.architectures if name in ARCHITECTURES), "")


def _one(key: str, value: str) -> Requirement:
    return Requirement(key, False, frozenset((value,)))


def _system(info: InstanceTypeInfo, family: Family) -> Iterator[Requirement]:
    arch = architecture(info)
    yield _one(labels.ARCH, arch)
    if not family.windows:
        yield _one(labels.OS, "linux")
        return
    yield _one(labels.WINDOWS_BUILD, family.windows_build)
    yield _one(labels.OS, "windows") if arch == "amd64" else Requirement(labels.OS, False)


def _values(info: InstanceTypeInfo) -> Iterator[tuple[str, str]]:
    """Suffix and value of every label that follows from the type's facts."""
    family = info.name.partition(".")[0]
    yield "instance-cpu", str(info.vcpus)
    yield "instance-memory", str(info.memory_mib)
    yield "instance-cpu-sustained-clock-speed-mhz", str(round(info.clock_speed_ghz * 1000))
    if info.manufacturer:
        yield "instance-cpu-manufacturer", info.manufacturer.lower().replace(" ", "-")
    yield "instance-hypervisor", info.hypervisor
    yield "instance-encryption-in-transit-supported", _flag(info.encryption_in_transit)
    yield "nitro-sandbox", _flag(info.nitro_enclaves)
    yield "instance-capability-flex", _flag("-flex" in family)
    if info.ebs_bandwidth_mbps is not None:
        yield "instance-ebs-bandwidth", str(info.ebs_bandwidth_mbps)
    if info.network_bandwidth_mbps is not None:
        yield "instance-network-bandwidth", str(info.network_bandwidth_mbps)
    if info.nvme and info.instance_storage_gb:
        yield "instance-local-nvme", str(info.instance_storage_gb)
    yield from _devices(info)


def _devices(info: InstanceTypeInfo) -> Iterator[tuple[str, str]]:
    """Labels of GPUs and accelerators, where there is exactly one model."""
    if len(info.gpus) == 1:
        yield from _device("gpu", info.gpus[0])
        yield "instance-gpu-memory", str(info.gpus[0].memory_mib)
    if len(info.accelerators) == 1:
        yield from _device("accelerator", info.accelerators[0])


def _device(kind: str, device: Gpu) -> Iterator[tuple[str, str]]:
    yield f"instance-{kind}-name", _kebab(device.name)
    yield f"instance-{kind}-manufacturer", _kebab(device.manufacturer)
    yield f"instance-{kind}-count", str(device.count)


def _kebab(text: str) -> str:
    return _KEBAB.sub("-", text.lower()).strip("-")


def _flag(value: bool) -> str:
    return "true" if value else "false"
