"""Actions as JSON values with the name of their type, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import singledispatch
from typing import Any, Final

import msgspec

from kerf.model import kinds, plan
from kerf.model.plan import Action
from kerf.snapshots.plain import plain, typed
from kerf.snapshots.sanitizing import Sanitizer

_TYPES: Final[Mapping[str, type[Action]]] = {
    one.__name__: one
    for one in vars(plan).values()
    if isinstance(one, type) and issubclass(one, Action) and one is not Action
}


def to_plain(action: Action, sanitizer: Sanitizer) -> dict[str, Any]:
    """An action without the texts that a file leaves out."""
    return {"action": type(action).__name__, **plain(_clean(action, sanitizer))}


def from_plain(data: Mapping[str, Any]) -> Action:
    """Raises msgspec.ValidationError when it is no action of this version."""
    found: Action = typed({key: value for key, value in data.items() if key != "action"}, type_of(data))
    return found


def type_of(data: Mapping[str, Any]) -> type[Action]:
    """The type of an action. Raises msgspec.ValidationError when it is none of this version."""
    kind = _TYPES.get(str(data.get("action", "")))
    if kind is None:
        raise msgspec.ValidationError(f"there is no action {data.get('action')!r}")
    return kind


@singledispatch
def _clean(action: Any, sanitizer: Sanitizer) -> Any:
    return action


@_clean.register
def _(action: plan.LaunchInstances | plan.ValidateClass, sanitizer: Sanitizer) -> Any:
    return replace(action, request=sanitizer.request(action.request))


@_clean.register
def _(action: plan.EnsureTemplate, sanitizer: Sanitizer) -> Any:
    return replace(action, template=sanitizer.template(action.template))


@_clean.register
def _(action: plan.CreateNodeClaim, sanitizer: Sanitizer) -> Any:
    return replace(action, claim=sanitizer.object(kinds.NODE_CLAIM, action.claim))


@_clean.register
def _(action: plan.DeleteMessage, sanitizer: Sanitizer) -> Any:
    return replace(action, message=sanitizer.message(action.message))


@_clean.register
def _(action: plan.PatchObject, sanitizer: Sanitizer) -> Any:
    meta = action.patch.get("metadata") or {}
    if notes := meta.get("annotations"):
        kept = {"metadata": {**meta, "annotations": sanitizer.patched(notes)}}
        action = replace(action, patch={**action.patch, **kept})
    if action.marks is None:
        return action
    return replace(action, marks=replace(action.marks, request=sanitizer.launch_request(action.marks.request)))
