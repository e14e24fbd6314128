"""Makes v1 of manifests that were written for older versions, as far as v1 can say what they said.

Pure: objects in, objects and problems out. `convert` is given all manifests of a cluster together, because some things
move from one object to another. A manifest is converted whole or not at all: an error of one leaves it as it is, and
with it those that share a move. The tables of what becomes of each field are in pools.py and classes.py.

Source: the schemas of v1alpha5, v1alpha1, v1beta1 and v1, and what converters of those days did; where they
changed what a manifest meant, ours does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kerf_api import crds, labels, old_names
from kerf_api.lint import LintSettings, Problem, Steps, ordered, validate
from kerf_api.lint.problem import shown
from kerf_api.lint.reading.plain import plain

from . import classes, neighbours, pools, workloads
from .draft import Draft, Origin, Origins, at_path
from .kubelets import REFERENCES, Classes, settle
from .work import MALFORMED, NO_EQUIVALENT, TIED, Wish, Work

__all__ = ["Conversion", "Draft", "Origin", "Origins", "Wish", "at_path", "convert"]

_CONVERTERS: Final[Mapping[tuple[str, str], Callable[[Work], None]]] = {
    (f"{labels.GROUP}/v1alpha5", "Provisioner"): pools.provisioner,
    (f"{labels.GROUP}/v1alpha5", "Machine"): pools.machine,
    (f"{labels.AWS_GROUP}/v1alpha1", "AWSNodeTemplate"): classes.template,
    (f"{labels.GROUP}/v1beta1", "NodePool"): pools.node_pool,
    (f"{labels.GROUP}/v1beta1", "NodeClaim"): pools.claim,
    (f"{labels.AWS_GROUP}/v1beta1", "EC2NodeClass"): classes.node_class,
}
_NO_ADVICE: Final = LintSettings(advice=False)
_EXPIRY: Final = "expireAfter"


@dataclass(frozen=True, slots=True)
class Conversion:
    """What came of the manifests, by their indexes.

    `results` are the objects that take a manifest's place, None where it stays as it is. `problems` name places in the
    old manifests; an error says why one stays that should not. `ties` are manifests that were converted together.
    """

    results: tuple[tuple[Draft, ...] | None, ...]
    problems: tuple[tuple[int, Problem], ...]
    ties: frozenset[frozenset[int]]

    def failed(self, index: int) -> bool:
        """Whether a manifest could not be converted."""
        return any(at == index and problem.severity == "error" for at, problem in self.problems)


def convert(
    manifests: Sequence[Mapping[str, Any]], wish: Wish | None = None, unsound: Mapping[int, Problem] | None = None
) -> Conversion:
    """v1 of every manifest that is older; what is none, or needs none, stays. Arguments are not changed.

    `unsound` are manifests that may not be changed, by index, each with the problem that says why.
    """
    works = [_work(index, manifest, wish or Wish()) for index, manifest in enumerate(manifests)]
    ties: set[frozenset[int]] = set()
    _meet_namesakes(works)
    found = _classes(works, lambda one, other: ties.add(frozenset((one, other))))
    settle([work for work in works if str(work.draft.get("kind")) in REFERENCES], found)
    _expire_like_pools(works)
    results = [_results(work, [clone for index, clone in found.clones if index == work.index]) for work in works]
    for work, drafts in zip(works, results, strict=True):
        if drafts is not None and unsound and work.index in unsound:
            work.problems.append(unsound[work.index])
        if not _has_error(work):
            _refuse(works, work, drafts or ())
    failed = _failed(works, ties)
    return Conversion(
        tuple(None if work.index in failed else drafts for work, drafts in zip(works, results, strict=True)),
        tuple((work.index, problem) for work in works for problem in _told(work)),
        frozenset(ties),
    )


def _work(index: int, manifest: Mapping[str, Any], wish: Wish) -> Work:
    clean, faults = plain(manifest)
    version, kind = str(clean.get("apiVersion")), str(clean.get("kind"))
    work = Work(index, clean, wish)
    if faults:
        work.draft = Draft(clean, Origin(index, ()))
        work.problems += faults if (version, kind) in _CONVERTERS else []
        return work
    converter = _CONVERTERS.get((version, kind))
    if converter is not None:
        converter(work)
        return work
    work.draft = Draft(clean, Origin(index, ()))
    group = version.partition("/")[0]
    if group in (labels.GROUP, labels.AWS_GROUP) and _is_strange(version, kind):
        message = f"nothing is known of {kind} in version {shown(version)}"
        known = sorted(version for version, name in _CONVERTERS if name == kind)
        work.tell(NO_EQUIVALENT, ("apiVersion",), message, f"known are {' and '.join(known)}" if known else "")
    else:
        workloads.rename(work)
        neighbours.tell(work)
    return work


def _is_strange(version: str, kind: str) -> bool:
    if kind in crds.kinds():
        return version != crds.api_version(kind) and any(name == kind for _, name in _CONVERTERS)
    return kind in old_names.KINDS


def _meet_namesakes(works: Sequence[Work]) -> None:
    """Old objects whose new name another object has already, as in the middle of an upgrade."""
    taken = {_identity(work.draft) for work in works if str(work.old.get("kind")) in crds.kinds()}
    for work in works:
        if str(work.old.get("kind")) not in old_names.KINDS:
            continue
        for draft in (work.draft, work.extra):
            if draft is not None and _identity(draft) in taken:
                kind, name = _identity(draft)
                message = f"it would become {kind} {shown(name)}, and one of that name is among the files"
                hint = "remove one of the two, or convert each cluster's folder by itself"
                work.tell(MALFORMED, ("metadata", "name"), message, hint, name)


def _identity(draft: Draft) -> tuple[str, str]:
    return str(draft.get("kind")), str(draft.get("metadata", "name"))


def _classes(works: Iterable[Work], tie: Callable[[int, int], None]) -> Classes:
    known: dict[str, list[tuple[int, Draft]]] = {}
    for work in works:
        for draft in (work.draft, work.extra):
            if draft is not None and draft.get("kind") == "EC2NodeClass":
                known.setdefault(str(draft.get("metadata", "name")), []).append((work.index, draft))
    return Classes(known, [], tie)


def _expire_like_pools(works: Sequence[Work]) -> None:
    """Claims of older versions had the expiry of their pool; in v1 they have their own."""
    template = ("spec", "template", "spec", _EXPIRY)
    pools_by_name = {_identity(w.draft)[1]: w.draft for w in works if w.draft.get("kind") == "NodePool"}
    for work in works:
        if work.draft.get("kind") == "NodeClaim" and work.draft.get("spec", _EXPIRY) is None:
            pool = pools_by_name.get(str(work.draft.get("metadata", "labels", labels.NODEPOOL)))
            if pool is not None and pool.get(*template) is not None:
                work.draft.put(("spec", _EXPIRY), pool.get(*template))


def _results(work: Work, clones: list[Draft]) -> tuple[Draft, ...] | None:
    """The objects that take the manifest's place; None when it would be the same."""
    if not clones and work.extra is None and work.draft.values == work.old:
        return None
    return (work.draft, *([work.extra] if work.extra is not None else []), *clones)


