"""What watches over consolidation's promises sees each of them broken, by controllers that break them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from kerf.disruption.asking import Manner, Solve
from kerf.disruption.candidates.budgets import Ledger
from kerf.disruption.candidates.candidates import Candidate, candidate
from kerf.disruption.commands import start
from kerf.disruption.methods.methods import Method
from kerf.disruption.simulation import simulate
from kerf.disruption.view import View
from kerf.model.plan import NOTHING, Plan
from kerf.scheduling.answers.nodeclaims import to_claim
from kerf_api.v1.budgets import UNDERUTILIZED
from tests.simulation.days import Days
from tests.simulation.load import Service

SMALL, LARGE = "c6i.xlarge", "m6i.xlarge"


@dataclass
class Steady:
    """Pods of one service, as many as a test says."""

    replicas: int
    seed: int = 1
    services: tuple[Service, ...] = field(default=(Service("web", "1", "1Gi", 0, 0.0),))

    def at(self, when: datetime) -> Mapping[str, int]:
        return {"web": self.replicas}


def ends(view: View, one: Candidate, ask: Solve) -> Plan:
    """A node goes though its pods fit nowhere else."""
    return start(view, one, UNDERUTILIZED, "no reason")


def replaced_by(types: tuple[str, ...]) -> Method:
    def replaces(view: View, one: Candidate, ask: Solve) -> Plan:
        (new,) = simulate(view, [one], ask, Manner.FREELY).new_nodes
        claim = to_claim(view.snapshot, replace(new, instance_types=types), salt="test")
        return start(view, one, UNDERUTILIZED, "no reason", [claim])

    return once(replaces)


def once(begin: Callable[[View, Candidate, Solve], Plan]) -> Method:
    """Begins that about the first node, an hour after the world's beginning."""

    def run(view: View, ledger: Ledger, ask: Solve) -> Plan:
        found = [candidate(view, key) for key in sorted(view.snapshot.state_nodes)]
        going = [one for one in found if isinstance(one, Candidate)]
        due = datetime.fromisoformat("2026-01-01T01:00:00+00:00")
        if not going or view.snapshot.now < due:
            return Plan(next_due=due if view.snapshot.now < due else None)
        return begin(view, going[0], ask) if view.snapshot.now == due else NOTHING

    return Method("once", run)


def lived(method: Method) -> Days:
    days = Days(Steady(3), rival=lambda news: (method,), types=(SMALL, LARGE))
    days.world.run(days, timedelta(hours=2))
    assert days.bill.launches == 2
    assert days.bill.evictions == 3
    return days


def test_a_fleet_that_comes_back_is_told() -> None:
    days = lived(once(ends))
    assert days.thrift.returned == [f"01 01:00:{days.thrift.returned[0][9:11]} {SMALL}"]
    assert days.thrift.dearer == []


def test_a_fleet_that_costs_more_is_told_and_so_is_what_came_for_the_node() -> None:
    days = lived(replaced_by((LARGE,)))
    assert len(days.thrift.dearer) == 1
    ((old, new),) = days.thrift.replacements().values()
    assert new > old
    assert days.outcome().dearer == 2


def test_any_fleet_may_come_back_and_cost_more_once_the_load_has_changed() -> None:
    days = lived(replaced_by((LARGE,)))
    days.scale({"web": 2})
    days.world.run(days, timedelta(hours=1))
    days.scale({"web": 3})
    days.world.run(days, timedelta(hours=1))
    assert len(days.thrift.dearer) == 1
    assert days.thrift.returned == []
