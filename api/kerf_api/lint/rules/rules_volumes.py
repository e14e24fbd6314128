"""EBS volumes that EC2 refuses to create, although the API server accepts the EC2NodeClass.

What EC2 has always refused is an error. Upper limits of size, IOPS and throughput grow from year to year, so beyond
them is a warning. Sources: EC2 API reference, EbsBlockDevice and BlockDeviceMapping; Amazon EBS user guide, "Amazon EBS
volume types" (2026).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kerf_api.lint.problem import Problem, Steps, at, shown
from kerf_api.lint.reading.reading import amount, entries, mapping
from kerf_api.v1.ec2nodeclass import ROOT_DEVICES

_GIB: Final = 2**30
#: MiB/s, and MiB/s for each of the IOPS, of gp3.
_THROUGHPUT: Final = (125, 2000)
_THROUGHPUT_RATIO: Final = 0.25
#: IOPS of gp3 when none are written.
_BASE_IOPS: Final = 3000


@dataclass(frozen=True, slots=True)
class _Type:
    """Limits of a volume type: sizes in GiB, IOPS, and IOPS for each GiB; None where IOPS cannot be set."""

    sizes: tuple[int, int]
    iops: tuple[int, int] | None = None
    ratio: int = 0


_TYPES: Final[Mapping[str, _Type]] = {
    "gp2": _Type((1, 16384)),
    "gp3": _Type((1, 65536), (3000, 80000), 500),
    "io1": _Type((4, 16384), (100, 64000), 50),
    "io2": _Type((4, 65536), (100, 256000), 1000),
    "st1": _Type((125, 16384)),
    "sc1": _Type((125, 16384)),
    "standard": _Type((1, 1024)),
}
_IOPS_REQUIRED: Final = ("io1", "io2")
_NO_BOOT: Final = ("st1", "sc1")


def check(manifest: Mapping[str, Any], family: str) -> Iterator[Problem]:
    """The problems of the volumes of a class of this AMI family."""
    names: set[str] = set()
    for steps, row in entries(manifest, "spec", "blockDeviceMappings"):
        name, ebs = row.get("deviceName"), mapping(row, "ebs")
        yield from _device((*steps, "deviceName"), name, names)
        kind = ebs.get("volumeType")
        if isinstance(kind, str) and kind in _TYPES:
            place = (*steps, "ebs")
            yield from _size(place, kind, ebs)
            yield from _iops(place, kind, ebs)
            yield from _throughput(place, kind, ebs)
            if kind in _NO_BOOT and name == ROOT_DEVICES.get(family, ""):
                message = f"an instance does not boot from {kind} volumes"
                yield at((*place, "volumeType"), "KERF-EC2-113", "error", message, "use gp3", kind)
        elif kind is None:
            yield from _untyped((*steps, "ebs"), ebs)
        if ebs.get("kmsKeyID") and ebs.get("encrypted") is not True:
            message = "EC2 accepts a KMS key only for an encrypted volume"
            yield at((*steps, "ebs", "kmsKeyID"), "KERF-EC2-113", "error", message, "add encrypted: true")


def _untyped(place: Steps, ebs: Mapping[str, Any]) -> Iterator[Problem]:
    """Kerf sends no type then. Which one EC2 takes may depend on the image, so this is no error."""
    for field in ("iops", "throughput"):
        if value := _number(ebs, field):
            message = f"without volumeType EC2 decides the type, and it refuses {field} for gp2"
            hint = "add volumeType: gp3"
            yield at((*place, field), "KERF-EC2-224", "info", message, hint, value)
            return


def _device(steps: Steps, name: Any, names: set[str]) -> Iterator[Problem]:
    """Adds the name to `names`."""
    if name is None or name == "":
        message = "EC2 needs the device name of each volume"
        yield at(steps, "KERF-EC2-114", "error", message, "add deviceName, such as /dev/xvda", True)
    elif isinstance(name, str):
        if name in names:
            message = f"{shown(name)} is the device of two volumes"
            yield at(steps, "KERF-EC2-114", "error", message, "give each volume its own deviceName", name)
        names.add(name)


def _size(place: Steps, kind: str, ebs: Mapping[str, Any]) -> Iterator[Problem]:
    size, (least, most) = _gib(ebs), _TYPES[kind].sizes
    steps, value = (*place, "volumeSize"), ebs.get("volumeSize")
    if size is not None and size < least:
        message = f"{kind} volumes have at least {least} GiB"
        yield at(steps, "KERF-EC2-113", "error", message, f"use {least}Gi or more, or gp3", value)
    elif size is not None and size > most:
        yield at(steps, "KERF-EC2-220", "warning", f"{kind} volumes have at most {most} GiB", _smaller(kind), value)


def _smaller(kind: str) -> str:
    return "use a smaller size" if kind == "gp3" else "use a smaller size, or gp3"


def _iops(place: Steps, kind: str, ebs: Mapping[str, Any]) -> Iterator[Problem]:
    iops, limits, steps = _number(ebs, "iops"), _TYPES[kind].iops, (*place, "iops")
    if limits is None:
        if iops:
            message = f"IOPS cannot be set for {kind} volumes"
            yield at(steps, "KERF-EC2-113", "error", message, "remove iops, or use gp3", iops)
        return
    least, most = limits
    if not iops:
        if kind in _IOPS_REQUIRED:
            message = f"EC2 needs iops for {kind} volumes"
            yield at(place, "KERF-EC2-113", "error", message, f"add iops: {least} or more, or use gp3", True)
        return
    size = _gib(ebs)
    most = min(most, max(least, _TYPES[kind].ratio * size)) if size is not None else most
    if iops < least:
        message = f"{kind} volumes have at least {least} IOPS"
        yield at(steps, "KERF-EC2-113", "error", message, f"use {least} or more", iops)
    elif iops > most:
        beside = "" if size is None else " of this size"
        message = f"{kind} volumes{beside} have at most {most} IOPS"
        yield at(steps, "KERF-EC2-220", "warning", message, f"use {most} or less", iops)


def _throughput(place: Steps, kind: str, ebs: Mapping[str, Any]) -> Iterator[Problem]:
    throughput, steps, (least, most) = _number(ebs, "throughput"), (*place, "throughput"), _THROUGHPUT
    if not throughput:
        return
    iops = _number(ebs, "iops") or _BASE_IOPS
    if kind != "gp3":
        message = f"throughput cannot be set for {kind} volumes"
        yield at(steps, "KERF-EC2-113", "error", message, "remove throughput, or use gp3", throughput)
    elif throughput < least:
        message = f"gp3 volumes have at least {least} MiB/s"
        yield at(steps, "KERF-EC2-113", "error", message, f"use {least} or more", throughput)
    elif throughput > most:
        message = f"gp3 volumes have at most {most} MiB/s"
        yield at(steps, "KERF-EC2-220", "warning", message, f"use {most} or less", throughput)
    elif throughput > iops * _THROUGHPUT_RATIO:
        message = f"with {iops} IOPS gp3 volumes have at most {int(iops * _THROUGHPUT_RATIO)} MiB/s"
        hint = f"set iops to {int(throughput / _THROUGHPUT_RATIO)} or more, or use a smaller throughput"
        yield at(steps, "KERF-EC2-220", "warning", message, hint, throughput)


def _number(ebs: Mapping[str, Any], field: str) -> int | None:
    """None for what is no number; the schema reports it. A field of 0 counts as absent."""
    found = ebs.get(field)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _gib(ebs: Mapping[str, Any]) -> int | None:
    """The size in GiB, rounded up as for EC2; None without one."""
    size = amount(ebs.get("volumeSize"))
    return None if size is None else int(-(-size // _GIB))
