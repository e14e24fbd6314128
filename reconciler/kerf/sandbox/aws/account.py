"""The AWS account around the instances: subnets, security groups, machine images, and what selectors make of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from kerf.model.aws.cloud import CapacityReservation, Image, SecurityGroup, Subnet
from kerf_api.v1.ec2nodeclass import ALIAS_FAMILIES, EC2NodeClass, SelectorTerm

DISCOVERY_TAG = "karpenter.sh/discovery"
_ADDRESSES = 8187


@dataclass(frozen=True, slots=True)
class Tagged:
    """A thing of the account with its tags."""

    thing: Subnet | SecurityGroup | Image | CapacityReservation
    tags: Mapping[str, str] = field(default_factory=dict)


def subnets(cluster: str, zones: tuple[str, ...]) -> tuple[Tagged, ...]:
    """One private subnet per zone, tagged for discovery."""
    return tuple(
        Tagged(
            Subnet(f"subnet-{number:017x}", zone, f"usw2-az{number}", _ADDRESSES),
            {DISCOVERY_TAG: cluster, "Name": f"{cluster}-private-{zone}", "kubernetes.io/role/internal-elb": "1"},
        )
        for number, zone in enumerate(zones, 1)
    )


def security_groups(cluster: str) -> tuple[Tagged, ...]:
    """The cluster's node group, tagged for discovery, and the VPC's default group, which is not."""
    node = SecurityGroup(f"sg-{1:017x}", f"{cluster}-node")
    return (
        Tagged(node, {DISCOVERY_TAG: cluster, "Name": node.name}),
        Tagged(SecurityGroup(f"sg-{2:017x}", "default")),
    )


@cache
def images(version: str) -> tuple[Tagged, ...]:
    """The two latest releases of each family's images for a Kubernetes version, newest first."""
    rows, later = [], (int(version.partition(".")[2]) - _FIRST_MINOR) % 1000
    for number, (alias, family) in enumerate(ALIAS_FAMILIES.items(), 1):
        for release, created in (("v20260101", "2025-12-28"), ("v20251201", "2025-11-28")):
            for code, (variant, architecture) in enumerate(_variants(alias), 1):
                name = f"{family.lower()}-{version}-{variant or 'core'}-{architecture}-{release}"
                key = later * 100_000 + number * 1000 + code * 10 + (1 if release == "v20260101" else 0)
                image = Image(f"ami-{key:017x}", name, architecture, f"{created}T00:00:00Z", variant=variant)
                image = replace(image, windows_build=_BUILDS.get(alias, ""))
                rows.append(Tagged(image, {"family": alias, "release": release, "Name": name}))
    return tuple(rows)


#: IDs of images are counted from this minor version of Kubernetes on.
_FIRST_MINOR = 34
_BUILDS = {"windows2019": "10.0.17763", "windows2022": "10.0.20348", "windows2025": "10.0.26100"}


def _variants(alias: str) -> tuple[tuple[str, str], ...]:
    if alias.startswith("windows"):
        return (("standard", "amd64"),)
    plain = (("standard", "amd64"), ("standard", "arm64"))
    return (*plain, ("nvidia", "amd64"), ("neuron", "amd64"))


def select(things: Iterable[Tagged], terms: Iterable[SelectorTerm]) -> list[Tagged]:
    """Those that at least one term selects, in their own order."""
    wanted = tuple(terms)
    return [one for one in things if any(_selects(term, one) for term in wanted)]


def _selects(term: SelectorTerm, one: Tagged) -> bool:
    if term.id:
        return one.thing.id == term.id
    if term.alias:
        return isinstance(one.thing, Image) and _aliased(term.alias, one.tags)
    if term.name and getattr(one.thing, "name", "") != term.name and term.name != "*":
        return False
    if isinstance(one.thing, CapacityReservation) and not _reserves(term, one.thing):
        return False
    tagged = all(key in one.tags and value in ("*", one.tags[key]) for key, value in term.tags.items())
    return tagged and bool(term.name or term.tags or term.instance_match_criteria)


def _reserves(term: SelectorTerm, one: CapacityReservation) -> bool:
    return term.owner_id in ("", one.owner) and term.instance_match_criteria in ("", one.criteria)


def _aliased(alias: str, tags: Mapping[str, str]) -> bool:
    family, _, version = alias.partition("@")
    release = "v20260101" if version in ("", "latest") else version
    return tags.get("family") == family and tags.get("release") == release


def images_of(things: Iterable[Tagged], node_class: EC2NodeClass) -> tuple[Image, ...]:
    """What amiSelectorTerms resolve to, the newest first."""
    found = [one.thing for one in select(things, node_class.spec.ami_selector_terms)]
    chosen = [image for image in found if isinstance(image, Image)]
    aliased = any(term.alias for term in node_class.spec.ami_selector_terms)
    if not aliased:
        chosen = [replace(image, variant="") for image in chosen]
    return tuple(sorted(chosen, key=lambda image: (_descending(image.created), image.variant, image.architecture)))


def images_complete(things: Iterable[Tagged], node_class: EC2NodeClass) -> bool:
    """Whether each of amiSelectorTerms selects an image."""
    known = tuple(things)
    return all(select(known, (term,)) for term in node_class.spec.ami_selector_terms)


def _descending(text: str) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in text)
