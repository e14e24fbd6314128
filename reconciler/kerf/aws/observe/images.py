"""Machine images that a node class selects: by alias through public SSM parameters, or by ID, name, tags, owner.

An alias names a family and a version; AWS publishes one parameter per architecture and variant. All that was found is
reported; which image wins among equals is decided in the ec2 room. Source: Amazon EKS user guide, "Retrieve recommended
Amazon Linux AMI IDs"; Bottlerocket, "QUICKSTART-EKS".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kerf.aws.observe.networks import Filters, tag_filters
from kerf.aws.observe.types import ARCHITECTURES
from kerf.aws.requests.answers import FOR_EVER, Answers, Ask, just_under
from kerf.aws.requests.clients import Clients, pages
from kerf.aws.requests.errors import translated
from kerf.aws.requests.parallel import each
from kerf.model.aws.cloud import Image
from kerf.ports import AlreadyGone, Invalid
from kerf_api.v1.ec2nodeclass import SelectorTerm

LATEST: Final = "latest"
WINDOWS_BUILDS: Final = {"2019": "10.0.17763", "2022": "10.0.20348", "2025": "10.0.26100"}
STANDARD, NVIDIA, NEURON = "standard", "nvidia", "neuron"
#: How long a parameter of a user's own is remembered at most.
CUSTOM_SECONDS: Final = just_under(timedelta(minutes=5))
_PARAMETER: Final = "get_parameter"


@dataclass(frozen=True, slots=True)
class Source:
    """One public parameter and the variants that its image serves."""

    path: str
    variants: tuple[str, ...] = (STANDARD,)
    windows_build: str = ""


@dataclass(frozen=True, slots=True)
class Selected:
    """The images that terms select, by ID and variant; `complete` if each term, ID and parameter selected one."""

    images: tuple[Image, ...] = ()
    complete: bool = False


class UnsupportedAlias(Exception):
    """This family does not exist for this Kubernetes version; only a person can change that."""


class ImageReader:
    """Resolves image terms. What a parameter said is remembered: of a pinned version for ever, for that never changes;
    of the latest one for `latest_seconds`, of a user's own for CUSTOM_SECONDS at most, and not once its image is
    deprecated, or not to be had any more.
    """

    def __init__(self, clients: Clients, answers: Answers, latest_seconds: float) -> None:
        self._clients, self._answers, self._latest_seconds = clients, answers, latest_seconds

    def read(self, terms: Sequence[SelectorTerm], version: str, ask: Ask) -> Selected:
        """The images that the terms select. `version` is Kubernetes' minor version, such as `1.34`.

        Raises UnsupportedAlias when no such image exists for this version.
        """
        alias = next((term.alias for term in terms if term.alias), "")
        found, complete = self._by_alias(alias, version, ask) if alias else self._by_terms(terms, ask)
        usable = sorted((one for one in found if one.architecture), key=lambda one: (one.id, one.variant))
        return Selected(tuple(usable), complete)

    def _by_alias(self, alias: str, version: str, ask: Ask) -> tuple[list[Image], bool]:
        sources = alias_sources(alias, version)
        seconds = self._latest_seconds if alias.partition("@")[2] == LATEST else FOR_EVER
        named, found, complete = self._look({source.path: seconds for source in sources}, set(), [], ask)
        described = {one.id: one for one in found}
        selected = [
            replace(described[id_], variant=variant, windows_build=source.windows_build)
            for source in sources
            if (id_ := named.get(source.path)) in described
            for variant in source.variants
        ]
        return selected, complete

    def _by_terms(self, terms: Sequence[SelectorTerm], ask: Ask) -> tuple[list[Image], bool]:
        seconds = min(CUSTOM_SECONDS, self._latest_seconds)
        parameters = {term.ssm_parameter: seconds for term in terms if term.ssm_parameter}
        ids = {term.id for term in terms if term.id}
        queries = [query(term) for term in terms if not term.id and not term.ssm_parameter]
        _, found, complete = self._look(parameters, ids, queries, ask)
        return found, complete

    def _look(
        self, parameters: Mapping[str, float], ids: set[str], queries: Sequence[dict[str, Any]], ask: Ask
    ) -> tuple[dict[str, str], list[Image], bool]:
        """What the parameters (each with how long it is remembered) name, these and all other images asked for, and
        whether each of what was asked for is there.

        Where a remembered parameter names an image that no longer exists, all of it is asked again.
        """
        for again in (True, False):
            remembered = {name for name in parameters if self._answers.knows((_PARAMETER, name))}
            named = self._named(parameters)
            wanted = ids.union(named.values())
            asked = [*([{"Filters": _by_id(wanted)}] if wanted else []), *queries]
            answers = each(lambda one: ask(("describe_images", repr(one)), lambda: self._describe(one)), asked)
            found = [image(row) for answer in answers for row in answer]
            outdated = self._outdated(parameters, named, found)
            if not (again and outdated & remembered):
                break
        complete = parameters.keys() <= named.keys() and wanted <= {one.id for one in found} and all(answers)
        return named, found, complete

    def _named(self, parameters: Mapping[str, float]) -> dict[str, str]:
        """Image IDs by parameter, of those that name one."""

        def value(name: str) -> str:
            return self._answers.ask((_PARAMETER, name), lambda: self._parameter(name), parameters[name])

        ids = zip(parameters, each(value, parameters), strict=True)
        return {name: id_ for name, id_ in ids if id_.startswith("ami-")}

    def _outdated(self, parameters: Mapping[str, float], named: Mapping[str, str], found: Iterable[Image]) -> set[str]:
        """The parameters that may name another image by now; what they said is forgotten."""
        good = {one.id for one in found if not one.deprecated}
        outdated = {name for name, kept in parameters.items() if kept < FOR_EVER and named.get(name) not in good}
        self._answers.forget(lambda key: key[0] == _PARAMETER and key[1] in outdated)
        return outdated

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
