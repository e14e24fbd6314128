"""Annotations of pods that ask to be left alone in a way that has no effect.

The API server knows nothing of them; an event reports it when it is too late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kerf_api import durations, labels
from kerf_api.lint import nearest
from kerf_api.lint.problem import Problem, at, shown
from kerf_api.lint.reading.reading import part
from kerf_api.lint.reading.workloads import pod_spec


def check(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Annotations without effect in a workload; "false" asks for nothing and gets it."""
    spec = pod_spec(manifest)
    if spec is None:
        return
    place = (*map(str, spec[:-1]), "metadata", "annotations", labels.DO_NOT_DISRUPT)
    value = part(manifest, *place)
    if isinstance(value, str) and value not in ("true", "false") and durations.parse_go(value) is None:
        close = nearest.duration(value)
        hint = f"did you mean {close}?" if close and durations.parse_go(close) else 'write "true"'
        message = f"{shown(value)} is neither true nor a positive duration, so the pod is not protected"
        yield at(place, "KERF-SET-314", "warning", message, hint, value)
