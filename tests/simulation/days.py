"""Days of a cluster under a load that comes and goes, with the whole controller in the sandbox; and what they came to.

A model of another autoscaler (`kerf/simulating/autoscalers/`) may start the consolidation: all the rest of the
controller, and the world, are the same then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol

from msgspec.structs import replace

from kerf.decide import decide
from kerf.disruption.methods.methods import METHODS, Method
from kerf.model.plan import INTERNAL_ERROR
from kerf.model.settings import Settings
from kerf.runtime.controller import Controller
from kerf.runtime.parts import Parts
from kerf.sandbox.calm import Calm
from kerf.sandbox.world import World
from kerf.simulating.autoscalers.models import NoProposals
from tests.referee.cost import lp_bound
from tests.simulation.bill import Bill
from tests.simulation.chaos import Proposals, bugs
from tests.simulation.load import STEP, Service
from tests.simulation.thrift import Thrift
from tests.worlds import deployment, node_class, node_pool

_SIZES: Final = ("large", "xlarge", "2xlarge", "4xlarge")
TYPES: Final = tuple(f"{family}.{size}" for family in ("c6i", "m6i", "r6i") for size in _SIZES)
SETTINGS: Final = Settings(cluster_name="sandbox", improve=timedelta(milliseconds=100))
#: Nothing is out of stock in this world, and what has been thought of is thought of again only for the time of day.
_PONDER: Final = timedelta(hours=1)
#: Given what tells of changes: methods that begin disruptions instead of the controller's own.
Rival = Callable[[Callable[[], object]], Sequence[Method]]


class Curve(Protocol):
    """Services, and how many replicas each has at an instant; the `seed` is the world's."""

    @property
    def seed(self) -> int: ...

    @property
    def services(self) -> tuple[Service, ...]: ...

    def at(self, when: datetime) -> Mapping[str, int]: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the days came to; `bound_usd` is the least that nodes for the pods could have cost. `returned` and
    `dearer` count what consolidation did at constant load: fleets that came back, costs that rose."""

    cost_usd: float
    bound_usd: float
    evictions: int
    launches: int
    peak_nodes: int
    waited: timedelta
    returned: int
    dearer: int


class Days:
    """See the module. `disruption` is that of the only NodePool, `types` are those that EC2 sells."""

    def __init__(
        self,
        load: Curve,
        disruption: Mapping[str, Any] | None = None,
        rival: Rival | None = None,
        types: Iterable[str] = TYPES,
    ) -> None:
        self.world = World(seed=load.seed, types=types)
        self._load, self.acting, self._bound_usd = load, False, 0.0
        self.bill, self.thrift = Bill(self.world, lambda: self.acting), Thrift(self.world)
        self._calm = Calm(self.world)
        self._later: datetime | None = None
        self._controller = self._hire(rival)
        self.world.apply(node_class())
        on_demand = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
        given = {"also": [on_demand], "expireAfter": "Never", "disruption": dict(disruption or {})}
        self.world.apply(node_pool("general", given))
        first = load.at(self.world.clock.now())
        for one in load.services:
            short = {"replicas": first[one.name], "cpu": one.cpu, "memory": one.memory}
            self.world.apply(deployment(one.name, short))

    def _hire(self, rival: Rival | None) -> Controller:
        world = self.world
        methods = METHODS if rival is None else rival(lambda: (world.server.loud_changes, world.ec2.changes))
        proposer = Proposals(_PONDER) if rival is None else NoProposals()
        made = Controller(
            world.ports,
            Parts(decide=partial(decide, methods=methods), proposer=proposer),
            settings=SETTINGS,
            inline=True,
        )
        if isinstance(proposer, Proposals):
            proposer.inbox = made.inbox
        return made

    # --- as the world's loop wants it -----------------------------------------------------------------------------
    @property
    def next_due(self) -> datetime | None:
        return self._later or self._controller.next_due

    def tick(self) -> None:
        self.acting = True
        try:
            plan = self._controller.tick()
        finally:
            self.acting = False
        failures = [str(r) for r in plan.refusals if r.reason.code == INTERNAL_ERROR] + bugs(self._controller)
        assert not failures, failures
        self._later = self._calm.until(plan, self._controller.next_due)
        self.thrift.look()

    # --- time -----------------------------------------------------------------------------------------------------
    def live(self, span: timedelta) -> Outcome:
        end = self.world.clock.now() + span
        while self.world.clock.now() < end:
            began = self.world.clock.now()
            self.world.run(self, min(end, began + STEP))
            self._bound_usd += self.least() * ((self.world.clock.now() - began) / timedelta(hours=1)) / 1e6
            self.scale(self._load.at(self.world.clock.now()))
        return self.outcome()

    def scale(self, replicas: Mapping[str, int]) -> None:
        """The load changes."""
        self.thrift.load_changes()
        for name, count in replicas.items():
            self.world.scale("default", name, count)

    def least(self) -> float:
        """What nodes for the pods that are there cost at least, in microdollars an hour."""
        snapshot = self._controller.state.snapshot(self.world.clock.now())
        return lp_bound(snapshot, [replace(p, spec=replace(p.spec, node_name="")) for p in snapshot.pods.values()])

    def outcome(self) -> Outcome:
        bill, thrift = self.bill, self.thrift
        replaced = thrift.replacements().values()
        return Outcome(
            bill.cost_usd,
            self._bound_usd,
            bill.evictions,
            bill.launches,
            bill.peak_nodes,
            bill.waited,
            len(thrift.returned),
            len(thrift.dearer) + sum(new >= old for old, new in replaced),
        )
