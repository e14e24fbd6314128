"""What a change of manifests means for the cluster that they are applied to: which nodes it drains or replaces.

Given is what a repository holds before and after. Objects are matched by kind and name, those that have another name
by what they ask for: for a cluster that is another object, and all nodes of the old one are removed. What a change
refuses (the rules about changes in the definitions) is reported by `validate` with the old object, not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

from kerf_api import crds
from kerf_api.defaulting import default
from kerf_api.foreign import is_foreign
from kerf_api.lint.differences import changes_ec2nodeclass, changes_nodepool
from kerf_api.lint.problem import Found, Problem, at, ordered, some
from kerf_api.lint.reading.plain import plain
from kerf_api.lint.reading.reading import is_kind, part
from kerf_api.lint.settings import STANDARD, LintSettings

#: So much of what two objects ask for must be the same for one to be the other under another name.
_ALIKE: Final = 0.75
_NAME: Final = ("metadata", "name")

_Key = tuple[str, str, str, str]


class Located(NamedTuple):
    """A manifest and the file that it is in."""

    file: str
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Changes:
    """What became of the objects of two sets.

    `pairs`: for an object after the change the one before it that has its kind and name, both as indexes. `same`: those
    after it that are as they were. `found` and `removed`: what the change means, a list for each object after and
    before it; of those before it only objects that are gone have any.
    """

    pairs: Mapping[int, int]
    same: frozenset[int]
    found: tuple[tuple[Problem, ...], ...]
    removed: tuple[tuple[Problem, ...], ...]


def changes(before: Sequence[Located], after: Sequence[Located], settings: LintSettings = STANDARD) -> Changes:
    """What became of each object, and what that means. Never raises, whatever is given.

    A change of an object that is another controller's before and after means nothing here.
    """
    old, new = ([plain(located.manifest)[0] for located in given] for given in (before, after))
    pairs = _pairs([_key(m) for m in old], [_key(m) for m in new], before, after)
    same = frozenset(index for index, other in pairs.items() if new[index] == old[other])
    judged = {i: j for i, j in pairs.items() if not (is_foreign(old[j]) and is_foreign(new[i]))}
    gone = [j for j, manifest in enumerate(old) if j not in set(pairs.values()) and not is_foreign(manifest)]
    come = [i for i, manifest in enumerate(new) if i not in pairs and not is_foreign(manifest)]
    renamed = _renamed(old, new, gone, come)
    own = [{} if is_foreign(manifest) else manifest for manifest in new]
    found: list[list[Problem]] = [[] for _ in new]
    for index, problem in (
        *_names(old, own, renamed),
        *changes_nodepool.check(
            [(i, default(old[j]), default(new[i])) for i, j in judged.items()], own, settings.types
        ),
        *changes_ec2nodeclass.check([(i, default(old[j]), default(new[i])) for i, j in judged.items()], own),
    ):
        found[index].append(problem)
    removed: list[list[Problem]] = [[] for _ in old]
    for index in gone:
        if index not in renamed.values():
            removed[index] += _removal(old[index], own)
    return Changes(
        pairs,
        same,
        tuple(tuple(ordered(problems)) for problems in found),
        tuple(tuple(ordered(problems)) for problems in removed),
    )


def _key(manifest: Mapping[str, Any]) -> _Key:
    group = str(manifest.get("apiVersion")).rpartition("/")[0]
    namespace, name = part(manifest, "metadata", "namespace"), part(manifest, *_NAME)
    return group, str(manifest.get("kind")), str(namespace or ""), str(name)


def _pairs(old: list[_Key], new: list[_Key], before: Sequence[Located], after: Sequence[Located]) -> dict[int, int]:
    """Objects of one kind and name, those of the same file first: several clusters may have one of a name each."""
    pairs: dict[int, int] = {}
    for same_file in (True, False):
        left: dict[tuple[_Key, str], list[int]] = {}
        taken = set(pairs.values())
        for index, key in enumerate(old):
            if index not in taken:
                left.setdefault((key, before[index].file if same_file else ""), []).append(index)
        for index, key in enumerate(new):
            others = left.get((key, after[index].file if same_file else ""))
            if index not in pairs and others:
                pairs[index] = others.pop(0)
    return pairs


def _renamed(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]], gone: list[int], come: list[int]
) -> dict[int, int]:
    """Which new object is a gone one under another name: the most alike first."""
    scores = []
    for kind in ("NodePool", "EC2NodeClass"):
        were = {j: _asked(old[j]) for j in gone if is_kind(old[j], kind)}
        are = {i: _asked(new[i]) for i in come if is_kind(new[i], kind)}
        for i, j in product(are, were):
            alike = len(are[i] & were[j]) / max(1, len(are[i] | were[j]))
            if alike >= _ALIKE:
                scores.append((-alike, i, j))
    renamed: dict[int, int] = {}
    for _, i, j in sorted(scores):
        if i not in renamed and j not in renamed.values():
            renamed[i] = j
    return renamed


def _asked(manifest: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """All that an object asks for, each with the path to it."""
    return frozenset(_leaves(default(manifest).get("spec"), ""))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, entry in value.items():
            yield from _leaves(entry, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for entry in value:
            yield from _leaves(entry, f"{path}[]")
    else:
        yield path, repr(value)


def _names(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]], renamed: Mapping[int, int]) -> Found:
    for index, other in renamed.items():
        was = str(part(old[other], *_NAME))
        if is_kind(new[index], "NodePool"):
            message = f"this renames NodePool {was}: a cluster sees another NodePool, and deletes all nodes of {was}"
            hint = f"keep the name {was}; or apply this one first, and remove {was} when its nodes are drained"
            yield index, at(_NAME, "KERF-DIFF-301", "warning", message, hint, part(new[index], *_NAME))
            continue
        users = changes_ec2nodeclass.pools_of(str(part(new[index], *_NAME)), new)
        message = f"this renames EC2NodeClass {was}: nodes are replaced{_of(users)}"
        left = changes_ec2nodeclass.pools_of(was, new)
        hint = f"NodePool {some(left)} still names {was}" if left else f"keep the name {was}"
        yield index, at(_NAME, "KERF-DIFF-321", "warning", message, hint, part(new[index], *_NAME))


def _removal(manifest: Mapping[str, Any], new: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    name = str(part(manifest, *_NAME))
    if is_kind(manifest, "NodePool"):
        message = f"NodePool {name} is removed: all its nodes are drained and terminated"
        hint = "set its limits to 0 first, and remove it when its pods run in other NodePools"
        yield at(_NAME, "KERF-DIFF-302", "warning", message, hint, name)
    elif is_kind(manifest, "EC2NodeClass"):
        users = changes_ec2nodeclass.pools_of(name, new)
        fate = f", but NodePool {some(users)} still names it and launches nothing without it" if users else ""
        message = f"EC2NodeClass {name} is removed{fate}"
        hint = "remove it after the nodes that were made with it: until then it stays, about to be deleted"
        yield at(_NAME, "KERF-DIFF-322", "warning", message, hint, name)
    elif manifest.get("kind") == "CustomResourceDefinition" and name in _definitions():
        message = f"the CRD {name} is removed: the cluster deletes all its objects, and so their nodes"
        hint = "keep it; Flux: kustomize.toolkit.fluxcd.io/prune: disabled, Argo CD: sync option Prune=false"
        yield at(_NAME, "KERF-DIFF-331", "warning", message, hint, name)


def _definitions() -> frozenset[str]:
    return frozenset(str(crds.load(kind)["metadata"]["name"]) for kind in crds.kinds())


def _of(pools: Sequence[str]) -> str:
    return f", those of NodePool {some(pools)}" if pools else ""
