"""One simulation (life) of a snapshot: the controller reconciles in the sandbox until it is stable, or the horizon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from kerf.model import kinds
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Plan
from kerf.planning import changes
from kerf.planning.approvals import Approvals
from kerf.planning.changes import NOTHING, Change
from kerf.planning.diary import Diary
from kerf.planning.outcomes import Departure, Held, Outcome, PlannedNode, Waiting
from kerf.planning.pace import Pace
from kerf.planning.worlds import restored
from kerf.runtime.controller import Controller
from kerf.runtime.parts import Parts
from kerf.sandbox.calm import CALM
from kerf.sandbox.phases import active
from kerf.snapshots.captured import Captured
from kerf_api.approval import OFF
from kerf_api.v1.nodeclaim import NodeClaim

DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a simulation: the time since its start, and the numbers of disrupted and of removed nodes."""

    lived: timedelta
    going: int
    gone: int


_DRIFTED: Final = "Drifted"
#: The deletion guard delays a deletion of many nodes by a user for some minutes, and a drain may take long.
_DELETIONS_WAIT: Final = timedelta(hours=1)


class Life:
    """One simulation. Raises Unplannable, and BadChange when the API server would refuse the change."""

    def __init__(
        self,
        captured: Captured,
        change: Change = NOTHING,
        *,
        seed: int = 0,
        parts: Parts | None = None,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        """`parts` replaces parts of the controller; the simulation calls `progress` after each reconcile."""
        found = restored(captured, seed)
        self.world, self.guesses = found.world, found.cloud.guesses
        own = replace(parts or Parts(), keys=found.keys)
        settings = replace(captured.snapshot.settings, plan_first=OFF)
        self.controller = Controller(found.ports, own, settings=settings, inline=True)
        self.pace, self._progress = Pace(found.world, settings.canary_soak), progress
        self._later: datetime | None = None
        self.began = found.world.clock.now()
        self._refusals: dict[str, str] = {}
        self.diary = Diary(found.world)
        self.approvals = Approvals(found.world, captured, found.cloud.unknown_images)
        self.apply(change)

    def run(self, horizon: timedelta = DAY) -> Outcome:
        """Run until the cluster is stable, at most until the horizon; return the result."""
        self.world.run(self, self.began + horizon, stop_when=self._at_rest)
        return self._outcome(at_rest=self._at_rest())

    def apply(self, change: Change) -> None:
        """Apply a change to the simulation, as approved. Raises BadChange."""
        changes.apply(self.world, change)
        self.approvals.note(change)

    # --- called by the loop of the sandbox ------------------------------------------------------------------------
    @property
    def next_due(self) -> datetime | None:
        return self._later or self.controller.next_due

    def tick(self) -> Plan:
        self.diary.acting = True
        try:
            plan = self.controller.tick()
        finally:
            self.diary.acting = False
        self._refusals.update({one.subject: str(one.reason) for one in plan.refusals})
        self._later = self.pace.until(plan, self.controller.next_due)
        gone = sum(one.ended is not None for one in self.diary.departures.values())
        self._progress(Progress(self.world.clock.now() - self.began, len(self.diary.departures), gone))
        return plan

    def _at_rest(self) -> bool:
        """Whether the last change is long enough ago that no other follows, and no work remains."""
        now, claims = self.world.clock.now(), [one.value for one in self.world.server.records(kinds.NODE_CLAIM)]
        going = any(claim.metadata.deleting for claim in claims)
        if now - self.diary.changed < max(self._patience(), _DELETIONS_WAIT if going else CALM):
            return False
        held = going or any(claim.is_true(_DRIFTED) for claim in claims)
        return not (held and any(self.pace.turns(now)))

    def _patience(self) -> timedelta:
        """Return the longest consolidateAfter of a NodePool plus a margin."""
        pools = (record.value for record in self.world.server.records(kinds.NODE_POOL))
        waits: list[timedelta] = [wait for pool in pools if (wait := pool.consolidate_after) is not None]
        return max([2 * CALM, *(wait + CALM for wait in waits)])

    def staying(self) -> tuple[PlannedNode, ...]:
        """Return the nodes that exist and are not being removed, by name."""
        return tuple(self.diary.node(one) for one in self.claims_staying())

    def claims_staying(self) -> list[NodeClaim]:
        claims: list[NodeClaim] = [record.value for record in self.world.server.records(kinds.NODE_CLAIM)]
        return sorted((one for one in claims if not one.metadata.deleting), key=lambda one: one.name)

    # --- result -----------------------------------------------------------------------------------------------------
    def _outcome(self, *, at_rest: bool) -> Outcome:
        staying = self.claims_staying()
        cost: dict[str, int] = {}
        for claim in staying:
            cost[claim.pool_name] = cost.get(claim.pool_name, 0) + self.diary.node(claim).price
        return Outcome(
            began=self.began,
            ended=self.diary.changed if at_rest else self.world.clock.now(),
            at_rest=at_rest,
            departures=tuple(sorted(self.diary.departures.values(), key=self._order)),
            arrivals=tuple(self.diary.node(one) for one in staying if one.name not in self.diary.first),
            passing=tuple(self.diary.passing.values()),
            moves=tuple(self.diary.moves),
            waiting=tuple(self._waiting()),
            held=tuple(self._held(one) for one in staying if one.is_true(_DRIFTED)),
            cost=dict(sorted(cost.items())),
        )

    def _order(self, one: Departure) -> tuple[datetime, str]:
        return one.started or self.began, one.node.name

    def _waiting(self) -> Iterator[Waiting]:
        for record in sorted(self.world.server.records(kinds.POD), key=lambda record: record.key):
            pod: Pod = record.value
            if not pod.spec.node_name and active(pod):
                yield Waiting(pod.key, self._refusals.get(f"pod/{pod.key}", ""))

    def _held(self, claim: NodeClaim) -> Held:
        drifted = claim.condition(_DRIFTED)
        names = (f"node/{claim.status.node_name}", f"nodeclaim/{claim.name}", f"nodepool/{claim.pool_name}")
        blocker = next((self._refusals[name] for name in names if name in self._refusals), "")
        return Held(claim.name, drifted.reason if drifted is not None else "", blocker)
