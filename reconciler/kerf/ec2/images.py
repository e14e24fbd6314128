"""Which machine image an instance type boots: the node class's images in order, each with what it demands of a type.

An alias stands for several images (standard, nvidia, neuron, per architecture); a type takes the first that it fits.
Source: AWS provider reference §5.3, API reference §5.3 and §5.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from kerf.model.aws.cloud import Image
from kerf_api import labels
from kerf_api.requirements import DOES_NOT_EXIST, EXISTS, IN, Requirements
from kerf_api.v1.ec2nodeclass import ResolvedImage
from kerf_api.v1.meta import Entry
from kerf_api.v1.nodepool import parse_entries

GPU_COUNT = f"{labels.AWS_GROUP}/instance-gpu-count"
ACCELERATOR_COUNT = f"{labels.AWS_GROUP}/instance-accelerator-count"
_VARIANTS = {
    "standard": ((GPU_COUNT, DOES_NOT_EXIST), (ACCELERATOR_COUNT, DOES_NOT_EXIST)),
    "nvidia": ((GPU_COUNT, EXISTS),),
    "neuron": ((ACCELERATOR_COUNT, EXISTS),),
}
_VARIANT_ORDER = ("standard", "nvidia", "neuron", "")

#: EC2's words for an architecture, and Kubernetes'.
ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "arm64": "arm64"}


def listed(images: Iterable[Image]) -> tuple[ResolvedImage, ...]:
    """The images as `status.amis` lists them: one for each set of requirements, the newest first.

    Among images of equal requirements a living one wins over a deprecated one, then the newer, then the greater name.
    Images of architectures that Kubernetes nodes do not have are left out.
    """
    best: dict[tuple[Entry, ...], Image] = {}
    for image in sorted(images, key=_precedence):
        if image.architecture in ARCHITECTURES:
            best[_entries(image)] = image
    rows = sorted(best.items(), key=lambda row: _place(row[1]))
    rows.sort(key=lambda row: row[1].created, reverse=True)
    return tuple(
        ResolvedImage(id=image.id, requirements=entries, name=image.name, deprecated=image.deprecated)
        for entries, image in rows
    )


def unlisted(rows: Iterable[ResolvedImage]) -> tuple[Image, ...]:
    """Images that `listed` gives back as these rows of a status.

    A status has no creation times: the ones here are made up, and keep the order. Images without an architecture are
    left out.
    """
    found = list(rows)
    images = (_image(one, f"{len(found) - place:09d}") for place, one in enumerate(found))
    return tuple(image for image in images if image.architecture)


def _image(row: ResolvedImage, created: str) -> Image:
    wanted = {entry.key: entry for entry in row.requirements}
    existing = {key for key, entry in wanted.items() if entry.operator == EXISTS}
    variants = ((name, {key for key, operator in rows if operator == EXISTS}) for name, rows in _VARIANTS.items())
    plain = "standard" if GPU_COUNT in wanted or ACCELERATOR_COUNT in wanted else ""
    variant = next((name for name, keys in variants if keys and keys <= existing), plain)
    build = _value(wanted, labels.WINDOWS_BUILD)
    return Image(row.id, row.name, _value(wanted, labels.ARCH), created, row.deprecated, variant, build)


def _value(entries: Mapping[str, Entry], key: str) -> str:
    """The first value of a requirement; empty when there is none."""
    return next(iter(entries[key].values), "") if key in entries else ""


#: Each image's ID with its requirements.
Table = tuple[tuple[str, Requirements], ...]


# A class has few images, and each of its nodes is held against them: thousands at once when the class has changed.
@lru_cache(maxsize=128)
def table(images: tuple[ResolvedImage, ...]) -> Table:
    """The images' requirements, parsed. Raises ValueError on a malformed entry."""
    return tuple((image.id, parse_entries(image.requirements)) for image in images)


@lru_cache(maxsize=8192)
def pick(type_requirements: Requirements, rows: Table) -> str | None:
    """The ID of the first image that a type with these requirements can boot; None when there is none."""
    return next((id_ for id_, wanted in rows if type_requirements.compatible(wanted)), None)


def _entries(image: Image) -> tuple[Entry, ...]:
    rows = [Entry(key=labels.ARCH, operator=IN, values=(ARCHITECTURES[image.architecture],))]
    if image.windows_build:
        rows.append(Entry(key=labels.OS, operator=IN, values=("windows",)))
        rows.append(Entry(key=labels.WINDOWS_BUILD, operator=IN, values=(image.windows_build,)))
    else:
        rows += [Entry(key=key, operator=operator) for key, operator in _VARIANTS.get(image.variant, ())]
    return tuple(sorted(rows, key=lambda entry: (len(entry.key), entry.key)))


def _precedence(image: Image) -> tuple[bool, str, str, str]:
    """Least preferred first."""
    return (not image.deprecated, image.created, image.name, image.id)


def _place(image: Image) -> tuple[str, int, str, str]:
    """Among images that were created at the same time; no two of different requirements are equal."""
    return image.id, _variant_rank(image), ARCHITECTURES[image.architecture], image.windows_build


def _variant_rank(image: Image) -> int:
    return _VARIANT_ORDER.index(image.variant) if image.variant in _VARIANT_ORDER else len(_VARIANT_ORDER)
