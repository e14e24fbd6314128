"""The kubelet's configuration moves from pools and claims to their class.

A class has one. Where the pools of a class want several, the class is cloned for each, and these pools refer to their
clone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kerf_api import labels
from kerf_api.lint import Steps

from .draft import Draft
from .work import MOVED, NO_CLASS, Work

_PLACE: Final = ("spec", "kubelet")
#: Where a new pool or claim refers to its class.
REFERENCES: Final[Mapping[str, Steps]] = {
    "NodePool": ("spec", "template", "spec", "nodeClassRef"),
    "NodeClaim": ("spec", "nodeClassRef"),
}
_NOTHING: Final = "null"


@dataclass(slots=True)
class Classes:
    """The classes among the objects: by name, each with the index of its manifest and its draft.

    `clones` are new ones with the index of the manifest beside which they belong; `tie` gets the two manifests that
    can only be converted together.
    """

    known: Mapping[str, Sequence[tuple[int, Draft]]]
    clones: list[tuple[int, Draft]]
    tie: Callable[[int, int], None]


def settle(users: Iterable[Work], classes: Classes) -> None:
    """Give every class what its pools and claims want of the kubelet; `users` are all that refer to some class."""
    by_class: dict[str, list[Work]] = {}
    for user in users:
        reference = user.draft.get(*REFERENCES[str(user.draft.get("kind"))])
        if isinstance(reference, dict) and reference.get("group") == labels.AWS_GROUP:
            by_class.setdefault(str(reference.get("name")), []).append(user)
        else:
            _lost(user, "there is none", "add a nodeClassRef")
    for name, found in by_class.items():
        if any(user.kubelet is not None for user in found):
            _settle(name, found, classes)


def _settle(name: str, users: list[Work], classes: Classes) -> None:
    known = classes.known.get(name, ())
    if len(known) != 1:
        count = f"{len(known)} of the name {name} are" if known else f"{name} is not"
        hint = (
            "convert each cluster's folder by itself" if known else "convert the EC2NodeClass together with this object"
        )
        for user in users:
            _lost(user, f"{count} among the files", hint)
        return
    ((index, draft),) = known
    own = draft.get(*_PLACE)
    groups: dict[str, list[Work]] = {}
    for user in users:
        wanted = user.kubelet[1] if user.kubelet is not None else own
        groups.setdefault(json.dumps(wanted, sort_keys=True), []).append(user)
    stays = json.dumps(own, sort_keys=True) if own is not None else _NOTHING
    if stays not in groups and own is None:
        stays = next(iter(groups))
    pristine = draft.copy()
    if own is not None:
        pristine.remove(_PLACE)
    for wanted, group in groups.items():
        if wanted == _NOTHING:
            continue
        if wanted == stays:
            _give(draft, group, index, classes, name)
        else:
            clone = pristine.copy()
            clone_name = _free(f"{name}-{group[0].draft.get('metadata', 'name')}", classes)
            clone.put(("metadata", "name"), clone_name)
            classes.clones.append((index, clone))
            for user in group:
                path = (*REFERENCES[str(user.draft.get("kind"))], "name")
                user.draft.put(path, clone_name, *user.draft.origins(path))
            _give(clone, group, index, classes, clone_name)


def _free(name: str, classes: Classes) -> str:
    """A name that no class has: this one, or with a number."""
    taken = {*classes.known, *(clone.get("metadata", "name") for _, clone in classes.clones)}
    return next(n for n in (name, *(f"{name}-{i}" for i in range(2, len(taken) + 3))) if n not in taken)


def _give(draft: Draft, group: Sequence[Work], index: int, classes: Classes, name: str) -> None:
    for user in group:
        if user.kubelet is None:
            continue
        steps, value = user.kubelet
        if draft.get(*_PLACE) is None:
            draft.put(_PLACE, value, user.origin(steps))
        classes.tie(user.index, index)
        message = f"v1 has the kubelet's configuration in the EC2NodeClass: moved to spec.kubelet of {name}"
        user.tell(MOVED, steps, message)


def _lost(user: Work, where: str, hint: str) -> None:
    if user.kubelet is not None:
        message = f"the kubelet's configuration has to move to its EC2NodeClass: {where}"
        user.tell(NO_CLASS, user.kubelet[0], message, hint)
