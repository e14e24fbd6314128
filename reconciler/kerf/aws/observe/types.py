"""Instance types: what EC2 says of each one, and in which zones it is offered.

The answers are read once per refresh; here they become `InstanceTypeInfo`. Architectures other than x86-64 and arm64
are left out, and so are types that have no other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kerf.aws.requests.clients import pages
from kerf.aws.requests.errors import translated
from kerf.model.aws.cloud import Gpu, InstanceTypeInfo
from kerf.ports import Unavailable

ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}
USAGE_CLASSES: Final = ("on-demand", "spot")
FILTERS: Final = [
    {"Name": "supported-virtualization-type", "Values": ["hvm"]},
    {"Name": "processor-info.supported-architecture", "Values": list(ARCHITECTURES)},
]
#: Nitro families whose network interfaces cannot be trunked. Source: Amazon EKS user guide, "Security groups for Pods".
NOT_TRUNKED: Final = frozenset({"t3", "t3a", "t4g", "hpc6a", "hpc6id", "hpc7a", "hpc8a", "trn2"})
#: `25 Gigabit`, `4x 100 Gigabit`; `Up to …` and words have no fixed number.
FIXED_BANDWIDTH: Final = re.compile(r"(?:(\d+)x )?([\d.]+) Gigabit")


def read_types(ec2: Any) -> dict[str, InstanceTypeInfo]:
    """All types of the region that could run a node, by name. Raises Unavailable when EC2 lists none."""
    with translated("ec2:DescribeInstanceTypes"):
        raw = pages(
            ec2, "describe_instance_types", "InstanceTypes", Filters=FILTERS, PaginationConfig={"PageSize": 100}
        )
    _some(raw, "ec2:DescribeInstanceTypes: no instance types found")
    infos = map(type_info, raw)
    return {info.name: info for info in sorted(infos, key=lambda info: info.name) if info.architectures}


def read_offerings(ec2: Any) -> dict[str, frozenset[str]]:
    """The names of the zones in which each type is offered, by type. Raises Unavailable when none is."""
    with translated("ec2:DescribeInstanceTypeOfferings"):
        raw = pages(
            ec2,
            "describe_instance_type_offerings",
            "InstanceTypeOfferings",
            LocationType="availability-zone",
            PaginationConfig={"PageSize": 1000},
        )
    _some(raw, "ec2:DescribeInstanceTypeOfferings: no instance types offerings found")
    zones: dict[str, set[str]] = {}
    for row in raw:
        zones.setdefault(row["InstanceType"], set()).add(row["Location"])
    return {name: frozenset(zones[name]) for name in sorted(zones)}


def _some(raw: Sequence[Any], words: str) -> None:
    """A region without any type is an answer that went wrong: what was known is kept."""
    if not raw:
        raise Unavailable(words)


def type_info(raw: Mapping[str, Any]) -> InstanceTypeInfo:
    """One element of `InstanceTypes`. Source: EC2 API reference, InstanceTypeInfo."""
    name: str = raw["InstanceType"]
    processor, network = raw.get("ProcessorInfo", {}), raw.get("NetworkInfo", {})
    storage = raw.get("InstanceStorageInfo", {})
    neuron = raw.get("NeuronInfo", {}).get("NeuronDevices", ())
    return InstanceTypeInfo(
        name=name,
        architectures=tuple(a for a in processor.get("SupportedArchitectures", ()) if a in ARCHITECTURES),
        vcpus=raw["VCpuInfo"]["DefaultVCpus"],
        memory_mib=raw["MemoryInfo"]["SizeInMiB"],
        usage_classes=tuple(c for c in USAGE_CLASSES if c in raw.get("SupportedUsageClasses", ())),
        max_interfaces=_max_interfaces(network),
        ipv4_per_interface=network.get("Ipv4AddressesPerInterface", 0),
        hypervisor=raw.get("Hypervisor", ""),
        bare_metal=bool(raw.get("BareMetal")),
        manufacturer=processor.get("Manufacturer", ""),
        clock_speed_ghz=float(processor.get("SustainedClockSpeedInGhz", 0.0)),
        instance_storage_gb=storage.get("TotalSizeInGB", 0),
        nvme=storage.get("NvmeSupport", "unsupported") != "unsupported",
        ebs_bandwidth_mbps=_ebs_bandwidth(raw.get("EbsInfo", {})),
        network_bandwidth_mbps=_network_bandwidth(network),
        encryption_in_transit=bool(network.get("EncryptionInTransitSupported")),
        nitro_enclaves=raw.get("NitroEnclavesSupport") == "supported",
        gpus=tuple(_gpu(g) for g in raw.get("GpuInfo", {}).get("Gpus", ())),
        accelerators=_accelerators(raw),
        neuron_cores=sum(device.get("Count", 0) * device.get("CoreInfo", {}).get("Count", 0) for device in neuron),
        efa_interfaces=network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        trunking=_trunking(name, raw),
        placement_strategies=tuple(raw.get("PlacementGroupInfo", {}).get("SupportedStrategies", ())),
        processor_features=tuple(processor.get("SupportedFeatures", ())),
        all_interfaces=network.get("MaximumNetworkInterfaces", 0),
        cards=_cards(network),
        ena=network.get("EnaSupport", "unsupported") != "unsupported",
    )


def _max_interfaces(network: Mapping[str, Any]) -> int:
    """Pods get their addresses from the default network card only."""
    cards = network.get("NetworkCards", ())
    default = network.get("DefaultNetworkCardIndex", 0)
    for card in cards:
        if card.get("NetworkCardIndex") == default:
            return int(card["MaximumNetworkInterfaces"])
    return int(network.get("MaximumNetworkInterfaces", 0))


def _cards(network: Mapping[str, Any]) -> tuple[int, ...]:
    """How many interfaces each network card can have, by its number."""
    by_number = {
        card.get("NetworkCardIndex", 0): int(card["MaximumNetworkInterfaces"])
        for card in network.get("NetworkCards", ())
    }
    return tuple(by_number.get(number, 0) for number in range(max(by_number, default=-1) + 1))


def _ebs_bandwidth(ebs: Mapping[str, Any]) -> int | None:
    if ebs.get("EbsOptimizedSupport") != "default":
        return None
    bandwidth = ebs.get("EbsOptimizedInfo", {}).get("MaximumBandwidthInMbps")
    return int(bandwidth) if bandwidth else None


def _network_bandwidth(network: Mapping[str, Any]) -> int | None:
    """The steady bandwidth in Mbit/s: the number EC2 words without "Up to", else the cards' baselines together."""
    fixed = FIXED_BANDWIDTH.fullmatch(network.get("NetworkPerformance", ""))
    if fixed:
        return int(int(fixed[1] or 1) * float(fixed[2]) * 1000)
    baseline = sum(card.get("BaselineBandwidthInGbps", 0.0) for card in network.get("NetworkCards", ()))
    return round(baseline * 1000) or None


