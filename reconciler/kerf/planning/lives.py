"""One life of a snapshot: the controller at work in the sandbox until nothing happens any more, or the horizon."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from kerf.model import kinds
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import Plan
from kerf.planning import changes
from kerf.planning.approvals import Approval, Approvals
from kerf.planning.changes import NOTHING, Change
from kerf.planning.diary import Diary
from kerf.planning.outcomes import Held, Outcome, PlannedNode, Waiting
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
_DRIFTED: Final = "Drifted"
#: A deletion of many nodes by a person is held for some minutes, and a drain may take its time.
_DELETIONS_WAIT: Final = timedelta(hours=1)


class Life:
    """See the module. Raises Unplannable, and BadChange when the API server would refuse the change."""

    def __init__(self, captured: Captured, change: Change = NOTHING, *, seed: int = 0) -> None:
        found = restored(captured, seed)
        self.world, self.guesses = found.world, found.cloud.guesses
        self.controller = Controller(
            found.ports,
            Parts(keys=found.keys),
            settings=replace(captured.snapshot.settings, plan_first=OFF),
            inline=True,
        )
        self._pace = Pace(found.world)
        self._later: datetime | None = None
        self._began = found.world.clock.now()
        self._refusals: dict[str, str] = {}
        self._diary = Diary(found.world)
        changes.apply(self.world, change)
        self._approvals, self._unknown = Approvals(self.world, captured, change), found.cloud.unknown_images

    def run(self, horizon: timedelta = DAY) -> Outcome:
        """Live until nothing more would happen, for at most so long; what came of it."""
        end = self._began + horizon
        self.world.run(self, end, stop_when=self._at_rest)
        return self._outcome(at_rest=self._at_rest())

    def approvals(self) -> tuple[Approval, ...]:
        """The changes that need an approval, once the life is over."""
        return self._approvals.found(self._unknown)

    # --- as the world's loop wants it -----------------------------------------------------------------------------
    @property
    def next_due(self) -> datetime | None:
        return self._later or self.controller.next_due

    def tick(self) -> Plan:
        self._diary.acting = True
        try:
            plan = self.controller.tick()
        finally:
            self._diary.acting = False
        self._refusals.update({one.subject: str(one.reason) for one in plan.refusals})
        self._later = self._pace.until(plan, self.controller.next_due)
        return plan

    def _at_rest(self) -> bool:
        """Whether nothing has happened for so long that nothing will, and nothing is left to be done."""
        now, claims = self.world.clock.now(), [one.value for one in self.world.server.records(kinds.NODE_CLAIM)]
        going = any(claim.metadata.deleting for claim in claims)
        if now - self._diary.changed < max(self._patience(), _DELETIONS_WAIT if going else CALM):
            return False
        held = going or any(claim.is_true(_DRIFTED) for claim in claims)
        return not (held and any(self._pace.turns(now)))

    def _patience(self) -> timedelta:
        """Consolidation waits for as long as a NodePool says after the last change to pods of a node."""
        pools = (record.value for record in self.world.server.records(kinds.NODE_POOL))
        waits: list[timedelta] = [wait for pool in pools if (wait := pool.consolidate_after) is not None]
        return max([2 * CALM, *(wait + CALM for wait in waits)])

    def staying(self) -> tuple[PlannedNode, ...]:
        """The nodes that are there and do not go, by name."""
        return tuple(self._diary.node(one) for one in self._claims_staying())

    def _claims_staying(self) -> list[NodeClaim]:
        claims: list[NodeClaim] = [record.value for record in self.world.server.records(kinds.NODE_CLAIM)]
        return sorted((one for one in claims if not one.metadata.deleting), key=lambda one: one.name)

    # --- what came of it --------------------------------------------------------------------------------------------
    def _outcome(self, *, at_rest: bool) -> Outcome:
        staying = self._claims_staying()
        cost: dict[str, int] = {}
        for claim in staying:
            cost[claim.pool_name] = cost.get(claim.pool_name, 0) + self._diary.node(claim).price
        return Outcome(
            began=self._began,
            ended=self._diary.changed if at_rest else self.world.clock.now(),
            at_rest=at_rest,
            departures=tuple(sorted(self._diary.departures.values(), key=lambda one: (one.started, one.node.name))),
            arrivals=tuple(self._diary.node(one) for one in staying if one.name not in self._diary.first),
            passing=tuple(self._diary.passing.values()),
            moves=tuple(self._diary.moves),
            waiting=tuple(self._waiting()),
            held=tuple(self._held(one) for one in staying if one.is_true(_DRIFTED)),
            cost=dict(sorted(cost.items())),
        )

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
