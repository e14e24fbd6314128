"""How the run-time rules look at a manifest that may be malformed: they see what has the right type, and only that.

The structural check has already complained about the rest, so a rule need not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from kerf_api import crds, durations, labels, quantity
from kerf_api.lint.problem import Problem, Steps, at

_PLAIN_LINES = re.compile(r"[A-Za-z0-9\n]*", re.ASCII)
_LINES = re.compile(r"[A-Za-z0-9_.\n-]*", re.ASCII)
#: At the beginning or the end of a line.
_BAD_ENDS: Final = tuple(end for mark in "-_." for end in (f"\n{mark}", f"{mark}\n"))
_DOMAIN = re.compile(r"[a-z0-9]+(?:-+[a-z0-9]+)*(?:\.[a-z0-9]+(?:-+[a-z0-9]+)*)*", re.ASCII)
_LONGEST_DOMAIN: Final = 253
#: Characters of a qualified name: a domain, a slash and a name.
LONGEST_KEY: Final = _LONGEST_DOMAIN + 1 + labels.LONGEST_NAME


def part(manifest: Any, *steps: str) -> Any:
    """What lies at a path of fields; None when something on the way is missing or no map."""
    for step in steps:
        manifest = manifest.get(step) if isinstance(manifest, dict) else None
    return manifest


def mapping(manifest: Any, *steps: str) -> dict[str, Any]:
    """The map at a path; an empty one when there is none."""
    found = part(manifest, *steps)
    return found if isinstance(found, dict) else {}


def entries(manifest: Any, *steps: str) -> Iterator[tuple[Steps, dict[str, Any]]]:
    """The entries of the list at a path that are maps, each with its place."""
    found = part(manifest, *steps)
    for index, entry in enumerate(found if isinstance(found, list) else ()):
        if isinstance(entry, dict):
            yield (*steps, index), entry


def texts(value: Any) -> list[str]:
    """The texts in a list; nothing when it is no list."""
    if not isinstance(value, list):
        return []
    return value if {*map(type, value)} == {str} else [entry for entry in value if isinstance(entry, str)]


def qualified_name_fault(name: str) -> str | None:
    """Why a text is no qualified name (`team`, `example.com/team`), in words; None when it is one."""
    prefix, slash, last = name.rpartition("/")
    if "/" in prefix:
        return "has more than one slash"
    if slash and not (len(prefix) <= _LONGEST_DOMAIN and _DOMAIN.fullmatch(prefix)):
        return f"the part before the slash must be a DNS name of at most {_LONGEST_DOMAIN} characters"
    if not last or len(last) > labels.LONGEST_NAME:
        return f"the name {'after the slash ' if slash else ''}must have 1 to {labels.LONGEST_NAME} characters"
    return (
        None
        if labels.NAME.fullmatch(last)
        else "must begin and end with a letter or digit and contain only letters, digits and . _ -"
    )


def label_value_fault(value: str) -> str | None:
    """Why a text is no label value, in words; None when it is one."""
    if len(value) > labels.LONGEST_NAME:
        return f"has {len(value)} characters, label values have at most {labels.LONGEST_NAME}"
    return (
        None
        if labels.is_label_value(value)
        else "label values begin and end with a letter or digit and contain only letters, digits and . _ -"
    )


def are_label_values(values: Sequence[str]) -> bool:
    """Whether all texts are label values, by one look at all of them: a list may have thousands."""
    if not values or max(map(len, values)) > labels.LONGEST_NAME:
        return not values
    lines = "\n".join(("", *values, ""))
    if lines.count("\n") != len(values) + 1:
        return False
    if _PLAIN_LINES.fullmatch(lines):
        return True
    return _LINES.fullmatch(lines) is not None and not any(end in lines for end in _BAD_ENDS)


def is_dns_name(name: str) -> bool:
    """Whether a text is a DNS-1123 subdomain, as object names must be."""
    return len(name) <= _LONGEST_DOMAIN and _DOMAIN.fullmatch(name) is not None


def unreadable_durations(manifest: Any, rule: str, *places: Steps) -> Iterator[Problem]:
    """Durations of the right form that are longer than Go can hold, which no client of the API could read."""
    for steps in places:
        value = _at(manifest, steps)
        if isinstance(value, str):
            yield from _unreadable(value, steps, rule, durations.parse_nillable)


def unreadable_quantities(manifest: Any, rule: str, *places: Steps) -> Iterator[Problem]:
    """Quantities of the right form that are none, such as `1e1.5`, which no client of the API could read."""
    for steps in places:
        for name, value in mapping(manifest, *(str(step) for step in steps)).items():
            yield from _unreadable(value, (*steps, name), rule, quantity.parse)


def negative_quantities(manifest: Any, rule: str, *places: Steps) -> Iterator[Problem]:
    """Quantities below 0 where only an amount makes sense."""
    for steps in places:
        for name, value in mapping(manifest, *(str(step) for step in steps)).items():
            if (amount(value) or 0) < 0:
                yield at((*steps, name), rule, "warning", "is less than 0, which no machine can have", "", value)


def amount(value: Any) -> Fraction | None:
    """A quantity as a number; None for what is none."""
    try:
        return quantity.parse(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None


def is_kind(manifest: Mapping[str, Any], kind: str) -> bool:
    """Whether an object is of one of our kinds, in its version."""
    return manifest.get("kind") == kind and manifest.get("apiVersion") == crds.api_version(kind)


def _unreadable(value: Any, steps: Steps, rule: str, read: Callable[[Any], object]) -> Iterator[Problem]:
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        try:
            read(value)
        except (ValueError, OverflowError) as problem:
            yield at(steps, rule, "error", str(problem), value=value)


def _at(manifest: Any, steps: Steps) -> Any:
    for step in steps:
        if isinstance(step, int):
            manifest = manifest[step] if isinstance(manifest, list) and step < len(manifest) else None
        else:
            manifest = manifest.get(step) if isinstance(manifest, Mapping) else None
    return manifest
