"""The plan of a change beside the views: computed once, in a thread, by the code of `kerf plan`."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from flask import Flask

from kerf.cli.answering import plan_page
from kerf.cli.answering.changed import Changed, comparable
from kerf.cli.arguments import Mistake
from kerf.cli.web.pages import Sources, number, part
from kerf.planning.changes import BadChange
from kerf.planning.forecast import Forecast, Manner, forecast
from kerf.planning.worlds import Unplannable
from kerf.ports import PortError
from kerf.snapshots.captured import Captured

#: A larger cluster is estimated, without order and duration: a simulation takes minutes and slows the page.
MOST_SIMULATED: Final = 200


@dataclass(frozen=True, slots=True)
class PoolChange:
    """A NodePool before and after a change. Money is in millionths of a dollar per hour."""

    name: str
    before: int
    after: int
    disrupted: int
    launched: int
    price_before: int
    price_after: int


class Planned:
    """The plan of a change to the cluster of `capture`, as of `at`. `found` is None until it is computed."""

    def __init__(self, changed: Changed, capture: Callable[[], Captured], key: bytes | None = b"") -> None:
        """`key` is that of the digests in place of user data; None for a record."""
        self._changed, self._capture, self._key = changed, capture, key
        self.found: Forecast | None = None
        self.pools: tuple[PoolChange, ...] = ()
        self.problem = ""
        self.at: datetime | None = None
        self._thread = threading.Thread(target=self.compute, name="plan", daemon=True)

    def start(self) -> None:
        """Compute it in a thread."""
        self._thread.start()

    def compute(self) -> None:
        """Compute it. An error of the change or the cluster is `problem`."""
        try:
            captured = self._capture()
            change, assumed = comparable(self._changed, captured, self._key)
            manner = Manner(simulate=len(captured.snapshot.node_claims) <= MOST_SIMULATED)
            found = forecast(captured, change, manner)
        except (Mistake, BadChange, Unplannable, PortError) as error:
            self.problem = str(error)
            return
        self.pools, self.at = pool_changes(captured, found), captured.snapshot.now
        self.found = replace(found, guesses=(*assumed, *found.guesses))


def pool_changes(captured: Captured, found: Forecast) -> tuple[PoolChange, ...]:
    """The NodePools of a plan, by name."""
    before = Counter(claim.pool_name for claim in captured.snapshot.node_claims.values())
    disrupted = Counter(one.node.nodepool for one in found.planned.departures)
    launched = Counter(one.nodepool for one in found.planned.arrivals)
    prices, after = found.now.cost, found.planned.cost
    return tuple(
        PoolChange(
            name, before[name], before[name] - disrupted[name] + launched[name], disrupted[name], launched[name],
            prices.get(name, 0), after.get(name, 0),
        )
        for name in sorted({*before, *launched, *prices, *after})
    )  # fmt: skip


def add(app: Flask, sources: Sources, planned: Planned | None) -> None:
    """Answer `/plan`; without a change it explains how to give one."""

    @app.get("/plan")
    def plan() -> str:
        shown = part(planned.found.planned.departures if planned and planned.found else (), number())
        words = {
            "percent": plan_page.percent,
            "duration": plan_page.duration,
            "most": plan_page.MOST_ROWS,
            "approval": plan_page.approval,
        }
        return sources.page("plan.html", "plan", sources.board(), planned=planned, part=shown, **words)
