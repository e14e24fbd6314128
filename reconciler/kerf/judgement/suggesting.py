"""Suggest single changes that may unblock a node, most likely first, by its blockers; `trials` tries each of them.

Changes that cannot help are left out: with lasting blockers of several kinds no single change is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, product, zip_longest
from typing import Final

from kerf.disruption.asking import Scheduler, Solve
from kerf.disruption.candidates.candidates import Candidate, pod_blockers
from kerf.disruption.consolidation.consequences import owner_of
from kerf.disruption.simulation import simulate, unhoused
from kerf.disruption.view import View
from kerf.judgement.allowances import tightest
from kerf.judgement.changes import (
    Adopt,
    AllowMore,
    Change,
    Consolidate,
    OfPods,
    OfPool,
    OpenGate,
    Permit,
    Unmark,
    UnmarkNode,
)
from kerf.judgement.obstacles import DEAR, NOT_WORTH_IT, STRANDED, alike, beats, manner_of, shortfalls
from kerf.judgement.values import End
from kerf.model.aws.instance_type import InstanceType
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.answers.edits import (
    AddValue,
    DropRow,
    LowerMinValues,
    LowerRequest,
    PodEdit,
    PoolEdit,
    RaiseLimits,
)
from kerf.scheduling.answers.solution import NewNode
from kerf.scheduling.offerings import prices
from kerf.scheduling.refusals.nearest import FAR_FROM_IT
from kerf.scheduling.refusals.suggestions import readable
from kerf_api import labels
from kerf_api.requirements import IN, NOT_IN, Requirements
from kerf_api.resources import Resources, total
from kerf_api.v1.meta import Entry
from kerf_api.v1.nodepool import NodePool

EVERYTHING: Final = "WhenEmptyOrUnderutilized"
#: The most types, cheapest first, that are considered for an edit of a NodePool and for an edit of pods.
_MOST_TYPES: Final = 5


def suggested(view: View, one: Candidate, end: End, ask: Solve) -> Iterator[Change]:
    """Return changes that may remove every lasting blocker of this disruption."""
    codes = {hold.code for hold in end.open}
    if len(codes) != 1:
        return
    (code,) = codes
    if code == "PodDoNotDisrupt":
        yield from _unmarking(view, one)
    elif code == "PodDisruptionBudget":
        blocking = {key for found in pod_blockers(view, one.pods) for key in found.budgets}
        yield from (Permit(key) for key in sorted(blocking))
    elif code == "Budget":
        yield from _allowing(view, one, end)
    elif code in (STRANDED, *DEAR):
        yield from _housing(view, one, end.code, code, ask)
    else:
        yield from _setting(one, code)


def _setting(one: Candidate, code: str) -> Iterator[Change]:
    """Return changes of a setting of the user: an annotation, a field of the NodePool or a feature gate."""
    if code == "NodeDoNotDisrupt":
        yield UnmarkNode(one.key, one.node.name)
    elif code == "ConsolidationDisabled":
        yield Consolidate(one.pool.name, one.key)
    elif code in ("WhenEmpty", NOT_WORTH_IT):
        yield Adopt(one.pool.name, EVERYTHING)
    elif code == "StaticCapacityOff":
        yield OpenGate("StaticCapacity", "static_capacity")
    elif code == "NodeLimitReached":
        yield OfPool(RaiseLimits(one.pool.name, _raised(one.pool, {"nodes": 1})))


# --- annotations and budgets ------------------------------------------------------------------------------------
def _unmarking(view: View, one: Candidate) -> Iterator[Change]:
    """Return one change for all pods of a workload: the annotation is in its pod template."""
    marked = {found.pod for found in pod_blockers(view, one.pods) if found.code == "PodDoNotDisrupt"}
    groups: dict[str, list[Pod]] = {}
    for pod in one.pods:
        if pod.key in marked:
            groups.setdefault(_whose(pod), []).append(pod)
    yield from (Unmark(whose, frozenset(pod.key for pod in some)) for whose, some in groups.items())


def _whose(pod: Pod) -> str:
    """Return the name of the object whose manifest the user must edit."""
    return owner_of(pod) or f"pod {pod.key}"


def _allowing(view: View, one: Candidate, end: End) -> Iterator[Change]:
    """Return the tightest budget, raised to one more node than are being disrupted now."""
    found = tightest(view, one.pool.name, end.code)
    if found is not None:
        row, going = found
        yield AllowMore(one.pool.name, row.index, going + 1, row.budget.nodes)


# --- requirements of pods ---------------------------------------------------------------------------------------
def _housing(view: View, one: Candidate, reason: str, code: str, ask: Solve) -> Iterator[Change]:
    """Return edits of pods and of NodePools alternately, so that the bound on tries covers both."""
    if not isinstance(ask, Scheduler):
        return
    if code == "SpotToSpotDisabled":
        yield OpenGate("SpotToSpotConsolidation", "spot_to_spot_consolidation")
    manner = manner_of(reason)
    new = simulate(view, [one], ask, manner).new_nodes
    answers = alike(one, unhoused(view, one, ask, manner, open_new=code == STRANDED))
    offered = [(some, edit) for some, why in answers if why.account is not None for edit in why.account.edits]
    of_pods = [_of_pods(view, one, some[0], edit) for some, edit in offered if isinstance(edit, PodEdit)]
    of_pools: list[Change] = [OfPool(_amounted(view, one, edit)) for _, edit in offered if isinstance(edit, PoolEdit)]
    of_pods += [_of_pods(view, one, pod, edit) for pod, edit in _smaller(view, one, new)]
    for node in new:
        of_pools += [OfPool(edit) for edit in _wider(view, one, node, code)]
    yield from _each_once(c for c in chain.from_iterable(zip_longest(of_pods, of_pools)) if c is not None)


def _each_once(changes: Iterable[Change]) -> Iterator[Change]:
    known: list[Change] = []
    for change in changes:
        if change not in known:
            known.append(change)
            yield change


def _of_pods(view: View, one: Candidate, pod: Pod, edit: PodEdit) -> Change:
    """Return the edit for all pods of the node with the same manifest. An edit of anti-affinity applies to pods
    on all nodes, because these exclude pods as well."""
    whose = _whose(pod)
    change = OfPods(whose, frozenset(other.key for other in one.movable if _whose(other) == whose), edit)
    if not change.of_others:
        return change
    return replace(change, pods=frozenset(key for key, other in view.snapshot.pods.items() if _whose(other) == whose))


def _smaller(view: View, one: Candidate, new: Sequence[NewNode]) -> Iterator[tuple[Pod, PodEdit]]:
    """Return lower requests of one workload, so that one cheaper node has capacity for all pods without another node.

    Types that lack one resource are considered, the smallest lack first; the workload with the highest request changes.
    """
    if not new:
        return
    need = total(node.requests for node in new)
    there = [pod for pod in one.movable if any(pod.key in node.pods for node in new)]
    for name, lack in _lacks(view, one, new[0], need)[:_MOST_TYPES]:
        asking = Counter[str]()
        for pod in there:
            asking[_whose(pod)] += pods.requests(pod)[name]
        whose = max(asking, key=lambda who: (asking[who], who))
        some = [pod for pod in there if _whose(pod) == whose]
        before = pods.requests(some[0])[name]
        after = readable(name, before - -(-lack // len(some)))
        if name != "pods" and after > 0 and after * FAR_FROM_IT >= before:
            yield some[0], LowerRequest(name, before, after)


def _lacks(view: View, one: Candidate, new: NewNode, need: Resources) -> list[tuple[str, int]]:
    """Return the only resource that each cheaper type lacks, with the amount; the smallest share of the need first."""
    pool = view.snapshot.node_pools[new.pool]
    own = view.requirements_of(pool) or Requirements()
    rows = []
    for type_ in view.types_of(pool).values():
        if own.compatible(type_.requirements, labels.WELL_KNOWN) and beats(view, one, type_, new.requirements):
            lacks = [(n, amount - type_.allocatable[n]) for n, amount in need.items() if amount > type_.allocatable[n]]
            if len(lacks) == 1:
                rows.append((Fraction(lacks[0][1], need[lacks[0][0]]), type_.name, *lacks[0]))
    return [(name, lack) for _, _, name, lack in sorted(rows)]


# --- requirements of a NodePool ---------------------------------------------------------------------------------
def _wider(view: View, one: Candidate, new: NewNode, code: str) -> Iterator[PoolEdit]:
    """Return edits that allow a cheaper node: one more value in a requirement, or one requirement less."""
    pool = view.snapshot.node_pools[new.pool]
    if code == "MinValues":
        yield from _fewer_values(view, one, new)
    rows = [(labels.normalise(entry.key), entry) for entry in pool.spec.template.spec.requirements]
    for key in sorted({key for key, _ in rows}, key=_freedom):
        relaxed = new.requirements.without(key)
        cheaper = _cheaper(view, one, pool, new, relaxed)
        for type_, (name, entry) in product(cheaper[:_MOST_TYPES], rows):
            if name == key:
                yield from (AddValue(pool.name, key, value) for value in _missing(view, entry, key, type_, relaxed))
        if cheaper:
            yield DropRow(pool.name, key)


def _freedom(key: str) -> tuple[bool, bool, str]:
    """Return the sort key of a label: labels of the type first, then the zone, then the capacity type."""
    return key == labels.CAPACITY_TYPE, key == labels.ZONE, key


def _cheaper(
    view: View, one: Candidate, pool: NodePool, new: NewNode, requirements: Requirements
) -> list[InstanceType]:
    """Return types with capacity for the pods that are cheaper than the node by these requirements, cheapest first."""
    found = []
    for type_ in view.types_of(pool).values():
        fits = type_.holding(new.requests)
        if type_.name in new.instance_types and beats(view, one, fits, new.requirements):
            continue
        worst = prices.worst_launch_price(fits, requirements, view.snapshot)
        allowed = requirements.compatible(fits.requirements, labels.WELL_KNOWN)
        if allowed and worst is not None and worst < one.price:
            found.append((worst, type_.name, fits))
    return [fits for _, _, fits in sorted(found, key=lambda row: row[:2])]


def _missing(view: View, entry: Entry, key: str, type_: InstanceType, requirements: Requirements) -> Iterator[str]:
    """Return values of the label that the type, or a cheaper offering of it, has and the entry does not allow."""
    if entry.operator not in (IN, NOT_IN):
        return
    offers = list(prices.compatible(type_, requirements, view.snapshot))
    if key == labels.CAPACITY_TYPE:
        values = {o.capacity_type for o in offers}
    elif key == labels.ZONE:
        values = {o.zone for o in offers}
    else:
        values = set(type_.requirements.allowed(key).values)
    allowed = set(entry.values)
    yield from sorted(values - allowed if entry.operator == IN else values & allowed)[:_MOST_TYPES]


def _fewer_values(view: View, one: Candidate, new: NewNode) -> Iterator[PoolEdit]:
    """Return minValues lowered to the number of values of the cheaper types."""
    for key, asked, there in shortfalls(view, one, new):
        yield LowerMinValues(new.pool, key, asked, max(there, 1))


def _amounted(view: View, one: Candidate, edit: PoolEdit) -> PoolEdit:
    """Return limits that allow the node and its replacement at the same time."""
    if not isinstance(edit, RaiseLimits) or edit.limits:
        return edit
    return RaiseLimits(edit.pool, _raised(view.snapshot.node_pools[edit.pool], {**one.state.capacity, "nodes": 1}))


def _raised(pool: NodePool, more: Mapping[str, int]) -> tuple[tuple[str, int, int], ...]:
    limits: Mapping[str, int] = pool.limits or {}
    return tuple((name, limits[name], limits[name] + more[name]) for name in sorted(limits) if more.get(name))
