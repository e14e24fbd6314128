"""EBS volumes of launch templates and of RunInstances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from .rule import API, EBS, LAUNCHES, Call, Parameters, outside, rule

_VOLUME: Final = f"{API}EbsBlockDevice.html"
_CREATE: Final = f"{API}CreateVolume.html"
#: GiB, least and most. Source: EbsBlockDevice, VolumeSize.
SIZES: Final = {
    "gp2": (1, 16384),
    "gp3": (1, 65536),
    "io1": (4, 16384),
    "io2": (4, 65536),
    "st1": (125, 16384),
    "sc1": (125, 16384),
    "standard": (1, 1024),
}
#: Least and most. Source: EbsBlockDevice, Iops.
IOPS: Final = {"gp3": (3000, 80000), "io1": (100, 64000), "io2": (100, 256000)}
#: IOPS for each GiB at most. Source: Amazon EBS user guide, General Purpose and Provisioned IOPS SSD volumes.
RATIOS: Final = {"gp3": 500, "io1": 50, "io2": 1000}
#: IOPS and MiB/s that every gp3 volume has.
BASE_IOPS: Final = 3000
BASE_THROUGHPUT: Final = 125


def _type(volume: Parameters) -> Any:
    return volume.get("VolumeType", "gp2")


@rule(*LAUNCHES, address=f"{API}BlockDeviceMapping.html", code="InvalidBlockDeviceMapping")
def device_names(call: Call) -> Iterator[str]:
    """Each block device mapping has a device name of its own."""
    names = [one.get("DeviceName") for one in call.launch.get("BlockDeviceMappings") or ()]
    if not all(names):
        yield "a block device mapping without DeviceName"
    elif len({*names}) < len(names):
        yield f"device names {names} repeat"


@rule(*LAUNCHES, address=_VOLUME)
def volume_size(call: Call) -> Iterator[str]:
    """The size of a volume is within the limits of its type."""
    for one in call.volumes:
        for text in outside(one, "VolumeSize", *SIZES.get(_type(one), (1, 65536))):
            yield f"{_type(one)}: {text}"


@rule(*LAUNCHES, address=_VOLUME, code="MissingParameter")
def volume_size_or_snapshot(call: Call) -> Iterator[str]:
    """A volume has a size or a snapshot."""
    for one in call.volumes:
        if not one.get("VolumeSize") and not one.get("SnapshotId"):
            yield "a volume without VolumeSize and SnapshotId"


@rule(*LAUNCHES, address=_VOLUME)
def volume_iops(call: Call) -> Iterator[str]:
    """The provisioned IOPS of a volume are within the limits of its type."""
    for one in call.volumes:
        if _type(one) in IOPS:
            for text in outside(one, "Iops", *IOPS[_type(one)]):
                yield f"{_type(one)}: {text}"


@rule(*LAUNCHES, address=_VOLUME, code="InvalidParameterCombination")
def volume_iops_types(call: Call) -> Iterator[str]:
    """IOPS are supported for io1, io2 and gp3 volumes only."""
    for one in call.volumes:
        if "Iops" in one and _type(one) not in IOPS:
            yield f"Iops of a {_type(one)} volume"


@rule(*LAUNCHES, address=_VOLUME, code="MissingParameter")
def volume_iops_required(call: Call) -> Iterator[str]:
    """IOPS are required for io1 and io2 volumes."""
    for one in call.volumes:
        if _type(one) in ("io1", "io2") and "Iops" not in one:
            yield f"a volume of type {_type(one)} without Iops"


@rule(*LAUNCHES, address=f"{EBS}general-purpose.html")
def volume_iops_ratio(call: Call) -> Iterator[str]:
    """A gp3 volume has up to 500 IOPS for each GiB above its 3000, an io1 volume up to 50, an io2 volume up to 1000."""
    for one in call.volumes:
        ratio, base = RATIOS.get(_type(one)), BASE_IOPS if _type(one) == "gp3" else 100
        if ratio and one.get("VolumeSize") and one.get("Iops", 0) > max(base, ratio * one["VolumeSize"]):
            yield f"{one['Iops']} IOPS on {one['VolumeSize']} GiB of {_type(one)}"


@rule(*LAUNCHES, address=_VOLUME, code="InvalidParameterCombination")
def volume_throughput_types(call: Call) -> Iterator[str]:
    """Throughput is valid only for gp3 volumes."""
    for one in call.volumes:
        if "Throughput" in one and _type(one) != "gp3":
            yield f"Throughput of a {_type(one)} volume"


@rule(*LAUNCHES, address=_VOLUME)
def volume_throughput(call: Call) -> Iterator[str]:
    """The throughput of a gp3 volume is 125 to 2000 MiB/s."""
    for one in call.volumes:
        yield from outside(one, "Throughput", BASE_THROUGHPUT, 2000)


@rule(*LAUNCHES, address=f"{EBS}general-purpose.html")
def volume_throughput_ratio(call: Call) -> Iterator[str]:
    """A gp3 volume has up to 0.25 MiB/s for each provisioned IOPS."""
    for one in call.volumes:
        if _type(one) == "gp3" and one.get("Throughput", 0) > one.get("Iops", BASE_IOPS) / 4:
            yield f"{one['Throughput']} MiB/s with {one.get('Iops', BASE_IOPS)} IOPS"


@rule(*LAUNCHES, address=_VOLUME)
def volume_initialization(call: Call) -> Iterator[str]:
    """The initialization rate is 100 to 300 MiB/s, for volumes from snapshots only."""
    for one in call.volumes:
        yield from outside(one, "VolumeInitializationRate", 100, 300)
        if "VolumeInitializationRate" in one and not one.get("SnapshotId"):
            yield "VolumeInitializationRate without SnapshotId"


@rule(*LAUNCHES, address=_CREATE, code="InvalidParameterDependency")
def volume_key(call: Call) -> Iterator[str]:
    """A volume with a KMS key is encrypted."""
    for one in call.volumes:
        if one.get("KmsKeyId") and not one.get("Encrypted"):
            yield "KmsKeyId without Encrypted"
