"""Machine images that a node class selects: by alias through public SSM parameters, or by ID, name, tags, owner.

An alias names a family and a version; AWS publishes one parameter per architecture and variant. All that was found is
told; which image wins among equals is decided in the ec2 room. Source: Amazon EKS user guide, "Retrieve recommended
Amazon Linux AMI IDs"; Bottlerocket, "QUICKSTART-EKS".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from api.v1.ec2nodeclass import SelectorTerm
from reconciler.aws.clients import Clients, pages
from reconciler.aws.errors import translated
from reconciler.aws.networks import Filters, tag_filters
from reconciler.aws.parallel import each
from reconciler.aws.types import ARCHITECTURES
from reconciler.model.cloud import Image
from reconciler.ports import AlreadyGone, Invalid

LATEST: Final = "latest"
WINDOWS_BUILDS: Final = {"2019": "10.0.17763", "2022": "10.0.20348", "2025": "10.0.26100"}
STANDARD, NVIDIA, NEURON = "standard", "nvidia", "neuron"


@dataclass(frozen=True, slots=True)
class Source:
    """One public parameter and the variants that its image serves."""

    path: str
    variants: tuple[str, ...] = (STANDARD,)
    windows_build: str = ""


class UnsupportedAlias(Exception):
    """This family does not exist for this Kubernetes version; only a person can change that."""


class ImageReader:
    """Resolves image terms. Remembers the parameters of pinned versions: what those say never changes."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._pinned: dict[str, str] = {}

    def read(self, terms: Sequence[SelectorTerm], version: str) -> tuple[Image, ...]:
        """The images that the terms select. `version` is Kubernetes' minor version, such as `1.34`.

        Raises UnsupportedAlias when no such image exists for this version.
        """
        alias = next((term.alias for term in terms if term.alias), "")
        found = self._by_alias(alias, version) if alias else self._by_terms(terms)
        return tuple(sorted((one for one in found if one.architecture), key=lambda one: (one.id, one.variant)))

    def _by_alias(self, alias: str, version: str) -> list[Image]:
        sources = alias_sources(alias, version)
        read = self._parameter if alias.partition("@")[2] == LATEST else self._pinned_parameter
        ids = each(lambda source: read(source.path), sources)
        resolved = {id_ for id_ in ids if id_.startswith("ami-")}
        rows = self._describe({"Filters": _by_id(resolved)}) if resolved else []
        described = {row["ImageId"]: row for row in rows}
        return [
            replace(image(described[id_]), variant=variant, windows_build=source.windows_build)
            for source, id_ in zip(sources, ids, strict=True)
            if id_ in described
            for variant in source.variants
        ]

    def _by_terms(self, terms: Sequence[SelectorTerm]) -> list[Image]:
        ids = {term.id for term in terms if term.id}
        named = [term.ssm_parameter for term in terms if term.ssm_parameter]
        ids |= {id_ for id_ in (self._parameter(name) for name in named) if id_.startswith("ami-")}
        queries: list[dict[str, Any]] = [{"Filters": _by_id(ids)}] if ids else []
        queries += [query(term) for term in terms if not term.id and not term.ssm_parameter]
        answers = each(self._describe, queries)
        return [image(row) for answer in answers for row in answer]

    def _pinned_parameter(self, name: str) -> str:
        if not self._pinned.get(name):
            self._pinned[name] = self._parameter(name)
        return self._pinned[name]

    def _parameter(self, name: str) -> str:
        """The value of an SSM parameter; empty when there is none (not every family has every variant)."""
        try:
            with translated("ssm:GetParameter"):
                answer = self._clients.get("ssm").get_parameter(Name=name)
        except (AlreadyGone, Invalid):
            return ""
        return str(answer["Parameter"]["Value"])

    def _describe(self, query: Mapping[str, Any]) -> list[Any]:
        filters = [*query["Filters"], {"Name": "state", "Values": ["available"]}]
        parameters = {**query, "Filters": filters, "IncludeDeprecated": True}
        with translated("ec2:DescribeImages"):
            return pages(
                self._clients.get("ec2"),
                "describe_images",
                "Images",
                PaginationConfig={"PageSize": 1000},
                **parameters,
            )


