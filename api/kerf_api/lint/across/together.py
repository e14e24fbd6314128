"""What only shows when several manifests are read side by side.

A NodePool that names no class, two pools that the same pod fits, a taint that nothing tolerates: each object is sound
by itself. Given is what one repository or chart holds, so what lies elsewhere cannot be known; a rule about objects of
one kind is silent when there are none of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from kerf_api import crds, labels
from kerf_api.defaulting import default
from kerf_api.foreign import is_foreign
from kerf_api.lint import nearest
from kerf_api.lint.across import together_buffers, together_classes, together_overlays, together_workloads
from kerf_api.lint.advice.requirement_advice import requirements
from kerf_api.lint.catalogue import Catalogue
from kerf_api.lint.problem import Found, Problem, Steps, at, ordered, shown, some
from kerf_api.lint.reading import placeholders
from kerf_api.lint.reading.plain import plain
from kerf_api.lint.reading.reading import entries, is_kind, mapping, part, texts
from kerf_api.lint.reading.workloads import Toleration, pod_spec, tolerations
from kerf_api.lint.rules import old_names, pod_annotations, written_annotations
from kerf_api.lint.settings import STANDARD, LintSettings
from kerf_api.requirements import Requirements

_TEMPLATE: Final = ("spec", "template", "spec")
#: Effects that keep a pod away.
_HARD: Final = ("NoSchedule", "NoExecute")

#: Each pool is compared with so many others or classes at most, so that the work grows in proportion to the files.
_MOST_COMPARED: Final = 100
#: So many other places are named in a message.
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Pool:
    """A NodePool as the others see it; `index` is its place among the manifests; `name` is empty when it has none."""

    index: int
    name: str
    manifest: Mapping[str, Any]
    weight: int
    taints: frozenset[tuple[str, str, str]]
    wanted: Requirements
    limited: bool

    @property
    def class_name(self) -> str:
        return str(part(self.manifest, *_TEMPLATE, "nodeClassRef", "name"))


def together(
    manifests: Sequence[Mapping[str, Any]], settings: LintSettings = STANDARD, places: Sequence[str] = ()
) -> list[list[Problem]]:
    """The problems that manifests have with each other, a list for each of them. Never raises, whatever is given.

    `places` are the file and line of each manifest, for messages about others; without them messages name none.
    NodePools and NodeClaims of other controllers have none; pods may have a place on their nodes.
    """
    found: list[list[Problem]] = [[] for _ in manifests]
    given = [plain(manifest)[0] for manifest in manifests]
    cleaned = [{} if is_foreign(manifest) else manifest for manifest in given]
    pools = [pool for index, manifest in enumerate(cleaned) for pool in _pool(index, manifest)]
    classes = {str(part(m, "metadata", "name")): i for i, m in enumerate(cleaned) if is_kind(m, "EC2NodeClass")}
    tolerated = [toleration for manifest in cleaned for toleration in tolerations(manifest)]
    for index, problem in (
        *_twice(cleaned, places),
        *_classes(pools, classes),
        *_drifting(pools, classes, cleaned),
        *_alike(pools),
        *_shadowed(pools, settings.types),
        *(_untolerated(pools, tolerated) if any(map(pod_spec, cleaned)) else ()),
        *together_classes.check(cleaned),
        *together_overlays.check(given, settings.types),
        *together_buffers.check(cleaned),
        *together_workloads.check(cleaned, settings.types, hosted_elsewhere=given != cleaned),
        *((index, problem) for index, manifest in enumerate(cleaned) for problem in _alone(manifest)),
    ):
        found[index].append(problem)
    return [ordered(map(placeholders.explained, problems)) for problems in found]


def _alone(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with a manifest of any kind by itself: workloads are looked at nowhere else."""
    yield from old_names.check(manifest)
    yield from written_annotations.of_object(manifest)
    yield from pod_annotations.check(manifest)


