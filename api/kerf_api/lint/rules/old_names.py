"""Names that older versions used and no version reads any more: annotations, labels and kinds.

The API server accepts them without a word, and what they asked for does not happen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kerf_api import labels, old_names
from kerf_api.lint.problem import Problem, Steps, at, shown
from kerf_api.lint.reading.reading import entries, mapping, part
from kerf_api.lint.reading.workloads import pod_spec

#: What to do about each annotation.
_ADVICE: Final[Mapping[str, str]] = {
    **{old: f"write {new}" for old, new in old_names.RENAMED_ANNOTATIONS.items()},
    **old_names.GONE_ANNOTATIONS,
}


def old_kind(kind: str) -> Problem:
    """What is wrong with a kind of an older version, one of `old_names.KINDS`: no cluster has it any more."""
    new = old_names.KINDS[kind]
    message = f"{kind} is a kind of older versions; nothing reads it any more"
    hint = f"kerf convert makes {'an' if new[0] in 'AEIO' else 'a'} {new} of it"
    return at(("kind",), "KERF-OLD-303", "error", message, hint, kind)


def check(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Every old annotation and label in a manifest of any kind."""
    for place in (
        ("metadata",),
        ("spec", "template", "metadata"),
        ("spec", "jobTemplate", "spec", "template", "metadata"),
    ):
        yield from _annotations(manifest, place)
    spec = pod_spec(manifest)
    if spec is not None:
        yield from _selectors(manifest, tuple(map(str, spec)))


def _annotations(manifest: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[Problem]:
    for key in mapping(manifest, *place, "annotations"):
        if key in _ADVICE:
            message = f"{shown(key)} is an annotation of older versions; nothing reads it any more"
            yield at((*place, "annotations", key), "KERF-OLD-301", "warning", message, _ADVICE[key], key)


def _selectors(manifest: Mapping[str, Any], spec: tuple[str, ...]) -> Iterator[Problem]:
    """Pods that ask for the label of a Provisioner stay pending for ever."""
    places: list[Steps] = []
    if old_names.PROVISIONER_NAME in mapping(manifest, *spec, "nodeSelector"):
        places.append((*spec, "nodeSelector", old_names.PROVISIONER_NAME))
    affinity = (*spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    for steps, _ in entries(manifest, *affinity, "nodeSelectorTerms"):
        expressions = part(manifest, *affinity, "nodeSelectorTerms")[steps[-1]].get("matchExpressions")
        for index, expression in enumerate(expressions if isinstance(expressions, list) else ()):
            if isinstance(expression, dict) and expression.get("key") == old_names.PROVISIONER_NAME:
                places.append((*steps, "matchExpressions", index, "key"))
    for place in places:
        message = f"no node has the label {old_names.PROVISIONER_NAME} any more; pods that ask for it stay pending"
        yield at(place, "KERF-OLD-302", "warning", message, f"write {labels.NODEPOOL}", old_names.PROVISIONER_NAME)
