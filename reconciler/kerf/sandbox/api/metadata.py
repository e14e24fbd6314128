"""What the API server asks of every object's metadata: labels, annotations and finalizers of the right form.

Source: Kubernetes API conventions; "Labels and Selectors", "Annotations", "Finalizers" of its documentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from kerf.ports import Invalid
from kerf_api.lint.reading.reading import label_value_fault, qualified_name_fault

_qualified = lru_cache(4096)(qualified_name_fault)
_label_value = lru_cache(4096)(label_value_fault)
#: All annotations of an object together, keys and values.
_ANNOTATION_BYTES = 256 * 1024


def check(kind: str, meta: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Refuse what has changed into a wrong form. Raises Invalid."""
    faults = list(_faults(meta, before))
    if faults:
        raise Invalid(f"{kind} {meta.get('name', '')}: metadata.{'; metadata.'.join(faults)}")


def _faults(meta: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    if "deletionTimestamp" in meta and meta["deletionTimestamp"] != before.get("deletionTimestamp"):
        yield "deletionTimestamp: field is immutable; only a deletion sets it"
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    if labels != before.get("labels"):
        yield from (f"labels: {key!r} {fault}" for key in labels if (fault := _qualified(key)))
        yield from (f"labels: {value!r} {fault}" for value in labels.values() if (fault := _label_value(value)))
    if annotations != before.get("annotations"):
        yield from (f"annotations: {key!r} {fault}" for key in annotations if (fault := _qualified(key.lower())))
        if sum(len(key) + len(value) for key, value in annotations.items()) > _ANNOTATION_BYTES:
            yield f"annotations: must have at most {_ANNOTATION_BYTES} bytes"
    for finalizer in meta.get("finalizers") or ():
        if fault := _qualified(finalizer):
            yield f"finalizers: {finalizer!r} {fault}"
