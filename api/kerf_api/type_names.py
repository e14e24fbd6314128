"""Names of EC2's instance types, and the labels that follow from a name alone.

The list is the enumeration `InstanceType` of EC2's service model, previous generations included. It has more names than
any table of facts: a region offers some of them, and no longer sells others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final

from kerf_api import labels

_PREFIX: Final = f"{labels.AWS_GROUP}/"
#: The labels that a name decides.
LABELS: Final = frozenset(
    [labels.INSTANCE_TYPE, *(f"{_PREFIX}instance-{part}" for part in ("category", "family", "generation", "size"))]
)
_GENERATION: Final = re.compile(r"(^[a-z]+)(-[0-9]+tb)?([0-9]++)[^.]*\.")


@cache
def known() -> frozenset[str]:
    """Return every name that EC2's service model has."""
    return frozenset(files("kerf_api").joinpath("type_names.txt").read_text(encoding="ascii").split())


def labels_of(name: str) -> Iterator[tuple[str, str]]:
    """Yield each label that follows from a type's name, with its value. Source: AWS provider reference §4.6."""
    family, _, size = name.partition(".")
    yield f"{_PREFIX}instance-family", family
    yield f"{_PREFIX}instance-size", size
    matched = _GENERATION.match(name)
    if matched is not None:
        yield f"{_PREFIX}instance-category", matched[1]
        yield f"{_PREFIX}instance-generation", matched[3]


@cache
def values() -> dict[str, frozenset[str]]:
    """Return the values that each of LABELS has among all known types."""
    found: dict[str, set[str]] = {key: set() for key in LABELS}
    for name in known():
        found[labels.INSTANCE_TYPE].add(name)
        for key, value in labels_of(name):
            found[key].add(value)
    return {key: frozenset(having) for key, having in found.items()}
