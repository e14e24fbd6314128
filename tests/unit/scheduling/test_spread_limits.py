"""What a spread over hostnames leaves on nodes in the making, and when it need not be asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np

from kerf.model.kubernetes.selectors import Selector
from kerf.pods.topology_constraints import SPREAD, TopologyConstraint, TopologyGroup
from kerf.scheduling.packing.draft import PoolDemand
from kerf.scheduling.packing.spread_limits import SpreadLimits
from kerf.scheduling.topology import admits
from kerf_api import labels

GROUP = TopologyGroup(SPREAD, labels.HOSTNAME, None, Selector())
NODES = np.arange(4)


def _stock(first: int, last: int, *limits: int) -> PoolDemand:
    """Pods with these turns, and the hard spreads over hostnames of such a skew that they own."""
    own = tuple((GROUP, most) for most in limits)
    return cast(PoolDemand, SimpleNamespace(item=SimpleNamespace(first=first, last=last), limits=own))


def _with(*stocks: PoolDemand) -> SpreadLimits:
    limits = SpreadLimits()
    for stock in stocks:
        limits.put(stock, NODES[:2], 8)
    return limits


def test_pods_leave_room_for_those_that_come_later_in_the_plan() -> None:
    limits, counts = _with(_stock(5, 6, 2)), np.array([1, 2, 9, 0])
    assert limits.bind(_stock(1, 1), GROUP)
    assert not limits.bind(_stock(6, 7), GROUP)
    assert limits.admit(_stock(1, 1), GROUP, counts).tolist() == [True, False, True, True]
    assert limits.admit(_stock(1, 1), GROUP, counts[:2]).tolist() == [True, False]
    assert limits.left(_stock(1, 1), GROUP, np.array([1, 2, 9, 0, 0, 0, 0, 0]))[:2].tolist() == [1, 0]


def test_a_spread_that_the_pods_own_is_asked_once() -> None:
    limits = _with(_stock(5, 6, 3), _stock(7, 7, 2))
    assert not limits.bind(_stock(1, 1, 2), GROUP)
    assert not limits.bind(_stock(1, 1, 1), GROUP)
    assert limits.bind(_stock(1, 1, 3), GROUP)  # the other one has the smaller skew


def test_what_is_not_asked_would_have_said_nothing_new() -> None:
    limits, counts = _with(_stock(5, 6, 3), _stock(7, 7, 2)), np.arange(4)
    for skew in (1, 2):
        own = admits.bounds(TopologyConstraint(GROUP, self_match=True, max_skew=skew))
        left = limits.admit(_stock(1, 1, skew), GROUP, counts)
        assert (own.admitting(counts) & left).tolist() == own.admitting(counts).tolist()
