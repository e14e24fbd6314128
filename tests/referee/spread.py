"""Required topology spread: in no order of binding does a pod exceed the skew.

A pod that owns a constraint binds last of those that do, so all of them count; pods that are counted but do not own
the constraint may bind later, and only those that stay count for certain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from kerf.model.kubernetes.objects import TopologySpreadConstraint
from tests.referee.answers import Violation
from tests.referee.census import Census, Group
from tests.referee.kinds import Kind
from tests.referee.places import Place
from tests.referee.selecting import untolerated


@dataclass(frozen=True, slots=True)
class Tally:
    """Pods by domain: `everyone` that is counted, those that are `sure` to be there, and those that `stay`."""

    everyone: Counter[str]
    sure: Counter[str]
    stay: Counter[str]


def problems(census: Census) -> Iterator[Violation]:
    tallies: dict[bytes, Tally] = {}
    chosen: dict[tuple[bytes, int], bool] = {}
    for kind, groups in census.coming():
        for constraint in kind.pod.spec.topology_spread_constraints:
            if constraint.when_unsatisfiable == "DoNotSchedule":
                yield from _constraint(census, kind, groups, constraint, tallies, chosen)


def _constraint(
    census: Census,
    kind: Kind,
    groups: list[Group],
    constraint: TopologySpreadConstraint,
    tallies: dict[bytes, Tally],
    chosen: dict[tuple[bytes, int], bool],
) -> Iterator[Violation]:
    pod, key = kind.pod, constraint.topology_key
    own = {k: pod.metadata.labels[k] for k in constraint.match_label_keys if k in pod.metadata.labels}
    meant = census.selected(pod.metadata.namespace, constraint.label_selector, own)
    tolerations = pod.spec.tolerations if constraint.node_taints_policy == "Honor" else ()
    keys = sorted(_required_keys(kind))
    look = msgspec.json.encode((pod.metadata.namespace, own, constraint, kind.where.decode(), tolerations, keys))
    if look not in tallies:
        tallies[look] = _tally(census, kind, meant, constraint, chosen)
    tally = tallies[look]
    least = _least(constraint, tally.everyone)
    for group in groups:
        here = group.place.domain(key)
        if here is None:
            yield Violation(
                "spread", f"{group.name} is spread over {key}, but {group.place.name} has no one value of it"
            )
            continue
        count = (tally.sure if kind in meant else tally.stay)[here]
        if count - least > constraint.max_skew:
            words = f"{group.name}: {count} pods in {here}, {least} elsewhere, skew {constraint.max_skew}"
            yield Violation("spread", words)


def _least(constraint: TopologySpreadConstraint, everyone: Counter[str]) -> int:
    """The count of the emptiest domain, or host; 0 where there are too few."""
    too_few = len(everyone) < (constraint.min_domains or 0)
    return 0 if too_few else min(everyone.values(), default=0)


def _tally(
    census: Census,
    kind: Kind,
    meant: list[Kind],
    constraint: TopologySpreadConstraint,
    chosen: dict[tuple[bytes, int], bool],
) -> Tally:
    everyone, sure, stay = Counter[str](), Counter[str](), Counter[str]()
    for place in census.places:
        domain = place.domain(constraint.topology_key)
        if domain is not None and _counts(kind, place, constraint, chosen):
            everyone[domain] += 0
    for other in meant:
        owns = constraint in other.pod.spec.topology_spread_constraints
        for group in census.by_kind[other]:
            domain = group.place.domain(constraint.topology_key)
            if domain is not None and _counts(kind, group.place, constraint, chosen):
                everyone[domain] += group.count
                stay[domain] += group.staying
                sure[domain] += group.count if owns else group.staying
    return Tally(everyone, sure, stay)


def _counts(
    kind: Kind, place: Place, constraint: TopologySpreadConstraint, chosen: dict[tuple[bytes, int], bool]
) -> bool:
    """Whether a node has the keys of all the pod's required constraints, and the policies let its pods count."""
    if not all(place.has(key) for key in _required_keys(kind)):
        return False
    if constraint.node_affinity_policy != "Ignore" and kind.where != _ANYWHERE:
        look = (kind.where, id(place))
        if look not in chosen:
            chosen[look] = place.selected_by(kind.pod)
        if not chosen[look]:
            return False
    return constraint.node_taints_policy != "Honor" or not untolerated(kind.pod, place.taints)


def _required_keys(kind: Kind) -> set[str]:
    constraints = kind.pod.spec.topology_spread_constraints
    return {one.topology_key for one in constraints if one.when_unsatisfiable == "DoNotSchedule"}


_ANYWHERE = msgspec.json.encode(({}, None))
