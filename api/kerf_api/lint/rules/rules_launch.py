"""What EC2 refuses to launch, or what nodes then lack, although the API server accepts the EC2NodeClass.

Sources: EC2 API reference, InstanceNetworkInterfaceSpecification; EC2 user guide, "Tag your resources"; IAM user guide,
"IAM and AWS STS quotas"; AWS provider reference §5.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kerf_api.labels import TAG_NAME
from kerf_api.lint.problem import Problem, at, shown
from kerf_api.lint.reading import placeholders
from kerf_api.lint.reading.reading import entries, mapping, part
from kerf_api.v1.ec2nodeclass import EPHEMERAL_DEVICES

#: EC2's limit for a resource; and what Kerf sets: five tags at the launch, the NodeClaim's name and Name later.
_MOST_TAGS: Final = 50
OWN_TAGS: Final = 7
#: Of characters.
_LONGEST_KEY, _LONGEST_VALUE = 128, 256
#: Capacity of a disk without a size; of Windows' disk it is that of the family's default volume.
_ASSUMED, _ASSUMED_OF_WINDOWS = "20Gi", "50Gi"


def check(manifest: Mapping[str, Any], family: str) -> Iterator[Problem]:
    """The problems of a class of this AMI family."""
    yield from _public_address(manifest)
    yield from _tags(manifest)
    for field, kind, longest in (("role", "role", 64), ("instanceProfile", "instance profile", 128)):
        yield from _identity(field, kind, longest, part(manifest, "spec", field))
    yield from _metadata(part(manifest, "spec", "metadataOptions", "httpEndpoint"))
    if part(manifest, "spec", "instanceStorePolicy") != "RAID0":
        yield from _disk(manifest, family)
    elif family == "Custom" or family.startswith("Windows"):
        yield from _unmounted(family)


def _public_address(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    number = sum(1 for _ in entries(manifest, "spec", "networkInterfaces"))
    if number > 1 and part(manifest, "spec", "associatePublicIPAddress") is True:
        message = f"EC2 refuses a public address for an instance with {number} network interfaces"
        hint = "remove it, or keep one entry of networkInterfaces"
        yield at(("spec", "associatePublicIPAddress"), "KERF-EC2-109", "error", message, hint, True)


def _tags(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    tags, place = mapping(manifest, "spec", "tags"), ("spec", "tags")
    own = OWN_TAGS - (TAG_NAME in tags)
    if len(tags) > _MOST_TAGS - own:
        message = f"has {len(tags)} tags; EC2 allows {_MOST_TAGS}, and {own} are Kerf's own"
        yield at(place, "KERF-EC2-110", "error", message, f"keep {_MOST_TAGS - own} at most")
    for key, value in tags.items():
        if not isinstance(key, str):
            continue
        if key.lower().startswith("aws:"):
            message = f"{shown(key)} begins with aws:, which is for AWS alone"
            yield at((*place, key), "KERF-EC2-111", "error", message, "give the tag another name", value)
        elif len(key) > _LONGEST_KEY or (isinstance(value, str) and len(value) > _LONGEST_VALUE):
            message = f"a tag's name has at most {_LONGEST_KEY} characters, and its value {_LONGEST_VALUE}"
            yield at((*place, key), "KERF-EC2-112", "error", message, "shorten it")


def _identity(field: str, kind: str, longest: int, name: Any) -> Iterator[Problem]:
    """IAM refuses any other name. The path of a role is left out, as by the controller; a placeholder is not judged."""
    if not isinstance(name, str) or not name or placeholders.find(name):
        return
    last = name.rpartition("/")[2]
    if re.fullmatch(rf"[\w+=,.@-]{{1,{longest}}}", last if field == "role" else name, re.ASCII):
        return
    message = f"{shown(name)} is no name of {kind}s in IAM: 1 to {longest} letters, digits and +=,.@_-"
    hint = f"use {shown(last)}" if last != name and 0 < len(last) <= longest else f"write the name of the {kind}"
    yield at(("spec", field), "KERF-EC2-115", "error", message, hint, name)


def _metadata(endpoint: Any) -> Iterator[Problem]:
    if endpoint == "disabled":
        message = (
            "nodes read their user data and credentials from this endpoint, and do not join the cluster without it"
        )
        place = ("spec", "metadataOptions", "httpEndpoint")
        yield at(place, "KERF-EC2-221", "warning", message, "use enabled, with httpTokens: required", endpoint)


def _unmounted(family: str) -> Iterator[Problem]:
    """Pods are planned for these disks on every family; only user data that Kerf writes can make the node use them."""
    message = f"{family} nodes do not join the disks of the instance, but pods are planned for their size"
    hint = "remove it, and set rootVolume: true and volumeSize on the disk for the files of pods"
    if family == "Custom":
        message = "your own user data must join the disks of the instance: pods are planned for their size"
        hint = "let the user data give them to the kubelet and the container runtime, or remove it"
    yield at(("spec", "instanceStorePolicy"), "KERF-EC2-225", "warning", message, hint, "RAID0")


def _disk(manifest: Mapping[str, Any], family: str) -> Iterator[Problem]:
    """The disk that holds the files of pods has no size that can be known, so nodes get too few pods or too many."""
    place, rows = ("spec", "blockDeviceMappings"), list(entries(manifest, "spec", "blockDeviceMappings"))
    if not rows or any(row.get("rootVolume") is True and _sized(row) for _, row in rows):
        return
    device = EPHEMERAL_DEVICES.get(family, "")
    named = [(steps, row) for steps, row in rows if row.get("deviceName") == device] if device else rows[-1:]
    if any(_sized(row) for _, row in named):
        return
    hint = "set rootVolume: true and volumeSize on the disk for the files of pods"
    assumed = _ASSUMED_OF_WINDOWS if family.startswith("Windows") else _ASSUMED
    if named:
        message = f"the size of this disk is not known from the EC2NodeClass: pods are planned for {assumed} of storage"
        yield at((*named[0][0], "ebs"), "KERF-EC2-218", "warning", message, f"add volumeSize; {hint}")
    else:
        message = f"no entry is for {device}, where {family} has the files of pods: they are planned for {assumed}"
        yield at(place, "KERF-EC2-218", "warning", message, hint)


def _sized(row: Mapping[str, Any]) -> bool:
    return bool(part(row, "ebs", "volumeSize"))