def _pool(index: int, manifest: dict[str, Any]) -> Iterator[Pool]:
    """The NodePool, unless it keeps a fixed number of nodes: such a pool serves no pods of its own accord."""
    if not is_kind(manifest, "NodePool") or part(manifest, "spec", "replicas") is not None:
        return
    whole = default(manifest)
    weight = part(whole, "spec", "weight")
    hard = [taint for _, taint in entries(whole, *_TEMPLATE, "taints") if taint.get("effect") in _HARD]
    yield Pool(
        index,
        str(part(whole, "metadata", "name") or ""),
        whole,
        weight if isinstance(weight, int) else 0,
        frozenset((str(t.get("key")), str(t.get("value") or ""), str(t.get("effect"))) for t in hard),
        requirements("NodePool", whole),
        bool(mapping(whole, "spec", "limits")),
    )


def _twice(manifests: Sequence[Mapping[str, Any]], places: Sequence[str]) -> Found:
    """Objects of one kind and name, of which the cluster can hold but one; each of them is reported."""
    same: dict[tuple[str, str, str], list[int]] = {}
    for index, manifest in enumerate(manifests):
        name = part(manifest, "metadata", "name")
        kind = next((kind for kind in crds.kinds() if is_kind(manifest, kind)), None)
        if kind is not None and isinstance(name, str):
            place = str(part(manifest, "metadata", "namespace") or "") if crds.is_namespaced(kind) else ""
            same.setdefault((kind, place, name), []).append(index)
    for (kind, _, name), indexes in same.items():
        for index in indexes if len(indexes) > 1 else ():
            others = [places[other] for other in islice(indexes, _MOST_NAMED + 1) if places and other != index]
            also = f": also at {some(others[:_MOST_NAMED], len(indexes) - 1)}" if others else ""
            times = "twice" if len(indexes) == 2 else f"{len(indexes)} times"
            message = f"{kind} {name} is defined {times}{also}; the one applied last replaces the others"
            hint = "rename or remove one; check what is for another cluster by itself"
            yield index, at(("metadata", "name"), "KERF-SET-308", "warning", message, hint, name)


def _classes(pools: Sequence[Pool], classes: Mapping[str, int]) -> Found:
    """References to classes that are not there, and classes without a reference."""
    place = (*_TEMPLATE, "nodeClassRef", "name")
    there = ", ".join(sorted(classes)) if len(classes) <= _MOST_COMPARED else some([*classes])
    for pool in pools if classes else ():
        kind = part(pool.manifest, *_TEMPLATE, "nodeClassRef", "kind")
        if kind == "EC2NodeClass" and pool.class_name not in classes:
            close = nearest.name(pool.class_name, classes) if len(classes) <= _MOST_COMPARED else None
            message = f"no EC2NodeClass {shown(pool.class_name)} is among these files"
            hint = f"did you mean {close}?" if close else f"there are {there}"
            yield pool.index, at(place, "KERF-SET-301", "warning", message, hint, pool.class_name)
    used = {pool.class_name for pool in pools}
    for name, index in classes.items() if pools else ():
        if name not in used:
            yield (
                index,
                at(("metadata", "name"), "KERF-SET-302", "info", "no NodePool of these files uses the EC2NodeClass"),
            )


def _drifting(pools: Sequence[Pool], classes: Mapping[str, int], manifests: Sequence[Mapping[str, Any]]) -> Found:
    """A class that follows the latest image, and a pool that lets all its nodes be replaced at once."""
    for pool in pools:
        index = classes.get(pool.class_name)
        if index is None or not _unbounded(pool.manifest):
            continue
        for steps, term in entries(manifests[index], "spec", "amiSelectorTerms"):
            alias = term.get("alias")
            if isinstance(alias, str) and alias.endswith("@latest"):
                message = f"a new image replaces all nodes of NodePool {pool.name} at once, on the day AWS releases it"
                hint = "pin a release, or give the NodePool a budget for Drifted"
                yield index, at((*steps, "alias"), "KERF-SET-303", "warning", message, hint, alias)


