"""What the API server lets through in an EC2NodeClass and launches then trip over, or quietly read otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kerf_api.kubelet import rules as kubelet
from kerf_api.kubelet.schema import SCHEMA
from kerf_api.lint import nearest
from kerf_api.lint.problem import Problem, Steps, at, shown
from kerf_api.lint.reading.reading import entries, mapping, part
from kerf_api.lint.rules import rules_launch, rules_selectors, rules_volumes
from kerf_api.v1.ec2nodeclass import ALIAS_FAMILIES

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
    kubelet.UNREADABLE: "KERF-EC2-105",
    kubelet.UNSUPPORTED: "KERF-EC2-106",
}
_KUBELET_HINTS: Final = {
    kubelet.UNREADABLE: "write a number, a quantity, or an expression such as min(vcpus * 8, 110)",
    kubelet.UNSUPPORTED: "AL2023 accepts every field; else set it in the user data",
}
#: What is wrong with user data that cannot be read: MIME, but for this family.
_MALFORMED: Final = {"Bottlerocket": "KERF-EC2-108"}
_DOUBTS: Final = {
    "little space": "KERF-EC2-207",
    "another family": "KERF-EC2-208",
    "no script": "KERF-EC2-209",
    "unknown type": "KERF-EC2-210",
    "no NodeConfig": "KERF-EC2-211",
    "replaced": "KERF-EC2-212",
    "tags": "KERF-EC2-213",
    "repeated": "KERF-EC2-216",
    "open end": "KERF-EC2-217",
    "no table": "KERF-EC2-223",
}
_USER_DATA_HINTS: Final = {
    "KERF-EC2-103": "keep a short script that fetches the rest",
    "KERF-EC2-107": "name a boundary, begin each part with --boundary, end the last with --boundary--",
    "KERF-EC2-108": "Bottlerocket reads settings in TOML; put commands into a bootstrap container",
    "KERF-EC2-207": "keep a short script that fetches the rest",
    "KERF-EC2-208": "rewrite it, or correct amiFamily",
    "KERF-EC2-209": "begin with #!/bin/bash; put other content into a MIME archive, with its type",
    "KERF-EC2-210": "use a type such as text/x-shellscript or text/cloud-config",
    "KERF-EC2-211": "put other content into a MIME archive, with its type",
    "KERF-EC2-212": "remove it",
    "KERF-EC2-213": "write the commands alone",
    "KERF-EC2-216": "remove the command, or instanceStorePolicy",
    "KERF-EC2-217": "write -- after the last boundary, too",
    "KERF-EC2-223": 'write [settings.kubernetes.node-labels] and a line such as "example.com/team" = "a" for each',
}


def check(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Every run-time fault of an EC2NodeClass whose defaults are filled in."""
    if manifest.get("spec") is None:
        hint = "write role, amiSelectorTerms, subnetSelectorTerms and securityGroupSelectorTerms"
        yield at(("spec",), "KERF-EC2-222", "warning", "the EC2NodeClass has no field for the launch of a node", hint)
        return
    for steps, term in entries(manifest, "spec", "amiSelectorTerms"):
        yield from _alias((*steps, "alias"), term.get("alias"))
    for steps, device in entries(manifest, "spec", "blockDeviceMappings"):
        yield from _volume_size((*steps, "ebs", "volumeSize"), part(device, "ebs", "volumeSize"))
    yield from _user_data(manifest)
    yield from rules_launch.check(manifest, _family(manifest))
    yield from rules_volumes.check(manifest, _family(manifest))
    yield from _kubelet(manifest)
    yield from rules_selectors.check(manifest)
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
    map_ = mapping(manifest, "spec", "kubelet")
    faults = kubelet.faults(map_, _family(manifest)) if map_ else []
    for fault in faults:
        place = ("spec", "kubelet", *fault.steps)
        field = str(fault.steps[-1])
        close = nearest.name(field, SCHEMA) if fault.words.startswith("unknown field") else None
        hint = f"did you mean {close}?" if close else _KUBELET_HINTS.get(fault.reason, "")
        yield at(place, _KUBELET_RULES[fault.reason], "error", fault.words, hint)
    for steps, text in () if faults else kubelet.formulas(map_):
        message = f"{kubelet.written(steps)} is an expression, and those need the feature gate NodeClassCEL"
        hint = f"write {text}, without quotes" if text.isdecimal() else "open it (AWS_FEATURE_GATES), or write a number"
        yield at(("spec", "kubelet", *steps), "KERF-EC2-215", "warning", message, hint, text[:40])


def _family(manifest: Mapping[str, Any]) -> str:
    """The AMI family that the class is for: amiFamily, else that of the alias, else Custom."""
    written = part(manifest, "spec", "amiFamily")
    aliases = [term.get("alias") for _, term in entries(manifest, "spec", "amiSelectorTerms")]
    families = [ALIAS_FAMILIES.get(alias.partition("@")[0], "") for alias in aliases if isinstance(alias, str)]
    return written if isinstance(written, str) else next(filter(None, families), "Custom")


def _user_data(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """The text is open for the API server too; a faulty one keeps the class from Ready, a doubtful one the node."""
    place, text = ("spec", "userData"), part(manifest, "spec", "userData")
    if not isinstance(text, str) or not text:
        if part(manifest, "spec", "amiFamily") == "Custom":
            message = "is empty, and nodes of the family Custom get no other user data"
            yield at(
                place,
                "KERF-EC2-214",
                "info",
                message,
                "add the commands with which the nodes join the cluster, unless the image has them",
            )
        return
    from kerf_api.userdata import (  # readers of MIME, TOML and YAML, which start slowly; most classes need none
        doubts,
        rules,
    )

    family = _family(manifest)
    raid0 = part(manifest, "spec", "instanceStorePolicy") == "RAID0"
    fault = rules.fault(family, text, raid0=raid0)
    if fault is not None:
        rule = "KERF-EC2-103" if fault.reason == rules.TOO_LARGE else _MALFORMED.get(family, "KERF-EC2-107")
        yield at(place, rule, "error", fault.words, _USER_DATA_HINTS[rule], text[:40])
        return
    for doubt in doubts.doubts(family, text, raid0=raid0):
        rule = _DOUBTS[doubt.kind]
        yield at(place, rule, "warning", doubt.words, _USER_DATA_HINTS[rule], text[:40])


def _ignored(steps: Steps, term: Mapping[str, Any], rule: str, winner: str, losers: Sequence[str]) -> Iterator[Problem]:
    """Terms that Karpenter admits although one field makes it ignore the others."""
    ignored = [field for field in losers if field in term]
    if winner in term and ignored:
        message = f"{winner} is used and {' and '.join(ignored)} ignored"
        yield at(steps, rule, "warning", message, "make separate terms, or remove what is not meant", dict(term))
