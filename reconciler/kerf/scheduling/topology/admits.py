"""The one rule of topology constraints: how many more pods a domain or a host admits, given the pods already there.

Every constraint is a range of counts. Spread has an upper bound (the skew over the least count), anti-affinity admits
no pod it selects, affinity requires one unless the pod may be the first of its kind. Source: the kube-scheduler's
plugins PodTopologySpread and InterPodAffinity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from functools import lru_cache
from typing import Final, NamedTuple

from kerf.pods.topology_constraints import AFFINITY, ANTI, SPREAD, TopologyConstraint, TopologyGroup
from kerf.scheduling.offerings.instance_types import Bools, Ints
from kerf_api import labels

#: As many pods as there can be.
MANY: Final = 1 << 30


class Bounds(NamedTuple):
    """The counts, `low` to `high`, at which one more pod is admitted; `rises`: each admitted pod adds to the count."""

    low: int
    high: int
    rises: bool

    def admits(self, here: int) -> bool:
        """Whether one more pod is admitted where the count is `here`."""
        return self.low <= here <= self.high

    def admitting(self, here: Ints) -> Bools:
        """`admits` of many counts, [places]."""
        good: Bools = here <= self.high
        return good & (here >= self.low) if self.low else good

    def more(self, here: int) -> int:
        """The number of further pods that are admitted where the count is `here`."""
        if not self.admits(here):
            return 0
        return self.high - here + 1 if self.rises else MANY

    def room(self, here: Ints) -> Ints:
        """`more` of many counts, [places], all of which admit one, where each admitted pod adds to the count."""
        return self.high - here + 1


#: Of an affinity whose pod may be the first of its kind, and else; of an anti-affinity to pods like itself, and else.
_FIRST: Final = Bounds(0, MANY, False)
_BESIDE: Final = Bounds(1, MANY, False)
_ALONE: Final = Bounds(0, 0, True)
_AWAY: Final = Bounds(0, 0, False)


@lru_cache(maxsize=4096)
def _at_most(high: int, rises: bool) -> Bounds:
    return Bounds(0, high, rises)


def bounds(constraint: TopologyConstraint, least: int = 0, *, founded: bool = True) -> Bounds:
    """The range of a constraint.

    Args:
        least: the count that the skew is measured against (spread only).
        founded: some pod of the group runs or is planned somewhere (affinity only).
    """
    if constraint.group.kind == SPREAD:
        return _at_most(constraint.max_skew + least - int(constraint.self_match), constraint.self_match)
    if constraint.group.kind == AFFINITY:
        return _FIRST if constraint.self_match and not founded else _BESIDE
    return _ALONE if constraint.self_match else _AWAY


def founded(constraint: TopologyConstraint) -> bool:
    """Whether some pod of an affinity's groups runs or is planned somewhere."""
    return any(group.anywhere() > 0 for group in constraint.together or (constraint.group,))


def all_founded(constraints: Iterable[TopologyConstraint]) -> bool:
    """Whether each affinity among the constraints is founded."""
    return all(founded(constraint) for constraint in constraints if constraint.group.kind == AFFINITY)


def founded_on_nodes(constraint: TopologyConstraint, seated: Collection[TopologyGroup]) -> bool:
    """`founded` of an affinity over hostnames while pods are seated on new nodes.

    Its group counts all that the groups of its other terms count, and no planned pods: these have no host yet.

    Args:
        seated: the groups that have a pod on a new node.
    """
    return bool(constraint.group.counts) or constraint.group in seated


def begins_host(constraint: TopologyConstraint) -> bool:
    """Whether a hostname constraint admits a pod on a new node: alone, or beside pods planned there."""
    if constraint.group.kind != AFFINITY:
        return bounds(constraint).admits(0)
    if constraint.group.fresh:  # beside them, wherever their host is
        return True
    return bounds(constraint, founded=founded(constraint)).admits(0)


def begins_hosts(hosts: Iterable[TopologyConstraint]) -> bool:
    """Whether all these hostname constraints admit a pod on a new node."""
    return all(map(begins_host, hosts))


