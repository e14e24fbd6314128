"""Edits as data: the object whose manifest a user edits, and each field with its new value.

A patch is the difference between the manifests before and after an edit, so that it says no more and no less than what
was tried. Of a pod with a controller it is a patch of the controller's pod template.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.answers.edits import Edit, PodEdit
from kerf_api.v1.meta import encode
from kerf_api.v1.nodepool import NodePool

#: The actions: set fields of an object; create an object that is missing; correct a field whose right value only the
#: user knows; wait.
EDIT, CREATE, CORRECT, WAIT = "Edit", "Create", "Correct", "Wait"
#: Where controllers have the manifest of their pods; of other kinds the pod itself is named.
_TEMPLATES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("Deployment", "Rollout", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"), "spec.template."),
    "CronJob": "spec.jobTemplate.spec.template.",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a manifest, as `spec.template.spec.requirements[0].values`. A key with dots is in quotation marks, an
    object of a list with a name is `[name=…]`, and `[-]` is a new element. `value` is the new one; None: remove the
    field."""

    path: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A field of an object; `name` is `namespace/name` where the kind has namespaces."""

    kind: str
    name: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why, in a line, and the fields that contradict each other or the cluster; the likelier one first."""

    text: str
    fields: tuple[FieldRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Patch:
    """One edit of one object. `fields` have their new values when the action is Edit, and none when it is Correct."""

    action: str
    kind: str
    name: str
    text: str
    fields: tuple[Field, ...] = ()


def owner_ref(pod: Pod, path: str = "") -> FieldRef:
    """A field of a pod, as a field of the manifest that a user edits."""
    owner = pods.workload(pod)
    prefix = _TEMPLATES.get(owner[0]) if owner is not None else None
    if owner is None or prefix is None:
        return FieldRef("Pod", pod.key, path)
    return FieldRef(owner[0], f"{pod.metadata.namespace}/{owner[1]}", f"{prefix}{path}" if path else "")


def of_pod(pod: Pod, edit: PodEdit, text: str) -> Patch:
    """The edit as a patch of the pod's manifest, or of its controller's."""
    return pod_patch(pod, edit.made(pod), text)


def pod_patch(before: Pod, after: Pod, text: str) -> Patch:
    """What makes of a pod the other one."""
    ref = owner_ref(before, "")
    found = tuple(differences(encode(before), encode(after)))
    return Patch(EDIT, ref.kind, ref.name, text, tuple(Field(owner_ref(before, f.path).path, f.value) for f in found))


def of_pool(before: NodePool, after: NodePool, text: str) -> Patch:
    """What makes of a NodePool the other one."""
    return Patch(EDIT, "NodePool", before.name, text, tuple(differences(encode(before), encode(after))))


def of_fix(edit: Edit, pod: Pod, pools: Mapping[str, NodePool]) -> Patch:
    """One of the edits of an account, for its pod."""
    if isinstance(edit, PodEdit):
        return of_pod(pod, edit, f"the pod: {edit}")
    before = pools[edit.pool]
    return of_pool(before, edit.made(before), str(edit))


def differences(before: Any, after: Any, path: str = "") -> Iterator[Field]:
    """The fields of two manifests that are not equal, as deep as they have a counterpart."""
    if _mappings(before, after):
        for key in sorted({*(before or ()), *(after or ())}):
            yield from _below((before or {}).get(key), (after or {}).get(key), within(path, key))
    elif _list(before) and _list(after):
        yield from _of_lists(before, after, path)
    else:
        yield Field(path, after)


def _below(before: Any, after: Any, path: str) -> Iterator[Field]:
    if before != after:
        yield from differences(before, after, path)


def _mappings(before: Any, after: Any) -> bool:
    """Whether both are objects; or one of them a map of strings, as labels are, and the other missing: the manifest of
    a user may have other keys."""
    found = [one for one in (before, after) if one is not None]
    if len(found) == 1 and isinstance(found[0], Mapping):
        return bool(found[0]) and all(isinstance(value, str) for value in found[0].values())
    return bool(found) and all(isinstance(one, Mapping) for one in found)


def _list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(one, Mapping) for one in value)


def _of_lists(before: Sequence[Any], after: Sequence[Any], path: str) -> Iterator[Field]:
    """Lists of objects: each object that is not equal, those that are new, and (the last first) those that go."""
    if len(after) < len(before):
        kept = list(after)
        gone = [index for index, one in enumerate(before) if not (kept and kept[0] == one and kept.pop(0) == one)]
        if len(before) - len(gone) == len(after):
            yield from (Field(_element(before, index, path)) for index in reversed(gone))
        else:
            yield Field(path, list(after))
        return
    for index, other in enumerate(after):
        if index < len(before):
            yield from _below(before[index], other, _element(before, index, path))
        else:
            yield Field(f"{path}[-]", other)


def _element(some: Sequence[Any], index: int, path: str) -> str:
    """The path of an object of a list: webhooks may have put others before it, so that its name is safer."""
    name = some[index].get("name") if isinstance(some[index], Mapping) else None
    return f"{path}[name={name}]" if name else f"{path}[{index}]"


def within(path: str, key: str) -> str:
    """The path of a key of the object at a path."""
    if "." in key or "/" in key:
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key
