"""The steps to pack the pods of a round, counted in advance: a round takes on no more pods than it can pack."""

from __future__ import annotations

from typing import Final

from kerf.scheduling.offerings.nodepools import VALUES_A_STEP
from kerf.scheduling.placing.routes import Route
from kerf.scheduling.work import Work
from kerf_api.requirements import Requirements

#: Steps to pack pods that share requirements with others, and pods that do not: these are compared with all others.
_AN_ITEM: Final = 4
_A_LANE: Final = 50
#: How often each kind of pods looks for a node that its constraints over hostnames admit.
_SEATS: Final = 2
#: So many lanes share a node, more or less.
_LANES_A_NODE: Final = 4


class Packing:
    """The kinds of pods that are to be packed. Kinds with equal requirements are one lane."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._routes = set[Route]()
        self._lanes = set[Requirements]()
        self._values = 0

    def add(self, route: Route) -> None:
        """Count one more kind of pods, on this route.

        Each lane is compared with the requirements of all nodes, which are those of the lanes before it.
        """
        ahead = _SEATS * (len(route.hosts) + len(route.fresh))
        if route not in self._routes:  # requirements take longer to hash
            self._routes.add(route)
            lanes = len(self._lanes)
            self._lanes.add(route.requirements)
            if len(self._lanes) > lanes:
                self._work.charge(_A_LANE + len(self._lanes) * 2 // 3)
                self._values += route.requirements.size
                values = self._values + route.requirements.size * len(self._lanes) // _LANES_A_NODE
                self._work.foresee(values // VALUES_A_STEP + ahead)
                return
        self._work.charge(_AN_ITEM)
        if ahead:
            self._work.foresee(ahead)