def alias_sources(alias: str, version: str) -> tuple[Source, ...]:
    """The parameters behind an alias such as `al2023@latest` for a Kubernetes version such as `1.34`."""
    family, _, pinned = alias.partition("@")
    family = family.lower()
    if not version:
        raise UnsupportedAlias(f"the Kubernetes version is not known, so alias {alias!r} names no image")
    if family.startswith("windows"):
        return _windows(family.removeprefix("windows"), version)
    builders = {"al2": _al2, "al2023": _al2023, "bottlerocket": _bottlerocket}
    if family not in builders:
        raise UnsupportedAlias(f"alias {alias!r} names no known image family")
    return builders[family](version, pinned)


def _al2(version: str, pinned: str) -> tuple[Source, ...]:
    if _minor(version) >= 33:
        raise UnsupportedAlias(f"Amazon Linux 2 images do not exist for Kubernetes {version} (the last was 1.32)")

    def path(name: str, prefix: str) -> str:
        release = "recommended" if pinned == LATEST else f"{prefix}-{version}-{pinned}"
        return f"/aws/service/eks/optimized-ami/{version}/{name}/{release}/image_id"

    return (
        Source(path("amazon-linux-2", "amazon-eks-node")),
        Source(path("amazon-linux-2-arm64", "amazon-eks-arm64-node")),
        Source(path("amazon-linux-2-gpu", "amazon-eks-gpu-node"), (NEURON, NVIDIA)),
    )


def _al2023(version: str, pinned: str) -> tuple[Source, ...]:
    def path(architecture: str, variant: str) -> str:
        name = f"amazon-eks-node-al2023-{architecture}-{variant}-{version}-{pinned}"
        release = "recommended" if pinned == LATEST else name
        return f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{architecture}/{variant}/{release}/image_id"

    published = {"x86_64": (STANDARD, NVIDIA, NEURON), "arm64": (STANDARD, NVIDIA)}
    return tuple(
        Source(path(arch, variant), (variant,)) for arch, variants in published.items() for variant in variants
    )


def _bottlerocket(version: str, pinned: str) -> tuple[Source, ...]:
    def path(name: str, architecture: str) -> str:
        return f"/aws/service/bottlerocket/{name}/{architecture}/{pinned.removeprefix('v')}/image_id"

    plain, nvidia = f"aws-k8s-{version}", f"aws-k8s-{version}-nvidia"
    return (
        Source(path(plain, "x86_64"), (STANDARD, NEURON)),
        Source(path(plain, "arm64")),
        Source(path(nvidia, "x86_64"), (NVIDIA,)),
        Source(path(nvidia, "arm64"), (NVIDIA,)),
    )


def _windows(year: str, version: str) -> tuple[Source, ...]:
    if year == "2025" and _minor(version) < 35:
        raise UnsupportedAlias(f"Windows Server 2025 images need Kubernetes 1.35; this is {version}")
    if year not in WINDOWS_BUILDS:
        raise UnsupportedAlias(f"there is no image family for Windows Server {year}")
    path = f"/aws/service/ami-windows-latest/Windows_Server-{year}-English-Core-EKS_Optimized-{version}/image_id"
    return (Source(path, windows_build=WINDOWS_BUILDS[year]),)


def _minor(version: str) -> int:
    digits = version.partition(".")[2].partition(".")[0].rstrip("+")
    return int(digits) if digits.isdigit() else 0


def _by_id(ids: Iterable[str]) -> Filters:
    return [{"Name": "image-id", "Values": sorted(ids)}]


def query(term: SelectorTerm) -> dict[str, Any]:
    """One DescribeImages for a term of tags, name and owner. A name alone is looked for among our own and Amazon's."""
    filters = tag_filters(term.tags)
    if term.name:
        filters.append({"Name": "name", "Values": [term.name]})
    owners = [term.owner] if term.owner else ["self", "amazon"] if term.name else []
    return {"Filters": filters, "Owners": owners} if owners else {"Filters": filters}


def image(row: Mapping[str, Any], now: datetime | None = None) -> Image:
    """One element of `Images`; the architecture of an unknown kind is empty."""
    until = row.get("DeprecationTime", "")
    stamp = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return Image(
        id=row["ImageId"],
        name=row.get("Name", ""),
        architecture=ARCHITECTURES.get(row.get("Architecture", ""), ""),
        created=row.get("CreationDate", ""),
        deprecated=bool(until) and until <= stamp,
    )
