"""What is wrong with an object's own name, labels and annotations: the same for all kinds.

No definition states these rules; the API server keeps them for every object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kerf_api import crds
from kerf_api.lint import nearest
from kerf_api.lint.problem import Problem, at, shown
from kerf_api.lint.reading.reading import is_dns_name, label_value_fault, mapping, qualified_name_fault

#: Kinds whose objects' names become the values of labels on nodes.
_LABELLING: Final = ("NodePool", "EC2NodeClass")


def check(kind: str, manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the name and the labels, and a namespace where there is none."""
    metadata = mapping(manifest, "metadata")
    yield from _name(kind, metadata)
    yield from _labels(metadata)
    namespace = metadata.get("namespace")
    if isinstance(namespace, str) and namespace and not crds.is_namespaced(kind):
        message = f"a {kind} is the whole cluster's; the API server drops the namespace {shown(namespace)} unasked"
        yield at(("metadata", "namespace"), "KERF-META-202", "info", message, "remove it", namespace)


def _name(kind: str, metadata: Mapping[str, Any]) -> Iterator[Problem]:
    """The object's own name, which for pools and classes is also the value of a label."""
    name, beginning = metadata.get("name"), metadata.get("generateName")
    if not name and not beginning:
        yield at(("metadata", "name"), "KERF-META-101", "error", "the object has no name")
    elif isinstance(name, str) and name and not is_dns_name(name):
        yield _no_name("name", name, "")
    elif isinstance(beginning, str) and beginning and not is_dns_name(beginning.rstrip("-")):
        yield _no_name("generateName", beginning, "-")
    elif isinstance(name, str) and kind in _LABELLING and (fault := label_value_fault(name)):
        message = f"the name becomes the value of a label on every node, and {shown(name)} {fault}"
        yield at(("metadata", "name"), "KERF-META-201", "warning", message, "use a shorter name", name)


def _no_name(field: str, name: str, ending: str) -> Problem:
    close = nearest.label_value(name.lower().replace("_", "-"))
    message = f"{shown(name)} is no object name; allowed are small letters, digits, dashes and dots"
    hint = f"did you mean {close}{ending}?" if close and is_dns_name(close) else ""
    return at(("metadata", field), "KERF-META-102", "error", message, hint, name)


def _labels(metadata: Mapping[str, Any]) -> Iterator[Problem]:
    """The object's own labels and annotations; an annotation's key may have capital letters, its value is free."""
    for key, value in mapping(metadata, "labels").items():
        place = ("metadata", "labels", key)
        if fault := qualified_name_fault(key):
            yield at(place, "KERF-META-103", "error", f"{shown(key)} is no label name: {fault}", value=key)
        elif isinstance(value, str) and (fault := label_value_fault(value)):
            close = nearest.label_value(value)
            hint = f"did you mean {shown(close)}?" if close else ""
            yield at(place, "KERF-META-103", "error", f"{shown(value)} is no label value: {fault}", hint, value)
    for key in mapping(metadata, "annotations"):
        if fault := qualified_name_fault(key.lower()):
            message = f"{shown(key)} is no annotation name: {fault}"
            yield at(("metadata", "annotations", key), "KERF-META-103", "error", message, value=key)
