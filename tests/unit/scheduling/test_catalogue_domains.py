"""Topology spread over domains that differ from pod to pod: behaviours 161 to 171 of the catalogue."""

from __future__ import annotations

from typing import Any

import pytest

from kerf_api import labels
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

RACK = "rack"


def tainted(key: str) -> dict[str, str]:
    return {"key": key, "value": "x", "effect": "NoSchedule"}


def tolerating(key: str) -> dict[str, Any]:
    return {"tolerations": [{"key": key, "operator": "Exists"}]}


def test_161_a_key_of_ones_own_sets_a_ratio() -> None:
    """One value on demand and four on spot: 20 pods are four for each, so 4 to 16."""
    spot = c.pool(c.row("lane", "In", "2", "3", "4", "5"), c.row(labels.CAPACITY_TYPE, "In", "spot"), name="spot")
    dear = c.pool(c.row("lane", "In", "1"), c.row(labels.CAPACITY_TYPE, "In", "on-demand"), name="dear")
    story = c.Story.of(spot, dear)
    assert not story.batch(c.web(20, w.spread("lane"))).pending
    assert story.counts("lane") == [4] * 5
    assert story.counts(labels.CAPACITY_TYPE) == [4, 16]


def test_162_a_zone_whose_pool_is_at_its_limit_is_no_domain() -> None:
    """No node is there, and none can be made now: the kube-scheduler spreads over the other two."""
    open_ = c.pool(c.row(labels.ZONE, "In", "z1", "z2"), name="open")
    shut = c.pool(c.row(labels.ZONE, "In", "z3"), name="shut", limits={"cpu": "0"})
    soft = w.spread(labels.HOSTNAME, whenUnsatisfiable="ScheduleAnyway")
    done = c.run(open_, shut, c.web(10, w.spread(), soft))
    assert (w.counts(done.solution), len(done.pending)) == ([5, 5], 0)


def test_163_values_of_further_keys_distinguish_revisions() -> None:
    """Two revisions of two pods share two hosts; a key that no pod has changes nothing."""
    spread = w.spread(labels.HOSTNAME, matchLabelKeys=["revision"])
    pods = [p for r in "ab" for p in c.web(2, spread, name=r, labels={"app": "web", "revision": r})]
    assert c.run(w.pool(), pods).sizes() == [2, 2]
    assert c.run(w.pool(), c.web(4, spread)).sizes() == [1] * 4


@pytest.mark.parametrize(("policy", "placed"), [("Ignore", 1), ("Honor", 5)])
def test_164_domains_of_tainted_nodes(policy: str, placed: int) -> None:
    """Two nodes have foo and bar, the pool offers baz: where taints are ignored, the two are empty domains."""
    nodes = [w.node(n, labels={RACK: n}, taints=[tainted("k")]) for n in ("foo", "bar")]
    done = c.run(w.pool(labels={RACK: "baz"}), nodes, c.web(5, w.spread(RACK, nodeTaintsPolicy=policy)))
    assert sum(done.sizes()) == placed
    assert len(done.pending) == 5 - placed


@pytest.mark.parametrize("policy", ["Ignore", "Honor"])
def test_165_domains_of_a_tainted_pool(policy: str) -> None:
    """foo is open, bar is tainted: no node of bar is for these pods, so both pods are in foo."""
    foo, bar = w.pool("foo", labels={RACK: "foo"}), w.pool("bar", labels={RACK: "bar"}, taints=[tainted("k")])
    done = c.run(foo, bar, c.web(2, w.spread(RACK, nodeTaintsPolicy=policy)))
    assert sum(done.sizes()) == 2
    assert {node.pool for node in done.nodes} == {"foo"}


def test_166_two_pools_that_exclude_each_other_share_a_domain() -> None:
    """Two pods in foo and bar, then four in foo and baz: one, two and three."""
    one = c.pool(c.row(RACK, "In", "foo", "bar"), name="one", taints=[tainted("one")])
    two = c.pool(c.row(RACK, "In", "foo", "baz"), name="two", taints=[tainted("two")])
    story = c.Story.of(one, two)
    spread = w.spread(RACK, nodeTaintsPolicy="Honor")
    assert not story.batch(c.web(2, spread, name="a", **tolerating("one"))).pending
    assert story.counts(RACK) == [1, 1]
    assert not story.batch(c.web(4, spread, name="b", **tolerating("two"))).pending
    assert story.counts(RACK) == [1, 2, 3]


@pytest.mark.parametrize(("policy", "placed"), [("Ignore", 1), ("Honor", 5)])
def test_167_domains_of_nodes_that_the_pods_do_not_select(policy: str, placed: int) -> None:
    """Where that is ignored, they are empty domains."""
    nodes = [w.node(n, labels={RACK: n, "team": "other"}) for n in ("foo", "bar")]
    pool = w.pool(labels={RACK: "baz", "team": "ours"})
    pods = c.web(5, w.spread(RACK, nodeAffinityPolicy=policy), nodeSelector={"team": "ours"})
    done = c.run(pool, nodes, pods)
    assert sum(done.sizes()) == placed
    assert len(done.pending) == 5 - placed


def test_168_pods_that_select_their_zone_do_not_hold_up_each_other() -> None:
    """Five in z1 and ten in z2 under the same constraint."""
    pods = [c.web(n, w.spread(), name=zone, nodeSelector={labels.ZONE: zone}) for zone, n in (("z1", 5), ("z2", 10))]
    assert c.spread_counts(w.pool(), *pods) == [5, 10]


def test_169_required_zones_bound_what_is_looked_at() -> None:
    """Six in two zones, then one that may not go to the first, then five anywhere."""
    story = c.Story.of(w.pool())
    steps: list[tuple[int, list[str], list[int]]] = [
        (6, ["z1", "z2"], [3, 3]),
        (1, ["z2", "z3"], [1, 3, 3]),
        (5, list(w.ZONES), [4, 4, 4]),
    ]
    for number, (count, zones, expected) in enumerate(steps):
        assert not story.batch(
            c.web(count, w.spread(), name=f"b{number}", **c.wants((labels.ZONE, "In", zones)))
        ).pending
        assert story.counts() == expected


def test_170_preferred_zones_do_not() -> None:
    """Six pods that would like two zones are spread over three."""
    term = {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": ["z1", "z2"]}]}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    assert c.spread_counts(w.pool(), c.web(6, w.spread(), affinity={"nodeAffinity": wish})) == [2, 2, 2]


def test_171_a_key_that_no_node_has() -> None:
    """Its pod waits, the others do not."""
    done = c.run(w.pool(), c.web(1, w.spread("unknown"), name="odd"), w.replicas(3, "p"))
    assert done.pending == ["odd-0"]
    assert done.sizes() == [3]
