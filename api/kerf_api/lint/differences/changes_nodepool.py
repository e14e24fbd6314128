"""What a change of a NodePool means for its nodes and for the pods on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kerf_api import durations, labels
from kerf_api.lint.advice.requirement_advice import Row, rows_of
from kerf_api.lint.catalogue import Catalogue
from kerf_api.lint.differences import changes_disruption
from kerf_api.lint.differences.drifting import drifting
from kerf_api.lint.problem import Found, Problem, at, path_text, shown, some
from kerf_api.lint.reading.reading import amount, entries, is_kind, mapping, part
from kerf_api.requirements import Requirement, Requirements
from kerf_api.texts import counted
from kerf_api.v1.hashes import nodepool_hash
from kerf_api.v1.meta import decode
from kerf_api.v1.nodepool import NodePool

Manifest = Mapping[str, Any]

_TEMPLATE: Final = ("spec", "template", "spec")
_REF: Final = (*_TEMPLATE, "nodeClassRef")
#: What the hash is made of.
_HASHED: Final = (
    *(("spec", "template", "metadata", field) for field in ("labels", "annotations")),
    *(
        (*_TEMPLATE, field)
        for field in ("taints", "startupTaints", "nodeClassRef", "terminationGracePeriod", "expireAfter")
    ),
)
_HARD: Final = ("NoSchedule", "NoExecute")
#: Labels whose values are listed one by one; of the others, that instance types are lost.
_TOLD: Final = (labels.CAPACITY_TYPE, labels.ARCH, labels.OS)
_MOST_TOLD: Final = 5


def check(pairs: Sequence[tuple[int, Manifest, Manifest]], manifests: Sequence[Manifest], types: Catalogue) -> Found:
    """What changes mean. `pairs`: a NodePool's index among the manifests, how it was and how it is, defaults filled
    in; objects of other kinds are passed over."""
    for index, before, after in pairs:
        if is_kind(before, "NodePool") and is_kind(after, "NodePool") and before != after:
            others = [m for number, m in enumerate(manifests) if number != index and is_kind(m, "NodePool")]
            for problem in (
                *_drift(before, after),
                *_narrowed(before, after, types),
                *_limits(before, after),
                *_lifetime(before, after),
                *_taints(before, after),
                *_weight(before, after, others),
                *_replicas(before, after),
                *changes_disruption.check(before, after),
            ):
                yield index, problem


def _hash(manifest: Manifest) -> str:
    return nodepool_hash(decode(NodePool, manifest))


def _drift(before: Manifest, after: Manifest) -> Iterator[Problem]:
    """That all nodes are replaced; not where the change is refused anyway."""
    if any(part(before, *_REF, field) != part(after, *_REF, field) for field in ("group", "kind")):
        return
    places = drifting(_hash, before, after, _HASHED)
    if places:
        names = " and ".join(path_text(place) for place in places)
        message = f"a change of {names} replaces all nodes of the NodePool, as its budgets for Drifted allow"
        hint = "give it a budget for Drifted, and make such changes together: each one replaces every node"
        yield at(places[0], "KERF-DIFF-303", "warning", message, hint)


def _narrowed(before: Manifest, after: Manifest, types: Catalogue) -> Iterator[Problem]:
    """What the pool could launch and no longer can; its nodes of that kind drift."""
    rows = rows_of("NodePool", after)
    had, has = (Requirements(row.wanted for row in rows_of("NodePool", m)) for m in (before, after))
    for key in has:
        row = _row(rows, key)
        if row is not None and (key in _TOLD or not types.knows(key)):
            lost = _lost(had.allowed(key), has[key])
            if lost:
                yield _no_longer(row, f"{key}: {lost}")
    before_types, after_types = (types.meeting_all(wanted.values()) for wanted in (had, has))
    if not after_types or not before_types & ~after_types:
        return
    lost_types = types.named(before_types & ~after_types)
    changed = [key for key in has if types.knows(key) and key not in _TOLD and has[key] != had.allowed(key)]
    row = next((found for key in changed if (found := _row(rows, key))), None)
    if row is not None:
        listed = ", ".join(lost_types[:_MOST_TOLD]) + (", …" if len(lost_types) > _MOST_TOLD else "")
        count = before_types.bit_count()
        yield _no_longer(row, f"{len(lost_types)} of the {count} instance types that it had are lost: {listed}")


def _row(rows: Sequence[Row], key: str) -> Row | None:
    """The requirement of a label; a label of the template is none: its change replaces all nodes anyway."""
    return next((row for row in rows if row.wanted.key == key and not row.is_label), None)


def _no_longer(row: Row, lost: str) -> Problem:
    message = f"the NodePool allows less than before; {lost}; nodes that are no longer allowed are replaced"
    return at(row.steps, "KERF-DIFF-304", "warning", message, "check for pods that need the lost values")


def _lost(had: Requirement, has: Requirement) -> str:
    """What was allowed for a label and is no longer, in words; "" when nothing is lost."""
    both = had.intersection(has)
    if (both.complement, both.values, both.gte, both.lte) == (had.complement, had.values, had.gte, had.lte):
        return ""
    if not had.complement:
        return f"no longer {some([shown(value, quotes=False) for value in had.values - both.values])}"
    if not has.complement:
        return f"only {some([shown(value, quotes=False) for value in has.values])} from now on"
    excluded = has.values - had.values
    return f"no longer {some(sorted(excluded))}" if excluded else f"only {has} from now on"


def _limits(before: Manifest, after: Manifest) -> Iterator[Problem]:
    for name, limit in mapping(after, "spec", "limits").items():
        had, has = amount(mapping(before, "spec", "limits").get(name)), amount(limit)
        if has is not None and (had is None or has < had):
            was = shown(mapping(before, "spec", "limits").get(name), quotes=False) if had is not None else "none"
            message = (
                f"the limit of {name} is now {shown(limit, quotes=False)} (it was {was}): above it nothing is launched"
            )
            hint = "nodes that are there stay; compare with kubectl get nodepools -o wide before it is merged"
            yield at(("spec", "limits", name), "KERF-DIFF-305", "warning", message, hint, limit)


def _lifetime(before: Manifest, after: Manifest) -> Iterator[Problem]:
    place = (*_TEMPLATE, "expireAfter")
    try:
        had, has = (durations.parse_nillable(part(m, *place)) for m in (before, after))
    except (ValueError, TypeError):
        return
    if has is not None and (had is None or has < had):
        was = part(before, *place)
        message = (
            f"nodes live for {part(after, *place)} instead of {was}: all of them are replaced that much more often"
        )
        hint = "drains for expiration wait for no budget; see that terminationGracePeriod and PDBs allow them"
        yield at(place, "KERF-DIFF-307", "warning", message, hint, part(after, *place))


def _taints(before: Manifest, after: Manifest) -> Iterator[Problem]:
    had = [_taint(taint) for _, taint in entries(before, *_TEMPLATE, "taints")]
    for steps, taint in entries(after, *_TEMPLATE, "taints"):
        if taint.get("effect") in _HARD and _taint(taint) not in had:
            message = (
                f"the taint {taint.get('key')} is new: pods of the NodePool that do not tolerate it lose their nodes"
            )
            hint = "add the toleration to the pods first, or give the taint to a new NodePool"
            yield at(steps, "KERF-DIFF-308", "warning", message, hint, dict(taint))


def _taint(taint: Manifest) -> tuple[Any, Any, Any]:
    return taint.get("key"), taint.get("value") or "", taint.get("effect")


def _weight(before: Manifest, after: Manifest, others: Sequence[Manifest]) -> Iterator[Problem]:
    """Which of the other pools of these files are tried in another order than before."""
    had, has = (part(manifest, "spec", "weight") or 0 for manifest in (before, after))
    if not (isinstance(had, int) and isinstance(has, int)) or had == has:
        return
    passed = []
    for other in others:
        weight = part(other, "spec", "weight") or 0
        if isinstance(weight, int) and (had > weight) - (had < weight) != (has > weight) - (has < weight):
            passed.append(shown(part(other, "metadata", "name"), quotes=False))
    if passed:
        order = "before" if has > had else "after"
        message = (
            f"the weight changes from {had} to {has}: Kerf now tries the NodePool {order} {some(passed)}, or beside it"
        )
        hint = "pods that are already placed stay where they are until something moves them"
        yield at(("spec", "weight"), "KERF-DIFF-309", "info", message, hint, has)


def _replicas(before: Manifest, after: Manifest) -> Iterator[Problem]:
    had, has = (part(manifest, "spec", "replicas") for manifest in (before, after))
    if isinstance(had, int) and isinstance(has, int) and has < had:
        nodes = f"{counted(had - has, 'node')} {'is' if had - has == 1 else 'are'}"
        message = f"replicas change from {had} to {has}: {nodes} drained and terminated"
        yield at(("spec", "replicas"), "KERF-DIFF-311", "warning", message, "", has)
