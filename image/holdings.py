"""What was installed for the image: each distribution, its licence, what it needs, and the libraries in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from image.player import Image
from image.recipe import Recipe

_MACHINES: Final = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
_LICENCE: Final = "License :: "
_TEXT: Final = re.compile(r"\.dist-info/(?:.*/)?(?:licen[cs]e|copying|notice)[^/]*$", re.IGNORECASE)
#: A library that a wheel carries along has a hash in its name, such as `libgfortran-040039e1-0352e75f.so.5.0.0`.
_BUNDLED: Final = re.compile(r"\.libs/(?P<name>[A-Za-z0-9_+]+?)_?(?:-[0-9a-f]{8})+\.so[.\d]*$")


@dataclass(frozen=True, slots=True)
class Distribution:
    """One distribution of the image, as its own metadata tells; what they do not tell is empty."""

    name: str
    version: str
    expression: str = ""
    stated: str = ""
    classifiers: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    bundled: tuple[str, ...] = ()


def installed(image: Image) -> tuple[Distribution, ...]:
    """The distributions of an image, by name."""
    folders = [str(path) for layer in image.layers for path in layer.glob("usr/local/lib/python3*/site-packages")]
    found = (_distribution(each) for folder in folders for each in metadata.distributions(path=[folder]))
    return tuple(sorted(found, key=lambda each: each.name))


def environment(platform: str, recipe: Recipe) -> dict[str, str]:
    """What markers of requirements are about, in the image for a platform such as `linux/arm64`."""
    return {
        "implementation_name": "cpython",
        "implementation_version": recipe.python,
        "os_name": "posix",
        "platform_machine": _MACHINES[platform],
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": recipe.python,
        "python_version": recipe.python.rpartition(".")[0],
        "sys_platform": "linux",
    }


def needs(
    distributions: Iterable[Distribution], root: str, markers: Mapping[str, str]
) -> dict[str, tuple[Requirement, ...]]:
    """What each distribution that `root` needs, itself included, requires there; `root` without extras.

    Distributions that are required but not there have an entry as well, with nothing.
    """
    known = {each.name: each for each in distributions}
    result: dict[str, tuple[Requirement, ...]] = {}
    asked: set[tuple[str, frozenset[str]]] = set()
    waiting = [(root, frozenset[str]())]
    while waiting:
        if (wish := waiting.pop()) in asked:
            continue
        asked.add(wish)
        name, extras = wish
        found = tuple(_required(known[name], extras, markers)) if name in known else ()
        result[name] = (*result.get(name, ()), *(each for each in found if each not in result.get(name, ())))
        waiting += [(canonicalize_name(each.name), frozenset(each.extras)) for each in found]
    return result


def _required(distribution: Distribution, extras: frozenset[str], markers: Mapping[str, str]) -> Iterator[Requirement]:
    for text in distribution.requirements:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({**markers, "extra": extra}) for extra in ("", *sorted(extras))):
            yield requirement


def _distribution(found: metadata.Distribution) -> Distribution:
    said = found.metadata
    paths = sorted(str(path) for path in found.files or ())
    return Distribution(
        name=canonicalize_name(said["Name"]),
        version=found.version,
        expression=_first(said, "License-Expression"),
        stated=_first(said, "License"),
        classifiers=tuple(
            each.removeprefix(_LICENCE) for each in said.get_all("Classifier") or () if each.startswith(_LICENCE)
        ),
        requirements=tuple(found.requires or ()),
        texts=tuple(path for path in paths if _TEXT.search(path)),
        bundled=tuple(_library(path) for path in paths if ".libs/" in path),
    )


def _first(said: metadata.PackageMetadata, field: str) -> str:
    return next(iter(said.get_all(field) or ()), "")


def _library(path: str) -> str:
    found = _BUNDLED.search(path)
    return found["name"] if found else Path(path).name
