"""What a pod demands of a node's labels and taints, and its relaxations while it has no place.

A step down gives up one thing: first an alternative required term, then preferences from the heaviest on, then soft
spread constraints, then the aversion to soft taints. Source: scheduling reference §2.5 and §6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from kerf.model.boundaries import broken
from kerf.model.kubernetes.objects import (
    Affinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    PreferredTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from kerf_api import labels
from kerf_api.requirements import DOES_NOT_EXIST, EMPTY, EXISTS, IN, NOT_IN, Requirement, Requirements, requirement
from kerf_api.resources import Resources
from kerf_api.v1.meta import Taint

_SOFT = Toleration(operator="Exists", effect="PreferNoSchedule")
#: Operators of which every expression is well-formed.
_WITHOUT_BOUND = frozenset({IN, NOT_IN, EXISTS, DOES_NOT_EXIST})


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pod asks for at one relaxation.

    `requirements` has the heaviest preference in it; `strict` has not, and is what bounds the pod's own domains. A
    relaxation that contradicts itself is not `possible` (the algebra alone would read it as "label absent").
    """

    requirements: Requirements
    strict: Requirements
    tolerations: tuple[Toleration, ...]
    spreads: tuple[TopologySpreadConstraint, ...]
    affinity: tuple[PodAffinityTerm, ...]
    anti_affinity: tuple[PodAffinityTerm, ...]
    possible: bool = True

    def tolerates(self, taints: Iterable[Taint]) -> bool:
        return tolerates_all(self.tolerations, taints)


