"""A plan in the form in which a record compares it, and its digest.

A record has digests in place of user data, and other hashes where these cover removed texts (`kerf.snapshots`). So a
plan for the recorded snapshot has other user data, and other names of launch templates, which are hashes of their
content. Here a plan of either snapshot gets the same form: without user data, with names of templates by their other
content and by their first use, and with the hashes of the record. `next_due` is not part of it: a controller with a
memory may reconcile earlier than necessary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

import msgspec
from msgspec.structs import replace as changed

from kerf.model import kinds
from kerf.model.aws.cloud import FleetRequest, LaunchTemplate
from kerf.model.plan import (
    Action,
    EnsureTemplate,
    LaunchInstances,
    PatchObject,
    Plan,
    ValidateClass,
)
from kerf.records.lines import Act, Decision
from kerf.snapshots import actions
from kerf.snapshots.plain import PAIRS, plain
from kerf.snapshots.sanitizing import Sanitizer
from kerf_api import labels
from kerf_api.decoders import decoder_of

#: A record has the words of so many actions of one plan, and the number of the others.
MOST_ACTIONS: Final = 500
_DIGITS: Final = 12
#: The parts of a plan that have a form of their own, or that records of earlier versions do not have: a digest of
#: theirs is that of the same plan now.
_OTHERS: Final = ("actions", "foreseen", "next_due", "ahead")
#: The parts of a plan that are compared as they are.
_REST: Final = tuple(one.name for one in fields(Plan) if one.name not in _OTHERS)


def decision(plan: Plan, sanitizer: Sanitizer, **given: Any) -> Decision:
    """The line of a plan. `given` are the fields of Decision that are not in the plan."""
    acts, digests = list[Act](), list[str]()
    for action, form in zip(_ordered(plan.actions), forms(plan.actions, sanitizer), strict=True):
        digests.append(_digest(form, sanitizer.text))
        if len(acts) < MOST_ACTIONS:
            reason = sanitizer.text(str(action.reason))
            acts.append(Act(key=action.key, reason=reason, digest=digests[-1][:_DIGITS]))
    foreseen = [plain(sanitizer.object(kinds.NODE_CLAIM, claim)) for claim in plan.foreseen]
    whole = [digests, foreseen, *(_sorted(plain(getattr(plan, name))) for name in _REST)]
    return Decision(
        digest=_digest(whole, sanitizer.text),
        due=plan.next_due,
        actions=tuple(acts),
        more_actions=len(digests) - len(acts),
        refused=len(plan.refusals),
        **given,
    )


def forms(found: Sequence[Action], sanitizer: Sanitizer) -> Iterator[Mapping[str, Any]]:
    """The actions as JSON values, in the form that is compared."""
    return (actions.to_plain(_bare(one), sanitizer) for one in _ordered(found))


def _digest(value: Any, text: Callable[[str], str] = str) -> str:
    """`text` puts the hashes of the record into a text: reasons and events may name digests of plans."""
    return hashlib.sha256(text(msgspec.json.encode(value, order="deterministic").decode()).encode()).hexdigest()


def _sorted(data: Any) -> Any:
    """With the pairs of maps in order."""
    if isinstance(data, dict):
        rows = {key: _sorted(value) for key, value in data.items()}
        return {PAIRS: sorted(rows[PAIRS], key=msgspec.json.encode)} if rows.keys() == {PAIRS} else rows
    return list(map(_sorted, data)) if isinstance(data, list) else data


# --- without user data ------------------------------------------------------------------------------------------
def _ordered(found: Sequence[Action]) -> list[Action]:
    """The actions; adjacent ones that make launch templates are in the order of their compared names."""
    ordered, templates = list[Action](), list[EnsureTemplate]()
    for action in found:
        if isinstance(action, EnsureTemplate):
            templates.append(action)
            continue
        ordered += [*sorted(templates, key=_of_action), action]
        templates.clear()
    return [*ordered, *sorted(templates, key=_of_action)]


def _of_action(action: EnsureTemplate) -> str:
    return _name(action.template)


def _bare(action: Action) -> Action:
    match action:
        case EnsureTemplate():
            return replace(action, template=_template(action.template))
        case LaunchInstances():
            return replace(action, request=_request(action.request))
        case ValidateClass():  # its group is a hash over annotations and the next status of the class
            return replace(action, request=changed(_request(action.request), group=""))
        case PatchObject():
            return _patch(action)
        case _:
            return action


def _patch(action: PatchObject) -> PatchObject:
    meta = action.patch.get("metadata") or {}
    notes = meta.get("annotations") or {}
    if notes.get(labels.LAUNCH_REQUEST):
        notes = {**notes, labels.LAUNCH_REQUEST: _text(notes[labels.LAUNCH_REQUEST])}
        action = replace(action, patch={**action.patch, "metadata": {**meta, "annotations": notes}})
    if action.marks is not None and action.marks.request:
        action = replace(action, marks=replace(action.marks, request=_text(action.marks.request)))
    return action


def _text(text: str) -> str:
    """A launch request that cannot be read stays as it is: the sanitizer removes it."""
    try:
        request = decoder_of(FleetRequest).decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return msgspec.json.encode(_request(request)).decode()


def _request(request: FleetRequest) -> FleetRequest:
    """Templates are in the order of their first use, which does not depend on their names."""
    used = list(dict.fromkeys(one.template for one in request.overrides))
    by_name = {one.name: one for one in request.templates}
    order = [by_name[name] for name in used if name in by_name]
    order += [one for one in request.templates if one.name not in used]
    names = {one.name: f"{_name(one)}-{place}" for place, one in enumerate(order)}
    return changed(
        request,
        templates=tuple(changed(_template(one), name=names[one.name]) for one in order),
        overrides=tuple(changed(one, template=names.get(one.template, "")) for one in request.overrides),
    )


def _template(one: LaunchTemplate) -> LaunchTemplate:
    return changed(one, name=_name(one), user_data="")


def _name(one: LaunchTemplate) -> str:
    return _digest(changed(one, name="", user_data=""))[:_DIGITS]
