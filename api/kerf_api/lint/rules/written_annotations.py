"""Annotations in a manifest that Kerf writes itself: the webhook refuses them, or Kerf does not hand them down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kerf_api.lint.problem import Problem, at
from kerf_api.lint.reading.reading import is_kind, mapping
from kerf_api.written_annotations import WRITTEN

_OWN: Final = ("metadata", "annotations")
_TEMPLATE: Final = ("spec", "template", "metadata", "annotations")


def of_object(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield such annotations of a manifest in Git. Live objects have them, so the webhook does not apply this rule."""
    kind = next((kind for kind in WRITTEN if is_kind(manifest, kind)), None)
    own = mapping(manifest, *_OWN)
    for key in sorted(WRITTEN[kind] & own.keys()) if kind is not None else ():
        message = "Kerf writes this annotation itself; the webhook refuses a value that is not the value in the cluster"
        yield at((*_OWN, key), "KERF-META-203", "warning", message, "remove it", own[key])


def of_template(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield such annotations of a NodePool's template."""
    template = mapping(manifest, *_TEMPLATE)
    for key in sorted(WRITTEN["NodeClaim"] & template.keys()):
        message = "Kerf writes this annotation on NodeClaims itself, so NodeClaims do not get it from the template"
        yield at((*_TEMPLATE, key), "KERF-NP-126", "error", message, "remove it", template[key])
