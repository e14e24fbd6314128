"""The instance types that the sandbox's EC2 sells: about 120 real ones, made from a line per family.

Sizes, memory, GPUs and interfaces are the real ones; bandwidths are rounded to what the size typically has. Prices
are those of the fallback table. Spot costs a fixed share that differs by type and zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from kerf.ec2.pricing import prices
from kerf.model.aws.cloud import Gpu, InstanceTypeInfo, Region
from kerf.sandbox.api.manifests import chance

_VCPUS = {"medium": 1, "large": 2, "xlarge": 4}
#: (interfaces, IPv4 addresses of each, network Mbps, EBS Mbps) by vCPUs, for Nitro families.
_NETWORK = {
    1: (2, 4, 520, 1000),
    2: (3, 10, 750, 4750),
    4: (4, 15, 1250, 4750),
    8: (4, 15, 2500, 4750),
    16: (8, 30, 5000, 4750),
    32: (8, 30, 10000, 6800),
    36: (8, 30, 12000, 9500),
    48: (8, 30, 12000, 9500),
    64: (15, 50, 20000, 13600),
    72: (15, 50, 25000, 19000),
    96: (15, 50, 25000, 19000),
    128: (15, 50, 50000, 40000),
    192: (15, 50, 50000, 40000),
}
_BURSTABLE = {
    "nano": (Fraction(1, 2), 2, 2),
    "micro": (Fraction(1), 2, 2),
    "small": (Fraction(2), 3, 4),
    "medium": (Fraction(4), 3, 6),
    "large": (Fraction(8), 3, 12),
    "xlarge": (Fraction(16), 4, 15),
    "2xlarge": (Fraction(32), 4, 15),
}
#: GPU families: local disk in GB by size, and the sizes with four GPUs; all others have one.
_LOCAL_GB = {
    "g4dn": {"xlarge": 125, "2xlarge": 225, "4xlarge": 225, "8xlarge": 900, "12xlarge": 900, "16xlarge": 900},
    "g5": {"xlarge": 250, "2xlarge": 450, "4xlarge": 600, "8xlarge": 900, "12xlarge": 3800, "16xlarge": 1900},
}
_FOUR_GPUS = ("12xlarge",)
_GPU_NETWORK = {4: (3, 10), 8: (3, 10), 16: (3, 10), 32: (4, 15), 48: (8, 30), 64: (4, 15)}


@dataclass(frozen=True, slots=True)
class _Family:
    """One line of the catalogue."""

    name: str
    sizes: str
    gib_per_vcpu: Fraction
    manufacturer: str = "Intel"
    clock: float = 3.1
    arm: bool = False
    gpu: Gpu | None = None


_X86 = "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge"
_ARM = "medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge"
_T4, _A10G = Gpu("T4", "NVIDIA", 1, 16384), Gpu("A10G", "NVIDIA", 1, 22888)
_FAMILIES = (
    _Family("m5", _X86 + " metal", Fraction(4)),
    _Family("m6i", _X86 + " 32xlarge", Fraction(4), clock=3.5),
    _Family("m6a", _X86 + " 32xlarge 48xlarge", Fraction(4), "AMD", 3.6),
    _Family("m7i", _X86 + " 48xlarge", Fraction(4), clock=3.2),
    _Family("m7g", _ARM, Fraction(4), "AWS", 2.6, True),
    _Family("c5", "large xlarge 2xlarge 4xlarge 9xlarge 12xlarge 18xlarge 24xlarge", Fraction(2), clock=3.4),
    _Family("c6i", _X86 + " 32xlarge", Fraction(2), clock=3.5),
    _Family("c6g", _ARM, Fraction(2), "AWS", 2.5, True),
    _Family("c7i", _X86 + " 48xlarge", Fraction(2), clock=3.2),
    _Family("r5", _X86, Fraction(8)),
    _Family("r6i", _X86 + " 32xlarge", Fraction(8), clock=3.5),
    _Family("r7g", _ARM, Fraction(8), "AWS", 2.6, True),
    _Family("g4dn", "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge", Fraction(4), clock=2.5, gpu=_T4),
    _Family("g5", "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge", Fraction(4), "AMD", 3.3, gpu=_A10G),
)


def region(zones: tuple[str, ...], names: Iterable[str] | None = None) -> Region:
    """The region that has these zones. `names` keeps only some types. Raises ValueError for a name not sold here."""
    sold = dict(_types())
    wanted = sorted(sold) if names is None else sorted(set(names))
    if unknown := [name for name in wanted if name not in sold]:
        raise ValueError(f"not in the sandbox's catalogue: {', '.join(unknown)}")
    types = {name: sold[name][0] for name in wanted}
    costs = {name: sold[name][1] for name in wanted}
    offered = {name: frozenset(zones[:2] if name.startswith("g5.") else zones) for name in wanted}
    spot = {
        (name, zone): spot_price(costs[name], name, zone) for name in wanted for zone in zones if zone in offered[name]
    }
    return Region(zones[0][:-1], types, offered, costs, spot, zones)


def spot_price(on_demand: int, name: str, zone: str) -> int:
    """28 % to 48 % of the on-demand price, always the same for a type and zone."""
    return on_demand * (2800 + int(2000 * chance("spot price", name, zone))) // 10000


def _types() -> Iterator[tuple[str, tuple[InstanceTypeInfo, int]]]:
    for family in _FAMILIES:
        for size in family.sizes.split():
            info = _type(family, size)
            yield info.name, (info, _price(info))
    for size, (gib, interfaces, addresses) in _BURSTABLE.items():
        vcpus = {"xlarge": 4, "2xlarge": 8}.get(size, 2)
        info = InstanceTypeInfo(
            f"t3.{size}",
            ("x86_64",),
            vcpus,
            int(gib * 1024),
            max_interfaces=interfaces,
            ipv4_per_interface=addresses,
            manufacturer="Intel",
            clock_speed_ghz=2.5,
            ebs_bandwidth_mbps=2085,
            placement_strategies=("partition", "spread"),
            cards=(interfaces,),
        )
        yield info.name, (info, _price(info))


def _price(info: InstanceTypeInfo) -> int:
    price = prices.on_demand_estimate(info.name, info.vcpus, info.memory_mib)
    if price is None:
        raise ValueError(f"no price of {info.name} is known")
    return price


def _type(family: _Family, size: str) -> InstanceTypeInfo:
    metal = size == "metal"
    vcpus = 96 if metal else _VCPUS.get(size) or 4 * int(size.removesuffix("xlarge"))
    interfaces, addresses, network, ebs = _NETWORK[vcpus]
    name = f"{family.name}.{size}"
    if family.gpu is not None:
        interfaces, addresses = _GPU_NETWORK[vcpus]
    gpus: tuple[Gpu, ...] = ()
    if family.gpu is not None:
        gpus = (replace(family.gpu, count=4 if size in _FOUR_GPUS else 1),)
    local = _LOCAL_GB.get(family.name, {}).get(size, 0)
    return InstanceTypeInfo(
        name,
        ("arm64",) if family.arm else ("x86_64",),
        vcpus,
        int(vcpus * family.gib_per_vcpu * 1024),
        max_interfaces=interfaces,
        ipv4_per_interface=addresses,
        hypervisor="" if metal else "nitro",
        bare_metal=metal,
        manufacturer=family.manufacturer,
        clock_speed_ghz=family.clock,
        instance_storage_gb=local,
        nvme=bool(local),
        ebs_bandwidth_mbps=ebs,
        network_bandwidth_mbps=network,
        encryption_in_transit=family.name not in ("m5", "c5", "r5", "c6g"),
        nitro_enclaves=vcpus >= 4 and family.name != "g4dn",
        gpus=gpus,
        trunking=not metal,
        placement_strategies=("cluster", "partition", "spread"),
        cards=(interfaces,),
    )