def _unbounded(pool: Mapping[str, Any]) -> bool:
    budgets = part(pool, "spec", "disruption", "budgets")
    if not isinstance(budgets, list):
        return False
    about = [
        b for b in budgets if isinstance(b, dict) and (b.get("reasons") is None or "Drifted" in texts(b["reasons"]))
    ]
    return all(budget.get("nodes") == "100%" for budget in about)


def _alike(pools: Sequence[Pool]) -> Found:
    """Pools of one weight between which nothing decides for a pod that asks for nothing special."""
    groups: dict[tuple[int, frozenset[tuple[str, str, str]]], Counter[str]] = {}
    pools = [pool for pool in pools if pool.name]
    for pool in pools:
        groups.setdefault((pool.weight, pool.taints), Counter())[pool.name] += 1
    first = {key: sorted(names.elements()) for key, names in groups.items()}
    for pool in pools:
        key = (pool.weight, pool.taints)
        total = len(first[key]) - groups[key][pool.name]
        if total:
            others = [*islice((name for name in first[key] if name != pool.name), 3)]
            named = some(others, total)
            message = f"a pod without requirements fits this NodePool and {named} alike, at equal weight"
            hint = "give one of them a taint or another weight; at equal weight the last name in the alphabet wins"
            yield pool.index, at(("metadata", "name"), "KERF-SET-304", "warning", message, hint, pool.name)


def _shadowed(pools: Sequence[Pool], types: Catalogue) -> Found:
    """Pools that are never asked, since one of greater weight and without limits takes all their pods."""
    unlimited = sorted((pool for pool in pools if not pool.limited), key=lambda pool: -pool.weight)[:_MOST_COMPARED]
    unlimited.sort(key=lambda pool: pool.index)
    for pool in pools:
        for other in unlimited:
            if other.weight > pool.weight and other.name != pool.name and _takes_all(other, pool, types):
                message = (
                    f"NodePool {other.name} has more weight, no limits, and accepts every pod that this one accepts"
                )
                hint = "limit the other one, or let this one differ by a taint, a label or its types"
                yield pool.index, at(("spec", "weight"), "KERF-SET-305", "warning", message, hint, pool.weight)
                break


def _takes_all(first: Pool, second: Pool, types: Catalogue) -> bool:
    """Whether the first pool can make every node that the second could, as far as pods can distinguish."""
    mine, theirs = (types.meeting_all(pool.wanted.values()) for pool in (first, second))
    if not first.taints <= second.taints or theirs & ~mine:
        return False
    return all(
        _within(second.wanted, first.wanted, key) for key in {*first.wanted, *second.wanted} if not types.knows(key)
    )


def _within(inner: Requirements, outer: Requirements, key: str) -> bool:
    """Whether all that `inner` allows for a label is allowed by `outer` too, where that is certain."""
    if key not in outer:
        return key in (labels.ZONE, labels.REGION)
    allowed = inner.allowed(key)
    return inner.allowed(key) == outer[key] or (not allowed.complement and all(map(outer[key].has, allowed.values)))


def _untolerated(pools: Sequence[Pool], tolerated: Sequence[Toleration]) -> Found:
    """Taints that keep every workload of these files away."""
    for pool in pools:
        for field, rule, fate in (
            ("taints", "KERF-SET-306", "no pod of these workloads can use these nodes"),
            (
                "startupTaints",
                "KERF-SET-307",
                "the agent that should remove it cannot run there either, and nodes never become ready",
            ),
        ):
            for steps, taint in entries(pool.manifest, *_TEMPLATE, field):
                if not any(toleration.tolerates(taint) for toleration in tolerated):
                    yield pool.index, _lonely(steps, taint, rule, fate)


def _lonely(steps: Steps, taint: Mapping[str, Any], rule: str, fate: str) -> Problem:
    message = f"no workload of these files tolerates the taint {taint.get('key')}: {fate}"
    return at(
        steps, rule, "warning", message, "add a toleration to the pods that are meant for the NodePool", dict(taint)
    )
