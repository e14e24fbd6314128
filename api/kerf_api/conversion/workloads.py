"""Old names in objects that need no conversion: annotations, and what pods ask of nodes.

Everything else of them stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kerf_api import labels, old_names
from kerf_api.lint import Steps
from kerf_api.lint.reading.workloads import pod_spec

from .draft import at_path
from .header import drop_if_emptied, kubelet_kept
from .work import RENAMED, WRITTEN_BY_OTHERS, Work

_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def rename(work: Work) -> None:
    """Write the names of today into the work's draft, which is a copy of the object."""
    place = pod_spec(work.old)
    _annotations(work, ("metadata", "annotations"))
    template = place[:-1] if place is not None else ("spec", "template") if work.old.get("kind") == "NodePool" else ()
    if template:
        _annotations(work, (*template, "metadata", "annotations"))
    if place is not None:
        _keys(work, place)
        _tolerations(work, (*place, "tolerations"))


def _annotations(work: Work, steps: Steps) -> None:
    found = at_path(work.old, steps)
    for key in list(found) if isinstance(found, dict) else ():
        new = old_names.RENAMED_ANNOTATIONS.get(key)
        if new is not None and work.draft.get(*steps, new) is not None:
            work.draft.remove((*steps, key))
            work.tell(RENAMED, (*steps, key), f"the object has {new} already; {key}, its older name, is removed")
        elif new is not None:
            work.draft.rename((*steps, key), new)
            work.tell(RENAMED, (*steps, key), f"{key} is {new} now")
        elif key in old_names.GONE_ANNOTATIONS:
            work.draft.remove((*steps, key))
            if key == old_names.KUBELET_ANNOTATION and (kept := kubelet_kept(found[key])):
                work.kubelet = (*steps, key), kept
                continue
            message = f"the annotation {key} is written by programs, not by users; removed"
            work.tell(WRITTEN_BY_OTHERS, (*steps, key), message)
    if isinstance(found, dict):
        drop_if_emptied(work, steps, found)


def _keys(work: Work, spec: Steps) -> None:
    """The label of a Provisioner's nodes, wherever a pod may ask for it."""
    old, new = old_names.PROVISIONER_NAME, labels.NODEPOOL
    message, hint = f"nodes have the label {new} instead", "the NodePool has the name of the Provisioner"
    selector = at_path(work.old, (*spec, "nodeSelector"))
    if isinstance(selector, dict) and old in selector and new not in selector:
        work.draft.rename((*spec, "nodeSelector", old), new)
        work.tell(RENAMED, (*spec, "nodeSelector", old), message, hint)
    for steps in _naming(work.old, spec):
        if at_path(work.old, steps) == old:
            work.draft.put(steps, new, work.origin(steps))
            work.tell(RENAMED, steps, message, hint)


def _naming(manifest: Any, spec: Steps) -> Iterator[Steps]:
    """The places of a pod's spec where a label of nodes is named as a value."""
    affinity = (*spec, "affinity", "nodeAffinity")
    terms = [*_entries(manifest, (*affinity, _REQUIRED, "nodeSelectorTerms"))]
    terms += [(*steps, "preference") for steps in _entries(manifest, (*affinity, _PREFERRED))]
    for term in terms:
        yield from ((*steps, "key") for steps in _entries(manifest, (*term, "matchExpressions")))
    for steps in _entries(manifest, (*spec, "topologySpreadConstraints")):
        yield (*steps, "topologyKey")


def _tolerations(work: Work, place: Steps) -> None:
    """The taint of nodes that are disrupted has another key, and no value any more."""
    key, value = old_names.DISRUPTION_TAINT
    for steps in _entries(work.old, place):
        toleration = at_path(work.old, steps)
        if toleration.get("key") != key or toleration.get("value", value) != value:
            continue
        work.draft.put((*steps, "key"), labels.DISRUPTED_TAINT, work.origin((*steps, "key")))
        if "value" in toleration:
            work.draft.put((*steps, "operator"), "Exists", work.origin((*steps, "operator")))
            work.draft.remove((*steps, "value"))
        work.tell(RENAMED, (*steps, "key"), f"the taint {key} is {labels.DISRUPTED_TAINT} now, without a value")


def _entries(manifest: Any, steps: Steps) -> Iterator[Steps]:
    found = at_path(manifest, steps)
    for index, entry in enumerate(found if isinstance(found, list) else ()):
        if isinstance(entry, dict):
            yield (*steps, index)
