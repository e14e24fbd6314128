"""What is wrong with an object's own name, labels and annotations: the same for all kinds.

No definition states these rules; the API server keeps them for every object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kerf_api import approval, crds
from kerf_api.lint import nearest
from kerf_api.lint.problem import Problem, Steps, at, shown
from kerf_api.lint.reading.reading import entries, is_dns_name, label_value_fault, mapping, qualified_name_fault
from kerf_api.lint.shape.formats import is_go_time

#: Kinds whose objects' names become the values of labels on nodes.
_LABELLING: Final = ("NodePool", "EC2NodeClass")
#: What names an owner. Source: Kubernetes API reference, OwnerReference.
_OWNER: Final = ("apiVersion", "kind", "name", "uid")
#: A version, perhaps after a group and a slash.
_VERSION: Final = re.compile(r"([^/]*/)?[^/]+")
#: Finalizers of which an object has one at most. Source: Kubernetes, garbage collection.
_ONE_OF: Final = ("orphan", "foregroundDeletion")
#: The most bytes that the names and values of all annotations of an object have. Source: Kubernetes, "Annotations".
_MOST_ANNOTATIONS: Final = 256 * 1024


def check(kind: str, manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the metadata, and a namespace where there is none."""
    metadata = mapping(manifest, "metadata")
    yield from _name(kind, metadata)
    yield from _labels(metadata)
    yield from _size_of_annotations(metadata)
    yield from _approval(kind, metadata)
    yield from _owners(metadata)
    yield from _finalizers(metadata)
    yield from _time(metadata)
    namespace = metadata.get("namespace")
    if isinstance(namespace, str) and namespace and not crds.is_namespaced(kind):
        message = f"{kind} is cluster-scoped; the API server drops the namespace {shown(namespace)}"
        yield at(("metadata", "namespace"), "KERF-META-202", "info", message, "remove it", namespace)


def _name(kind: str, metadata: Mapping[str, Any]) -> Iterator[Problem]:
    """The object's own name, which for pools and classes is also the value of a label."""
    name, beginning = metadata.get("name"), metadata.get("generateName")
    if not name and not beginning:
        yield at(("metadata", "name"), "KERF-META-101", "error", "the object has no name")
    elif isinstance(name, str) and name and not is_dns_name(name):
        yield _no_name("name", name, "")
    elif isinstance(beginning, str) and beginning and not _begins_name(beginning, named=bool(name)):
        yield _no_name("generateName", beginning, "-")
    elif isinstance(name, str) and kind in _LABELLING and (fault := label_value_fault(name)):
        message = f"the name becomes the value of a label on every node, and {shown(name)} {fault}"
        yield at(("metadata", "name"), "KERF-META-201", "warning", message, "use a shorter name", name)


def _begins_name(beginning: str, *, named: bool) -> bool:
    """Whether a generateName is accepted: the API server does not read the character before a dash at its end, but
    refuses the name that it makes of it."""
    read = beginning[:-2] + "a" if beginning.endswith("-") and len(beginning) > 1 else beginning
    return is_dns_name(read) and (named or is_dns_name(f"{beginning}x"))


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


def _size_of_annotations(metadata: Mapping[str, Any]) -> Iterator[Problem]:
    texts = (text for pair in mapping(metadata, "annotations").items() for text in pair if isinstance(text, str))
    size = sum(len(text.encode()) for text in texts)
    if size > _MOST_ANNOTATIONS:
        message = f"the annotations have {size} bytes, an object's may have {_MOST_ANNOTATIONS}"
        yield at(
            ("metadata", "annotations"), "KERF-META-106", "error", message, "keep large texts in a ConfigMap", size
        )


def _approval(kind: str, metadata: Mapping[str, Any]) -> Iterator[Problem]:
    """The annotations by which changes wait for approval; an invalid value approves nothing."""
    own = mapping(metadata, "annotations")
    for key, right in approval.faults(kind, own):
        message = f"{shown(own[key])} is invalid, so changes wait until it is correct: it {right}"
        yield at(("metadata", "annotations", key), "KERF-META-108", "error", message, "correct or remove it", own[key])


def _owners(metadata: Mapping[str, Any]) -> Iterator[Problem]:
    controllers = 0
    for place, owner in entries(metadata, "ownerReferences"):
        for field in _OWNER:
            if not isinstance(owner.get(field), str) or not owner[field]:
                yield _no_owner((*place, field), f"an owner reference needs a string in {field}")
        version = owner.get("apiVersion")
        if isinstance(version, str) and version and not _VERSION.fullmatch(version):
            yield _no_owner((*place, "apiVersion"), f"{shown(version)} is no version such as v1 or apps/v1", version)
        if (version, owner.get("kind")) == ("v1", "Event"):
            yield _no_owner((*place, "kind"), "an Event owns no object", "Event")
        controllers += owner.get("controller") is True
        if owner.get("controller") is True and controllers > 1:
            yield _no_owner((*place, "controller"), "another owner is the controller already", True)


def _no_owner(place: Steps, message: str, value: object = None) -> Problem:
    hint = "leave ownerReferences to the controllers that set them"
    return at(("metadata", *place), "KERF-META-104", "error", message, hint, value)


def _finalizers(metadata: Mapping[str, Any]) -> Iterator[Problem]:
    found = metadata.get("finalizers")
    names = found if isinstance(found, list) else []
    for number, name in enumerate(names):
        text = "" if name is None else name
        if isinstance(text, str) and (fault := qualified_name_fault(text)):
            message = f"{shown(name)} is no name of a finalizer: {fault}"
            yield at(("metadata", "finalizers", number), "KERF-META-105", "error", message, value=name)
    if all(name in names for name in _ONE_OF):
        message = f"{' and '.join(_ONE_OF)} exclude each other"
        yield at(("metadata", "finalizers"), "KERF-META-105", "error", message, "remove one of them", names)


def _time(metadata: Mapping[str, Any]) -> Iterator[Problem]:
    for field in ("creationTimestamp", "deletionTimestamp"):
        found = metadata.get(field)
        if isinstance(found, str) and not is_go_time(found):
            message = f"{shown(found)} is no time such as 2026-01-31T12:00:00Z"
            hint = "remove it: the API server sets it"
            yield at(("metadata", field), "KERF-META-107", "error", message, hint, found)