def current(constraint: TopologyConstraint, domains: Set[str] = frozenset(), into: str | None = None) -> Bounds:
    """The range of a constraint now; `domains` are those that the skew is measured over (spread only).

    Domains where pods are planned by now count too. While there are fewer than minDomains, the least count is 0. A
    hostname is measured over no domains: a new host is empty. A single domain is measured against itself, whichever of
    its pods count. So is the domain `into` which the pod is to be placed, as far as its pods are in doubt.
    """
    group, counts = constraint.group, constraint.group.counts
    if group.kind != SPREAD:
        return bounds(constraint, founded=group.kind == ANTI or founded(constraint))
    if domains and not counts.keys() <= domains:
        domains = domains | {domain for domain, number in counts.items() if number}
    if not domains or len(domains) < constraint.min_domains:
        return bounds(constraint, 0)
    if group.to_come and len([one for one in domains if not group.expected(one)]) < constraint.min_domains:
        return bounds(constraint, 0)
    if (group.unsure or group.to_come) and len(domains) > 1:
        return bounds(constraint, min([max(group.least(one), counts.get(one, 0) * (one == into)) for one in domains]))
    return bounds(constraint, min([counts.get(domain, 0) for domain in domains]))


def measured(constraint: TopologyConstraint, makeable: Mapping[str, Set[str]]) -> frozenset[str]:
    """The domains that a spread is measured over: of nodes there are, of nodes that can be made for a pod now, and of
    nodes that other pods of the pass get. None for hostnames while an empty node can come.

    Args:
        makeable: the domains by key; of hostnames there is no domain, but the key when there can be any node.
    """
    group = constraint.group
    if constraint.key == labels.HOSTNAME:
        comes = labels.HOSTNAME in makeable or group.brought
        return frozenset() if comes and not group.on_new_hosts else group.standing()
    return group.standing().union(makeable.get(constraint.key, ()), group.brought)


def allows(constraint: TopologyConstraint, domain: str | None, domains: Set[str]) -> bool:
    """Whether one more pod may be placed in this domain now (None: the node has no such label)."""
    if domain is None:
        return constraint.group.kind == ANTI
    return current(constraint, domains).admits(constraint.group.counts.get(domain, 0))


def opens(constraint: TopologyConstraint, limits: Bounds, domains: tuple[str | None, ...]) -> bool:
    """Whether one more pod may be placed on a node with one of these domains, whichever it gets."""
    if constraint.group.kind != ANTI and (len(domains) > 1 or None in domains):
        return False
    counts = constraint.group.counts
    return all(domain is None or limits.admits(counts.get(domain, 0)) for domain in domains)


def clear(group: TopologyGroup, domains: tuple[str | None, ...]) -> bool:
    """Whether no pod with this anti-affinity is in any of these domains."""
    return not any(group.owners.get(domain, 0) for domain in domains if domain is not None)


def admits_pins(
    pins: Iterable[tuple[str, str]], limits: Mapping[TopologyConstraint, Bounds], inverse: Iterable[TopologyGroup]
) -> bool:
    """Whether constraints admit one more pod in these domains, by key.

    Args:
        inverse: anti-affinity that keeps the pod away from its owners.
    """
    at = dict(pins)
    found = (
        (constraint.group.counts.get(at[constraint.key], 0), bounds)
        for constraint, bounds in limits.items()
        if constraint.key in at
    )
    apart = not any(group.owners.get(at[group.key], 0) for group in inverse if group.key in at)
    return apart and all(bounds.admits(count) for count, bounds in found)


def brings(
    spreads: Iterable[TopologyConstraint], pins: Iterable[tuple[str, str]], measured: Mapping[TopologyGroup, Set[str]]
) -> bool:
    """Whether a new node in these domains, by key, is a domain more for one of the spreads.

    Args:
        measured: the domains that each spread is measured over; those with pods are domains, too.
    """
    at = dict(pins)
    for constraint in spreads:
        known, domain = measured[constraint.group], at.get(constraint.key)
        if constraint.key == labels.HOSTNAME and known:
            return True
        if domain is not None and domain not in known and not constraint.group.counts.get(domain, 0):
            return True
    return False


def apart(constraint: TopologyConstraint) -> int:
    """The number of pods of its own that a hostname constraint admits on one host; `MANY` if it limits none."""
    return MANY if constraint.group.kind == AFFINITY else bounds(constraint).more(0)