def tolerates_all(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> bool:
    """Whether every taint, soft ones included, is tolerated."""
    held = tuple(tolerations)
    return all(any(t.tolerates(taint) for t in held) for taint in taints)


def selector_requirements(pairs: Mapping[str, str]) -> Requirements:
    return Requirements.of_labels(pairs) if pairs else EMPTY


def term_requirements(term: NodeSelectorTerm) -> Requirements:
    """A term's expressions and fields, all of them. Raises ValueError on a malformed one."""
    return Requirements(_rows(term))


def filled(terms: Iterable[NodeSelectorTerm]) -> tuple[NodeSelectorTerm, ...]:
    """Those that may select a node: an empty term selects none."""
    return tuple([term for term in terms if term.match_expressions or term.match_fields])


def required_terms(pod: Pod) -> tuple[NodeSelectorTerm, ...]:
    """The alternatives of its required node affinity that may select a node."""
    required = _required(pod)
    return filled(required.node_selector_terms) if required is not None else ()


def selects_nothing(pod: Pod) -> bool:
    """Whether it has a required node affinity of which no term can select a node."""
    required = _required(pod)
    return required is not None and not filled(required.node_selector_terms)


def _required(pod: Pod) -> NodeSelector | None:
    node = _affinity(pod).node_affinity
    return node.required if node is not None else None


def asks_for_nodes(pod: Pod) -> bool:
    """Whether its selector or its required affinity asks anything of a node's labels."""
    return bool(pod.spec.node_selector) or _required(pod) is not None


def asked_labels(pod: Pod) -> frozenset[str]:
    """The labels of a node, in all their spellings, on which it depends whether these accept it: nothing else does.

    Raises ValueError on a malformed term.
    """
    wanted = [selector_requirements(pod.spec.node_selector), *map(term_requirements, required_terms(pod))]
    keys = {key for one in wanted for key in one}
    return frozenset(keys | {old for old, new in labels.ALIASES.items() if new in keys})


def accepted_by_node(pod: Pod, node_labels: Requirements, undefined_ok: frozenset[str] = frozenset()) -> bool:
    """Kubernetes' rule: the selector and at least one required term hold for these labels."""
    return accepted(node_terms(pod), node_labels, undefined_ok)


@dataclass(frozen=True, slots=True)
class NodeTerms:
    """A pod's node selector and the required terms of its node affinity; None for none."""

    selector: Requirements
    terms: tuple[Requirements, ...] | None


#: They accept every node.
NO_TERMS: Final = NodeTerms(EMPTY, None)


def node_terms(pod: Pod) -> NodeTerms:
    """Raises ValueError on a malformed term."""
    terms = tuple(map(term_requirements, required_terms(pod)))
    none = not terms and not selects_nothing(pod)
    return NodeTerms(selector_requirements(pod.spec.node_selector), None if none else terms)


def accepted(asked: NodeTerms, node_labels: Requirements, undefined_ok: frozenset[str] = frozenset()) -> bool:
    """`accepted_by_node` of terms that were read before."""
    if not node_labels.compatible(asked.selector, undefined_ok):
        return False
    return asked.terms is None or any(node_labels.compatible(term, undefined_ok) for term in asked.terms)


def node_demands(pod: Pod) -> tuple[Requirements, ...]:
    """The labels of the nodes that accept the pod: its node selector with each required term of its node affinity.

    Raises ValueError on a malformed term.
    """
    asked = node_terms(pod)
    if asked.terms is None:
        return (asked.selector,)
    return tuple(asked.selector & term for term in asked.terms if asked.selector.conflict(term) is None)


@dataclass(frozen=True, slots=True)
class _Wishes:
    """What a pod still insists on while its preferences are relaxed; lists are in the order of giving up."""

    terms: tuple[NodeSelectorTerm, ...]
    affinity: tuple[WeightedPodAffinityTerm, ...]
    anti_affinity: tuple[WeightedPodAffinityTerm, ...]
    preferred: tuple[PreferredTerm, ...]
    soft_spreads: tuple[TopologySpreadConstraint, ...]
    avoids_soft_taints: bool

    def relaxed(self) -> _Wishes | None:
        """One preference less; None where there is none. Terms are given up before."""
        for name in ("affinity", "anti_affinity", "preferred", "soft_spreads"):
            wishes = getattr(self, name)
            if wishes:
                return replace(self, **{name: wishes[1:]})
        return replace(self, avoids_soft_taints=False) if self.avoids_soft_taints else None


def relaxations_of(pod: Pod, *, respect_preferences: bool, soft_taints: bool) -> tuple[Demand, ...]:
    """The pod's demands, from all preferences down to the requirements, without repeats.

    Terms are given up before preferences. So at last each term that was given up is tried without any preference.
    `soft_taints` says that some NodePool has a PreferNoSchedule taint. Raises ValueError on a malformed expression.
    """
    required = _Required.of(pod)
    wishes = _wishes(pod, required.terms, respect_preferences, soft_taints)
    relaxations, below = required.by_term(wishes), replace(wishes, terms=wishes.terms[-1:]).relaxed()
    if below is None:
        return tuple(relaxations)
    while below is not None:
        demand, last = required.relaxation(below), below
        if relaxations[-1] != demand:
            relaxations.append(demand)
        below = last.relaxed()
    if len(required.terms) < 2:
        return tuple(relaxations)
    known: dict[Requirements, list[Demand]] = {}
    for relaxation in relaxations:
        known.setdefault(relaxation.requirements, []).append(relaxation)
    others = required.by_term(replace(last, terms=required.terms[:-1]))
    fresh = [demand for demand in others if demand not in known.get(demand.requirements, ())]
    named = [demand for demand in fresh if labels.NAME_FIELD in demand.requirements]  # no new node meets them
    return (*relaxations[:-1], *named, relaxations[-1], *(demand for demand in fresh if demand not in named))


def _first_requirements(pod: Pod) -> Requirements:
    """The requirements of the first relaxation. Raises ValueError on a malformed expression of any relaxation."""
    required = _Required.of(pod)
    wishes = _wishes(pod, required.terms, respect_preferences=True, soft_taints=False)
    first = required.relaxation(wishes).requirements
    for term in (*wishes.terms[1:], *(preferred.preference for preferred in wishes.preferred[1:])):
        for e in term.match_expressions:
            if e.operator not in _WITHOUT_BOUND:  # all others are well-formed, and a pod may have very many
                requirement(e.key, e.operator, e.values)
    return first


def _wishes(pod: Pod, terms: tuple[NodeSelectorTerm, ...], respect_preferences: bool, soft_taints: bool) -> _Wishes:
    affinity = _affinity(pod)
    node, near, far = affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity
    soft = tuple(s for s in pod.spec.topology_spread_constraints if s.when_unsatisfiable == "ScheduleAnyway")
    return _Wishes(
        terms,
        _heaviest_first(near.preferred) if near is not None and respect_preferences else (),
        _heaviest_first(far.preferred) if far is not None and respect_preferences else (),
        tuple(sorted(node.preferred, key=lambda t: -t.weight)) if node is not None and respect_preferences else (),
        soft if respect_preferences else (),
        soft_taints,
    )


def _heaviest_first(terms: Iterable[WeightedPodAffinityTerm]) -> tuple[WeightedPodAffinityTerm, ...]:
    return tuple(sorted(terms, key=lambda t: -t.weight))


@dataclass(frozen=True, slots=True)
class _Required:
    """The parts of a pod's demands that all relaxations share, and the required `terms`: each relaxation has one."""

    selector: tuple[Requirement, ...]
    terms: tuple[NodeSelectorTerm, ...]
    impossible: bool
    tolerations: tuple[Toleration, ...]
    spreads: tuple[TopologySpreadConstraint, ...]
    affinity: tuple[PodAffinityTerm, ...]
    anti_affinity: tuple[PodAffinityTerm, ...]

    @classmethod
    def of(cls, pod: Pod) -> _Required:
        affinity = _affinity(pod)
        return cls(
            tuple(selector_requirements(pod.spec.node_selector).values()),
            tuple(sorted(required_terms(pod), key=lambda term: not term.match_fields)),  # the last is for new nodes
            selects_nothing(pod),
            pod.spec.tolerations,
            tuple(s for s in pod.spec.topology_spread_constraints if s.when_unsatisfiable != "ScheduleAnyway"),
            affinity.pod_affinity.required if affinity.pod_affinity is not None else (),
            affinity.pod_anti_affinity.required if affinity.pod_anti_affinity is not None else (),
        )

    def by_term(self, wishes: _Wishes) -> list[Demand]:
        """A relaxation for each preferred term, one at least, without repeats that follow each other.

        Raises ValueError on a malformed expression.
        """
        found = [self.relaxation(wishes)]
        latest, preferred = found[0], _preferred_rows(wishes)
        for term in wishes.terms[1:]:
            strict, requirements, possible = self._asked(term, preferred)
            if requirements == latest.requirements and strict == latest.strict and possible == latest.possible:
                continue
            latest = Demand(
                requirements,
                strict,
                latest.tolerations,
                latest.spreads,
                latest.affinity,
                latest.anti_affinity,
                possible,
            )
            found.append(latest)
        return found

    def relaxation(self, wishes: _Wishes) -> Demand:
        """The relaxation of the first term. Raises ValueError on a malformed expression."""
        strict, requirements, possible = self._asked(
            wishes.terms[0] if wishes.terms else NodeSelectorTerm(), _preferred_rows(wishes)
        )
        return Demand(
            requirements,
            strict,
            self.tolerations if wishes.avoids_soft_taints else (*self.tolerations, _SOFT),
            self.spreads + wishes.soft_spreads,
            self.affinity + tuple(w.pod_affinity_term for w in wishes.affinity),
            self.anti_affinity + tuple(w.pod_affinity_term for w in wishes.anti_affinity),
            possible,
        )

    def _asked(
        self, term: NodeSelectorTerm, preferred: Sequence[Requirement]
    ) -> tuple[Requirements, Requirements, bool]:
        """The strict requirements, those with a preference, and whether these can be met at all."""
        rows = (*self.selector, *_rows(term))
        strict, every = Requirements(rows), (*rows, *preferred)
        requirements = Requirements(every) if preferred else strict
        clash = len(requirements) < len(every) and contradicts(every, requirements)
        return strict, requirements, not self.impossible and not clash


def _preferred_rows(wishes: _Wishes) -> list[Requirement]:
    return _rows(wishes.preferred[0].preference) if wishes.preferred else []


def contradicts(rows: Sequence[Requirement], together: Requirements) -> bool:
    """Whether rows that want a value leave none `together`."""
    wanted = [row for row in rows if row.operator not in (NOT_IN, DOES_NOT_EXIST)]
    return any(together[row.key].operator == DOES_NOT_EXIST for row in wanted)


def _rows(term: NodeSelectorTerm) -> list[Requirement]:
    rows = [requirement(e.key, e.operator, e.values) for e in term.match_expressions]
    if term.match_fields:  # the API server admits this field alone
        rows += [requirement(labels.NAME_FIELD, e.operator, e.values) for e in term.match_fields]
    return rows


def _affinity(pod: Pod) -> Affinity:
    return pod.spec.affinity if pod.spec.affinity is not None else Affinity()


class Problem(NamedTuple):
    """Why no node could ever be made for a pod; `label` is the key of the label that it is about, if any."""

    text: str
    label: str = ""


def own_problem(pod: Pod) -> Problem | None:
    """Why no node could ever be made for the pod: it cannot be read, a restricted label, a malformed expression, ….

    Empty text means that the pod has opted out (`karpenter.sh/nodepool DoesNotExist`) and nothing need be said.
    """
    if pod.metadata.unreadable:
        return Problem(f"cannot be read: {pod.metadata.unreadable}")
    try:
        return next(_problems(pod), None)
    except Exception as error:  # an unforeseen value concerns this pod alone
        return Problem(broken(error).text)


def _problems(pod: Pod) -> Iterator[Problem]:
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        asked = Resources.parse(container.resources.requests)
        if any(value < 0 for value in asked.values()):
            yield Problem(f"container {container.name} requests less than nothing")
    yield from _problems_of_labels(pod)
    capacity = selector_requirements(pod.spec.node_selector).get(labels.CAPACITY_TYPE)
    if capacity is not None and not capacity.values & {labels.ON_DEMAND, labels.SPOT, labels.RESERVED}:
        text = f"{labels.CAPACITY_TYPE} must be one of on-demand, reserved, spot"
        yield Problem(text, labels.CAPACITY_TYPE)


def _problems_of_labels(pod: Pod) -> Iterator[Problem]:
    pool = _first_requirements(pod).get(labels.NODEPOOL)
    if pool is not None and not pool.complement and not pool.values:
        yield Problem("")
    if selects_nothing(pod):
        yield Problem("its required node affinity selects no node: an empty term of nodeSelectorTerms matches nothing")
    keys = set(pod.spec.node_selector)
    terms = required_terms(pod)
    if terms and all(term.match_fields for term in terms):
        yield Problem("node affinity by fields is not supported")
    for term in terms:
        for e in term.match_expressions:
            if e.key != labels.HOSTNAME or e.operator != NOT_IN:  # no new node has the name of one that is there
                keys.add(e.key)
            if e.operator == IN and not e.values:
                yield Problem(f"{e.key} In needs at least one value", labels.normalise(e.key))
    for key in sorted(labels.normalise(key) for key in keys):
        if labels.is_restricted(key):
            yield Problem(f"label {key} is restricted", key)
