"""What all kinds have: apiVersion, kind, metadata, status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from kerf_api import crds, labels, old_names
from kerf_api.lint import Steps
from kerf_api.lint.problem import shown

from .work import DROPPED, RENAMED, WRITTEN_BY_OTHERS, Table, Work, malformed, read, to, written_by_others

#: What kubectl notes of the last apply; it would list fields that no longer exist.
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_SERVERS: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)


def header(kind: str) -> Table:
    """The table of what stands around the spec, for a new object of this kind."""

    def version(work: Work, steps: Steps, _: Any) -> None:
        work.keep(steps, steps, crds.api_version(kind))

    def name(work: Work, steps: Steps, _: Any) -> None:
        work.keep(steps, steps, kind)

    return {
        "apiVersion": version,
        "kind": name,
        "metadata": _metadata,
        "status": written_by_others("the status is written by controllers"),
    }


def _metadata(work: Work, steps: Steps, value: Any) -> None:
    if not isinstance(value, dict):
        malformed(work, steps, value, "a map")
        return
    work.keep(steps, steps, {})
    if seen := [key for key in value if key in _SERVERS]:
        message = f"{', '.join(seen)} in metadata {'are' if len(seen) > 1 else 'is'} the API server's; removed"
        work.tell(WRITTEN_BY_OTHERS, (*steps, seen[0]), message)
    read(work, _METADATA, steps)


def own_annotations(work: Work, steps: Steps, value: Any) -> None:
    """Annotations at the place where they stood, by the names that are read today."""
    keep_annotations(work, steps, value, steps)


def keep_annotations(work: Work, steps: Steps, value: Any, path: Steps) -> None:
    """Annotations at a path of the new object, by the names that are read today."""
    if not isinstance(value, dict):
        malformed(work, steps, value, "a map")
        return
    work.keep(path, steps, {})
    for key, text in value.items():
        here = (*steps, key)
        new = old_names.RENAMED_ANNOTATIONS.get(key)
        if new is not None and new in value:
            work.tell(RENAMED, here, f"the object has {new} already; {key}, its older name, is removed")
        elif new is not None:
            work.keep((*path, new), here, text)
            work.tell(RENAMED, here, f"{key} is {new} now")
        elif key == old_names.KUBELET_ANNOTATION and (kubelet := kubelet_kept(text)):
            work.kubelet = here, kubelet
        elif key in old_names.GONE_ANNOTATIONS or key == _LAST_APPLIED:
            work.tell(WRITTEN_BY_OTHERS, here, f"the annotation {key} is written by programs, not by users; removed")
        else:
            work.keep((*path, key), here, text)
    drop_if_emptied(work, path, value)


def drop_if_emptied(work: Work, path: Steps, value: Mapping[str, Any]) -> None:
    """Leave out a map of which nothing was kept."""
    if value and not work.draft.get(*path):
        work.draft.remove(path)


def keep_labels(work: Work, steps: Steps, value: Any, path: Steps) -> None:
    """Labels of nodes at a path of the new object, without that of a Provisioner."""
    if not isinstance(value, dict):
        malformed(work, steps, value, "a map")
        return
    work.keep(path, steps, {})
    for key, text in value.items():
        if key == old_names.PROVISIONER_NAME:
            message = f"nodes get {labels.NODEPOOL} by themselves, and no label {shown(key)} any more; removed"
            work.tell(DROPPED, (*steps, key), message, "write the new one wherever pods ask for the old one", text)
        else:
            work.keep((*path, key), (*steps, key), text)
    drop_if_emptied(work, path, value)


def _own_labels(work: Work, steps: Steps, value: Any) -> None:
    """An object's own labels; a claim of a Provisioner is a claim of the NodePool."""
    if not isinstance(value, dict):
        malformed(work, steps, value, "a map")
        return
    work.keep(steps, steps, {})
    for key, text in value.items():
        new = labels.NODEPOOL if key == old_names.PROVISIONER_NAME and labels.NODEPOOL not in value else key
        work.keep((*steps, new), (*steps, key), text)


def kubelet_kept(text: Any) -> dict[str, Any] | None:
    """The kubelet's configuration that v1.0 kept in an annotation; None for what is none."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _nothing(work: Work, steps: Steps, value: Any) -> None:
    """A field that is reported already."""


_METADATA: Final[Table] = {
    **{name: to("metadata", name) for name in ("name", "generateName", "namespace", "finalizers", "ownerReferences")},
    "labels": _own_labels,
    "annotations": own_annotations,
    **dict.fromkeys(_SERVERS, _nothing),
}
