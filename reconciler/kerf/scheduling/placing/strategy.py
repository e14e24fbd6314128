"""A strategy is a way to go about a solve; the plain one does everything in the usual order.

Who goes first, and which of several domains or NodePools that are equally right is taken, is settled before anything is
packed, and whether that was wise shows only then. Another strategy decides otherwise, and is as right by every rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.placing.classes import PodClass
from kerf_api import labels

Pins = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Strategy:
    """What is done otherwise than usual.

    By class number: those who go `first` among pods of their priority, those placed on new nodes only (`anew`), and the
    domains that pods of a class go to as long as they may, best first (`domains`). `turn` says which of the NodePools
    of one weight comes first. `frugal`: nodes are chosen by what they use of limits. `late`: who needs company on a
    host joins nodes that were filled without regard to him.
    """

    first: tuple[int, ...] = ()
    anew: frozenset[int] = frozenset()
    domains: tuple[tuple[int, tuple[Pins, ...]], ...] = ()
    turn: int = 0
    frugal: bool = False
    late: bool = False

    def queue(self, classes: Sequence[PodClass]) -> Sequence[PodClass]:
        """The classes in the order in which they are placed."""
        if not self.first:
            return classes
        ranks = {number: rank for rank, number in enumerate(self.first)}
        return sorted(classes, key=lambda c: (-c.sample.spec.priority, ranks.get(c.number, len(ranks))))

    def turned(self, templates: Sequence[NodeClaimTemplate]) -> list[NodeClaimTemplate]:
        """The NodePools in the order in which they are asked, heaviest first."""
        found: list[NodeClaimTemplate] = []
        for _, some in groupby(templates, key=lambda template: template.pool.spec.weight):
            equals = list(some)
            start = self.turn % len(equals)
            found += equals[start:] + equals[:start]
        return found


PLAIN = Strategy()


def by_key(every: Iterable[Pins]) -> dict[str, set[str]]:
    """The domains by key; of hostnames there is no domain, but the key where there are any pins."""
    found: dict[str, set[str]] = {}
    for pins in every:
        found.setdefault(labels.HOSTNAME, set())
        for key, domain in pins:
            found.setdefault(key, set()).add(domain)
    return found
