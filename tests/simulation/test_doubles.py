"""The stand-ins for other ideas of consolidation do what these say."""

from __future__ import annotations

from datetime import timedelta

from kerf.model import kinds
from kerf.simulating.autoscalers.greedy import Greedy, greedy
from kerf.simulating.autoscalers.threshold import Threshold, threshold
from kerf_api import labels
from tests.simulation.days import Days, Rival
from tests.simulation.test_thrift import SMALL, Steady
from tests.simulation.trouble import lives

#: Three pods fill a node of this type, and two are more than half of it.
ALL = {"budgets": [{"nodes": "100%"}]}


def grown(pods: int, rival: Rival, types: tuple[str, ...] = (SMALL,)) -> Days:
    """A cluster with so many pods, at rest."""
    days = Days(Steady(pods), ALL, rival, types)
    days.world.run(days, timedelta(minutes=30))
    assert days.bill.evictions == 0
    return days


def nodes(days: Days) -> int:
    return sum(1 for _ in days.world.server.records(kinds.NODE))


def commands(days: Days) -> int:
    claims = days.world.server.records(kinds.NODE_CLAIM)
    return sum(labels.COMMAND in record.value.metadata.annotations for record in claims)


def types(days: Days) -> list[str]:
    return sorted(machine.instance_type for machine in days.world.ec2.instances.values() if lives(machine))


def pods_by_node(days: Days) -> list[int]:
    names = [record.value.spec.node_name for record in days.world.server.records(kinds.POD)]
    return sorted(names.count(name) for name in set(names))


# --- a threshold --------------------------------------------------------------------------------------------------
def test_nodes_go_after_ten_minutes_one_after_the_other() -> None:
    days = grown(9, threshold)
    days.scale({"web": 3})
    days.world.run(days, Threshold.UNNEEDED - timedelta(seconds=5))
    assert pods_by_node(days) == [1, 1, 1]
    days.world.run(days, timedelta(minutes=5), stop_when=lambda: nodes(days) < 3)
    assert nodes(days) == 2
    days.world.run(days, timedelta(minutes=30))
    assert pods_by_node(days) == [3]
    assert days.bill.evictions == 2
    assert days.bill.launches == 3


def test_nodes_of_which_half_is_used_stay_and_so_do_those_whose_pods_fit_nowhere() -> None:
    days = grown(6, threshold)
    days.scale({"web": 4})
    days.world.run(days, timedelta(hours=1))
    assert pods_by_node(days) == [2, 2]
    one = grown(3, threshold)
    one.scale({"web": 1})
    one.world.run(one, timedelta(hours=1))
    assert pods_by_node(one) == [1]


def test_empty_nodes_go_together() -> None:
    days = grown(9, threshold)
    days.scale({"web": 0})
    days.world.run(days, Threshold.UNNEEDED - timedelta(seconds=5))
    assert nodes(days) == 3
    days.world.run(days, timedelta(minutes=1))
    assert nodes(days) == 0


# --- the reference's order ----------------------------------------------------------------------------------------
def test_the_largest_prefix_goes_at_once_when_it_has_stood_fifteen_seconds() -> None:
    days = grown(9, greedy)
    days.scale({"web": 3})
    days.world.run(days, Greedy.VALIDATION - timedelta(seconds=1))
    assert commands(days) == 0
    days.world.run(days, timedelta(minutes=2))
    assert pods_by_node(days) == [3]
    assert days.bill.evictions == 2


def test_at_most_one_cheaper_node_comes() -> None:
    days = grown(9, greedy, ("c6i.large", "c6i.4xlarge"))
    assert days.bill.launches
    days.scale({"web": 1})
    days.world.run(days, timedelta(hours=1))
    assert types(days) == ["c6i.large"]