def _gpu(raw: Mapping[str, Any]) -> Gpu:
    """One entry of `Gpus`, `NeuronDevices` or `Accelerators`.

    A fraction of a GPU has `Count` 0 and `LogicalGpuCount` 1: the node has one device. Source: EC2 API reference,
    GpuDeviceInfo.
    """
    return Gpu(
        name=raw.get("Name", ""),
        manufacturer=raw.get("Manufacturer", ""),
        count=raw.get("Count") or raw.get("LogicalGpuCount") or 0,
        memory_mib=raw.get("MemoryInfo", {}).get("SizeInMiB", 0),
    )


def _accelerators(raw: Mapping[str, Any]) -> tuple[Gpu, ...]:
    """Neuron devices; EC2 describes older ones as inference accelerators only."""
    devices: Sequence[Mapping[str, Any]] = raw.get("NeuronInfo", {}).get("NeuronDevices", ())
    if devices:
        return tuple(_gpu({"Manufacturer": "AWS", **device}) for device in devices)
    return tuple(_gpu(a) for a in raw.get("InferenceAcceleratorInfo", {}).get("Accelerators", ()))


def _trunking(name: str, raw: Mapping[str, Any]) -> bool:
    nitro = raw.get("Hypervisor") == "nitro" or bool(raw.get("BareMetal"))
    return nitro and name.split(".", 1)[0] not in NOT_TRUNKED