def _refuse(works: Sequence[Work], work: Work, drafts: Iterable[Draft]) -> None:
    """Report what v1 refuses in new objects, at the place where its value stood, or that of what is around it."""
    for draft in drafts:
        for problem in validate(draft.values, settings=_NO_ADVICE) if draft.get("kind") in crds.kinds() else ():
            if problem.severity == "error":
                index, steps = _place(works, work, draft, problem.steps)
                works[index].problems.append(replace(problem, steps=steps))


def _place(works: Sequence[Work], work: Work, draft: Draft, steps: Steps) -> tuple[int, Steps]:
    for depth in range(len(steps), -1, -1):
        for origin in reversed(draft.origins(steps[:depth])):
            if at_path(works[origin.manifest].old, origin.steps) is not None:
                return origin.manifest, origin.steps
    return work.index, ()


def _has_error(work: Work) -> bool:
    return any(problem.severity == "error" for problem in work.problems)


def _told(work: Work) -> list[Problem]:
    """The problems in order. Of what stays as it is, what would have become of it does not matter."""
    return ordered(p for p in work.problems if p.severity == "error" or not _has_error(work))


def _failed(works: Sequence[Work], ties: Iterable[frozenset[int]]) -> set[int]:
    """Manifests with an error, and those that are tied to one; a report names both."""
    failed = {work.index for work in works if _has_error(work)}
    groups = [*ties]
    while more := [group for group in groups if group & failed and not group <= failed]:
        for index in more[0] - failed:
            other = min(more[0] & failed)
            steps: Steps = ("metadata", "name")
            name = shown(at_path(works[other].old, steps))
            message = f"stays as it is, because {works[other].old.get('kind')} {name} cannot be converted with it"
            works[index].tell(TIED, ("kind",), message, "fix that first")
            failed.add(index)
    return failed
