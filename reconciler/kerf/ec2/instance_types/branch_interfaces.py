"""How many branch network interfaces (security groups for pods) a type carries: the resource `pod-eni`.

EC2's API does not return it. The rule and its exceptions describe the table that the VPC resource controller ships: a
number of slots by vCPU count, of which the ordinary interfaces take their share. Source: AWS provider reference,
appendix C.
"""

from __future__ import annotations

import re

from kerf.model.aws.cloud import InstanceTypeInfo

_UNSUPPORTED_FAMILIES = frozenset({"t3", "t3a", "t4g", "hpc6a", "hpc6id", "hpc7a", "hpc8a", "trn2", "trn2u"})
_UNSUPPORTED = frozenset({"u-6tb1.56xlarge", "u-6tb1.112xlarge"})
_SLOTS = ((64, 122), (12, 62), (8, 42), (4, 22), (2, 12), (0, 6))
_NEWER_SLOTS = {32: 92, 48: 122}
_NEWER_FAMILIES = frozenset({"g5", "g6", "g6e", "gr6", "inf2", "i7i"})
_FLEX = {"large": 6, "xlarge": 12, "2xlarge": 22, "4xlarge": 42, "12xlarge": 122}

#: family → size → slots; `*` stands for every other size.
_EXCEPTIONS: dict[str, dict[str, int]] = {
    "a1": {"medium": 12},
    "x2gd": {"medium": 12},
    "i3en": {"large": 8, "xlarge": 16, "2xlarge": 32},
    "m5zn": {"large": 16, "xlarge": 33, "2xlarge": 66, "3xlarge": 100, "6xlarge": 122, "12xlarge": 122, "metal": 122},
    "z1d": {"large": 16, "xlarge": 32, "2xlarge": 62, "3xlarge": 62, "12xlarge": 122, "metal": 122},
    "i7ie": {"large": 22, "xlarge": 31, "2xlarge": 31, "3xlarge": 31},
    "i8ge": {"large": 22, "xlarge": 31, "2xlarge": 31, "3xlarge": 31},
    "i7i": {"12xlarge": 92},
    "g5": {"xlarge": 8, "2xlarge": 21, "4xlarge": 42},
    "g4ad": {"*": 14},
    "i4i": {
        "xlarge": 10,
        "2xlarge": 30,
        "4xlarge": 60,
        "8xlarge": 120,
        "12xlarge": 120,
        "24xlarge": 120,
        "16xlarge": 135,
        "32xlarge": 135,
        "metal": 135,
    },
    "x2iedn": {"xlarge": 15, "2xlarge": 31, "8xlarge": 122},
    "x2iezn": {"2xlarge": 66, "*": 122},
    "d3": {"xlarge": 46, "2xlarge": 96, "*": 122},
    "d3en": {"xlarge": 28, "2xlarge": 62, "*": 122},
    "g4dn": {"xlarge": 42},
    "inf1": {"xlarge": 42},
    "g7e": {"2xlarge": 124, "4xlarge": 128, "8xlarge": 128, "12xlarge": 130, "24xlarge": 140, "48xlarge": 160},
    "hpc7g": {"4xlarge": 122, "8xlarge": 122},
    "f2": {"6xlarge": 92, "12xlarge": 122},
    "trn1": {"2xlarge": 21},
    "trn1n": {"32xlarge": 200},
    "m5": {"metal": 135},
    "r5": {"metal": 135},
    "p5": {"48xlarge": 184},
    "p5e": {"48xlarge": 184},
    "p5en": {"48xlarge": 184},
    "p6-b200": {"48xlarge": 152},
    "p6-b300": {"48xlarge": 188},
    "u-3tb1": {"56xlarge": 14},
}
_GENERATION = re.compile(r"[a-z]+(\d+)")


def capacity(info: InstanceTypeInfo) -> int:
    """Branch interfaces of a type; 0 where it has none."""
    family, _, size = info.name.partition(".")
    nitro = info.hypervisor == "nitro" or info.bare_metal
    if not nitro or family in _UNSUPPORTED_FAMILIES or info.name in _UNSUPPORTED:
        return 0
    return max(_slots(family, size, info) - (info.all_interfaces or info.max_interfaces), 0)


def _slots(family: str, size: str, info: InstanceTypeInfo) -> int:
    if family.startswith("mac"):
        return 14
    known = _EXCEPTIONS.get(family, {})
    if size in known or "*" in known:
        return known.get(size, known.get("*", 0))
    if family.endswith("-flex") and size in _FLEX:
        return _FLEX[size]
    if info.vcpus in _NEWER_SLOTS and _newer(family, info):
        return _NEWER_SLOTS[info.vcpus]
    return next(slots for vcpus, slots in _SLOTS if info.vcpus >= vcpus)


def _newer(family: str, info: InstanceTypeInfo) -> bool:
    """x86 families whose middle sizes carry more."""
    generation = _GENERATION.match(family)
    x86 = "arm64" not in info.architectures
    return family in _NEWER_FAMILIES or (x86 and generation is not None and int(generation[1]) >= 6)
