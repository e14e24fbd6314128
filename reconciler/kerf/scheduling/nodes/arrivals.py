"""DaemonSet pods that a node still lacks: those that the kube-scheduler can bind there beside the pods that run.

Any other takes nothing of the node, and counts for no topology constraint: not enough free resources, a host port that
is taken, or pods that required (anti-)affinity is about, its own or theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from kerf.pods.daemon_overhead import Daemon
from kerf.pods.host_ports import HeldPorts, HostPort
from kerf.pods.topology_constraints import (
    ANTI,
    TopologyGroup,
    required_affinity,
    required_anti_affinity,
    term_group,
    terms_groups,
)
from kerf.scheduling.offerings.instance_types import Columns, Ints
from kerf.scheduling.topology.counts import BoundCounts, InverseGroup, Tallies

#: The value of a label on the node, by its key; None where the node has no such label, or may have several values.
DomainOf = Callable[[str], str | None]
_NOTHING_MOVES: Final = frozenset[str]()


@dataclass(frozen=True, slots=True, eq=False)
class _Rules:
    """The required (anti-)affinity of one DaemonSet's pods, with the bound pods that it selects; and the anti-affinity
    of bound pods that selects them."""

    near: tuple[tuple[TopologyGroup, BoundCounts], ...]
    far: tuple[tuple[TopologyGroup, BoundCounts], ...]
    inverse: tuple[InverseGroup, ...]


class Arrivals:
    """See the module. DaemonSets come in the order of their keys."""

    def __init__(self, columns: Columns, daemons: Sequence[Daemon], tallies: Tallies) -> None:
        self._columns = columns
        self._needs = {daemon.key: columns.vector(daemon.requests) for daemon in daemons}
        self._rules = {daemon.key: _rules(daemon, tallies) for daemon in daemons}
        self._exacting = frozenset(daemon.key for daemon in daemons if self._asks_more(daemon)) | _clashing(daemons)

    def exacting(self, missing: Sequence[Daemon]) -> bool:
        """Whether more decides on some of these than the resources and the host ports of the pods that run there."""
        return any(daemon.key in self._exacting for daemon in missing) if self._exacting else False

    def coming(
        self,
        missing: Sequence[Daemon],
        domain_of: DomainOf,
        free: Ints,
        ports: Sequence[HostPort],
        moving: Collection[str] = _NOTHING_MOVES,
    ) -> tuple[Daemon, ...]:
        """Those of the missing ones that come.

        Args:
            free: resources that no pod there requests, by column.
            ports: host ports of the pods there.
            moving: keys of pods that are to leave their nodes, and do not count.
        """
        found: list[Daemon] = []
        held = HeldPorts(ports)
        for daemon in missing:
            need = self._needs[daemon.key]
            lacks = bool(((need > free) & (need > 0)).any()) or held.clash(daemon.ports)
            if not lacks and self._admitted(daemon, found, domain_of, moving):
                found.append(daemon)
                free = free - need
                held.take(daemon.ports)
        return tuple(found)

    def _asks_more(self, daemon: Daemon) -> bool:
        rules = self._rules[daemon.key]
        return bool(rules.near or rules.far or rules.inverse or self._columns.unknown(daemon.requests))

    def _admitted(self, daemon: Daemon, beside: Sequence[Daemon], domain_of: DomainOf, moving: Collection[str]) -> bool:
        if self._columns.unknown(daemon.requests):
            return False
        rules = self._rules[daemon.key]
        if rules.near and not _near(daemon, rules, beside, domain_of, moving):
            return False
        far: list[tuple[TopologyGroup, BoundCounts | InverseGroup]] = [
            *rules.far,
            *((inverse.group, inverse) for inverse in rules.inverse),
        ]
        if any(_number(found, domain_of(group.key), moving) for group, found in far):
            return False
        return not any(self._apart(daemon, other, domain_of) for other in beside)

    def _apart(self, one: Daemon, two: Daemon, domain_of: DomainOf) -> bool:
        """Whether anti-affinity, of either, keeps the pods of two DaemonSets off one node."""
        pairs = ((group, two) for group, _ in self._rules[one.key].far)
        others = ((group, one) for group, _ in self._rules[two.key].far)
        return any(group.selects_pods_of(daemon) and domain_of(group.key) for group, daemon in (*pairs, *others))


def _clashing(daemons: Sequence[Daemon]) -> frozenset[str]:
    """The keys of DaemonSets with a host port that an earlier one has."""
    held, found = HeldPorts(), set[str]()
    for daemon in daemons:
        if held.clash(daemon.ports):
            found.add(daemon.key)
        held.take(daemon.ports)
    return frozenset(found)


def _rules(daemon: Daemon, tallies: Tallies) -> _Rules:
    terms = required_affinity(daemon.pod)
    near = terms_groups(daemon.pod, terms, tallies.namespaces)
    far = [term_group(daemon.pod, term, ANTI, tallies.namespaces) for term in required_anti_affinity(daemon.pod)]
    return _Rules(
        tuple((group, tallies.of(identity, group)) for identity, group in near),
        tuple((group, tallies.of(identity, group)) for identity, group in far),
        tuple(inverse for _, inverse in tallies.inverse([daemon.pod])),
    )


def _near(
    daemon: Daemon, rules: _Rules, beside: Sequence[Daemon], domain_of: DomainOf, moving: Collection[str]
) -> bool:
    """Whether each required affinity term has a pod in the node's domain; the first pod of its kind needs none."""
    domains = [domain_of(group.key) for group, _ in rules.near]
    if None in domains:
        return False
    if any(rules.near[0][0].selects_pods_of(other) for other in beside):
        return True
    if all(_number(tally, domain, moving) for (_, tally), domain in zip(rules.near, domains, strict=True)):
        return True
    nowhere = not any(len(tally.homes) > sum(key in tally.homes for key in moving) for _, tally in rules.near)
    return nowhere and all(group.selects_pods_of(daemon) for group, _ in rules.near)


def _number(found: BoundCounts | InverseGroup, domain: str | None, moving: Collection[str]) -> int:
    """The number of pods in a domain without those that move."""
    there = found.counts.get(domain, 0) if domain is not None else 0
    return there - sum(found.homes.get(key) == domain for key in moving) if there else 0
