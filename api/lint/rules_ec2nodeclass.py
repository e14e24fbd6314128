"""What the API server lets through in an EC2NodeClass and launches then trip over, or quietly read otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api.kubelet import rules as kubelet
from api.kubelet.schema import SCHEMA
from api.v1.ec2nodeclass import ALIAS_FAMILIES

from . import nearest
from .problem import Problem, Steps, at, shown
from .reading import entries, mapping, part

#: EC2's limit on the user data of an instance, in bytes before base64.
USER_DATA_BYTES: Final = 16384

#: For each list of terms: rule, the field that wins, and the fields that are ignored beside it.
_WINNERS: Final[Sequence[tuple[str, str, str, tuple[str, ...]]]] = (
    ("subnetSelectorTerms", "KERF-EC2-201", "id", ("tags",)),
    ("securityGroupSelectorTerms", "KERF-EC2-202", "id", ("tags", "name")),
    ("securityGroupSelectorTerms", "KERF-EC2-203", "name", ("tags",)),
    ("capacityReservationSelectorTerms", "KERF-EC2-204", "id", ("tags", "ownerID", "instanceMatchCriteria")),
    ("amiSelectorTerms", "KERF-EC2-205", "id", ("ssmParameter",)),
    ("amiSelectorTerms", "KERF-EC2-206", "alias", ("ssmParameter",)),
)
_KUBELET_RULES: Final = {
    kubelet.INVALID: "KERF-EC2-104",
    kubelet.DISABLED: "KERF-EC2-105",
    kubelet.UNSUPPORTED: "KERF-EC2-106",
}
_KUBELET_HINTS: Final = {
    kubelet.DISABLED: "write a number or a quantity",
    kubelet.UNSUPPORTED: "AL2023 takes every field; else set it in the user data",
}


def check(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Every run-time fault of an EC2NodeClass whose defaults are filled in."""
    for steps, term in entries(manifest, "spec", "amiSelectorTerms"):
        yield from _alias((*steps, "alias"), term.get("alias"))
    for steps, device in entries(manifest, "spec", "blockDeviceMappings"):
        yield from _volume_size((*steps, "ebs", "volumeSize"), part(device, "ebs", "volumeSize"))
    yield from _user_data(part(manifest, "spec", "userData"))
    yield from _kubelet(manifest)
    for field, rule, winner, losers in _WINNERS:
        for steps, term in entries(manifest, "spec", field):
            yield from _ignored(steps, term, rule, winner, losers)


def _alias(steps: Steps, alias: Any) -> Iterator[Problem]:
    if isinstance(alias, str) and alias.count("@") > 1:
        family, version = alias.split("@")[:2]
        hint = f"did you mean {family}@{version}?"
        yield at(steps, "KERF-EC2-101", "error", f"{shown(alias)} has more than one @", hint, alias)


def _volume_size(steps: Steps, size: Any) -> Iterator[Problem]:
    if size in ("Ti", "T"):
        yield at(steps, "KERF-EC2-102", "error", f'"{size}" is a unit without a number', f"did you mean 1{size}?", size)


def _kubelet(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """The map is open for the API server; the controller looks into it, and a faulty one keeps the class from Ready."""
    for fault in kubelet.faults(mapping(manifest, "spec", "kubelet"), _family(manifest)):
        place = ("spec", "kubelet", *fault.steps)
        field = str(fault.steps[-1])
        close = nearest.name(field, SCHEMA) if fault.words.startswith("unknown field") else None
        hint = f"did you mean {close}?" if close else _KUBELET_HINTS.get(fault.reason, "")
        yield at(place, _KUBELET_RULES[fault.reason], "error", fault.words, hint)


def _family(manifest: Mapping[str, Any]) -> str:
    """The AMI family that the class is for: amiFamily, else that of the alias, else Custom."""
    written = part(manifest, "spec", "amiFamily")
    aliases = [term.get("alias") for _, term in entries(manifest, "spec", "amiSelectorTerms")]
    families = [ALIAS_FAMILIES.get(alias.partition("@")[0], "") for alias in aliases if isinstance(alias, str)]
    return written if isinstance(written, str) else next(filter(None, families), "Custom")


def _user_data(text: Any) -> Iterator[Problem]:
    size = len(text.encode()) if isinstance(text, str) else 0
    if size > USER_DATA_BYTES:
        message = f"has {size} bytes; EC2 allows {USER_DATA_BYTES}, and what the node needs to join comes on top"
        hint = "keep a short script that fetches the rest"
        yield at(("spec", "userData"), "KERF-EC2-103", "error", message, hint, text[:40])


def _ignored(steps: Steps, term: Mapping[str, Any], rule: str, winner: str, losers: Sequence[str]) -> Iterator[Problem]:
    """Terms that Karpenter admits although one field makes it ignore the others."""
    ignored = [field for field in losers if field in term]
    if winner in term and ignored:
        message = f"{winner} is used and {' and '.join(ignored)} ignored"
        yield at(steps, rule, "warning", message, "make separate terms, or remove what is not meant", dict(term))
