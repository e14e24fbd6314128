"""Topology spread: behaviours 144 to 160 of the catalogue (scheduling reference §11)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kerf.model.kubernetes.objects import Node, Pod
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

WEB = {"app": "web"}
FULL = {"cpu": "50m", "memory": "1Gi"}
KIND = labels.CAPACITY_TYPE
SOFT = "ScheduleAnyway"


def zones(*names: str, name: str = "default", **spec: Any) -> Any:
    """A pool of these zones only."""
    return c.pool(c.row(labels.ZONE, "In", *names), name=name, **spec)


def there(zone: str, count: int = 1, **spec: Any) -> list[Any]:
    """A full node in a zone with so many pods that match."""
    name = f"n-{zone}"
    return [w.node(name, zone, **FULL), *w.replicas(count, f"old-{zone}", "1m", "1Mi", node=name, labels=WEB, **spec)]


def kinds(story: c.Story) -> list[int]:
    return story.counts(KIND)


@pytest.mark.parametrize(
    "selector",
    [{"matchLabels": WEB}, {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}],
    ids=["labels", "expressions"],
)
def test_144_four_pods_over_three_zones(selector: dict[str, Any]) -> None:
    """As evenly as can be, whichever way the selector is written."""
    assert c.spread_counts(w.pool(), c.web(4, w.spread(labelSelector=selector))) == [1, 1, 2]


def test_145_only_zones_that_pools_offer_are_looked_at() -> None:
    """Two zones of a pool; one of its label; one each of two pools."""
    assert c.spread_counts(zones("z1", "z2"), c.web(4, w.spread())) == [2, 2]
    assert c.spread_counts(w.pool(labels={labels.ZONE: "z1"}), c.web(4, w.spread())) == [4]
    pools = [zones("z1", name="a"), zones("z2", name="b")]
    assert c.spread_counts(pools, c.web(4, w.spread())) == [2, 2]


def test_146_pods_that_run_count() -> None:
    """One in z1 and four more."""
    story = c.Story.of(w.pool(), there("z1"))
    story.batch(c.web(4, w.spread()))
    assert story.counts() == [1, 2, 2]


def test_147_a_wide_skew_lets_one_zone_run_ahead_so_far() -> None:
    """Five beyond the fullest of the others, which cannot grow."""
    story = c.Story.of(zones("z3"), there("z1"), there("z2"))
    assert len(story.batch(c.web(10, w.spread(skew=5))).pending) == 4
    assert story.counts() == [1, 1, 6]


def test_148_the_emptier_zones_are_filled_first() -> None:
    """Of nine pods three are left, all in z1: then three come."""
    story = c.Story.of(w.pool())
    story.batch(c.web(9, w.spread(), name="a"))
    assert story.counts() == [3, 3, 3]
    homes = {o.name: o.metadata.labels[labels.ZONE] for o in story.objects.values() if isinstance(o, Node)}
    story.drop(*[p for p in story.running() if homes[p.spec.node_name] != "z1"])
    story.batch(c.web(3, w.spread(), name="b"))
    assert story.counts() == [1, 2, 3]


@pytest.mark.parametrize("own", [True, False], ids=["constrained", "free"])
def test_149_a_zone_that_only_a_node_has_counts(own: bool) -> None:
    """One pod in z1, where nothing can be made any more: two in each of the others, and six wait."""
    spec: dict[str, Any] = {"topologySpreadConstraints": [w.spread()]} if own else {}
    story = c.Story.of(zones("z2", "z3"), there("z1", **spec))
    assert len(story.batch(c.web(10, w.spread())).pending) == 6
    assert story.counts() == [1, 2, 2]


def test_150_who_is_not_counted() -> None:
    """Two pods in z1 that do not count leave the next two one zone each; two that do send both to z2."""
    node, *old = there("z1", 2)
    bare = Node(metadata=decode(type(node.metadata), {"name": "n-z1", "uid": "u"}), spec=node.spec, status=node.status)

    def changed(**status: Any) -> list[Any]:
        return [node, *(msgspec.structs.replace(p, status=msgspec.structs.replace(p.status, **status)) for p in old)]

    dying = [
        msgspec.structs.replace(p, metadata=msgspec.structs.replace(p.metadata, deletion_timestamp=w.NOW)) for p in old
    ]
    uncounted: dict[str, list[Any]] = {
        "unscheduled": [node, *w.replicas(2, "x", "1000", labels=WEB)],
        "namespace": [node, *w.replicas(2, "x", "1m", "1Mi", node="n-z1", labels=WEB, namespace="other")],
        "label": [node, *w.replicas(2, "x", "1m", "1Mi", node="n-z1", labels={"app": "else"})],
        "terminating": [node, *dying],
        "succeeded": changed(phase="Succeeded"),
        "failed": changed(phase="Failed"),
        "no domain": [bare, *old],
    }
    for why, objects in uncounted.items():
        assert c.spread_counts(zones("z1", "z2"), objects, c.web(2, w.spread())) == [1, 1], why
    assert c.spread_counts(zones("z1", "z2"), node, old, c.web(2, w.spread())) == [2]


def test_151_no_selector_and_an_empty_one_count_no_pod() -> None:
    """Two pods share a zone."""
    assert c.run(w.pool(), c.web(2, w.spread(labelSelector=None))).sizes() == [2]
    assert c.run(w.pool(), c.web(2, w.spread(labelSelector={}))).sizes() == [2]


def test_152_two_workloads_that_count_each_other() -> None:
    """Each is spread by the other's label; all have a place."""
    one = [w.pod(f"one-{i}", labels={"app": "one"}, topologySpreadConstraints=[w.spread(app="two")]) for i in range(3)]
    two = [w.pod(f"two-{i}", labels={"app": "two"}, topologySpreadConstraints=[w.spread(app="one")]) for i in range(3)]
    assert c.run(w.pool(), one, two).pending == []


def test_153_too_few_domains_count_as_an_empty_one() -> None:
    """Three wanted and two there: one each. Where there are enough, eleven pods are 4, 4 and 3."""
    done = c.run(zones("z1", "z2"), c.web(3, w.spread(minDomains=3)))
    assert (w.counts(done.solution), len(done.pending)) == ([1, 1], 1)
    assert c.spread_counts(w.pool(), c.web(11, w.spread(minDomains=3))) == [3, 4, 4]
    assert c.spread_counts(w.pool(), c.web(11, w.spread(minDomains=2))) == [3, 4, 4]


def test_154_a_spread_over_hosts() -> None:
    """Skew one: four nodes. Skew four: one."""
    assert c.run(w.pool(), c.web(4, w.spread(labels.HOSTNAME))).sizes() == [1] * 4
    assert c.run(w.pool(), c.web(4, w.spread(labels.HOSTNAME, 4))).sizes() == [4]


def test_155_two_workloads_that_spread_alone_share_nodes() -> None:
    """Two nodes for two pods of each; four where the architectures differ."""

    def both(second: str) -> list[Pod]:
        return [
            p
            for app, arch in (("one", "amd64"), ("two", second))
            for p in c.web(2, w.spread(labels.HOSTNAME, app=app), name=app, app=app, nodeSelector={labels.ARCH: arch})
        ]

    assert c.run(w.pool(), both("amd64")).sizes() == [2, 2]
    assert c.run(w.pool(), both("arm64")).sizes() == [1] * 4


def test_156_capacity_types_are_domains() -> None:
    """Two and two. With one on demand and a pool of spot only: two more; if the spread is soft, all five."""
    story = c.Story.of(w.pool())
    story.batch(c.web(4, w.spread(KIND)))
    assert kinds(story) == [2, 2]
    spot = c.pool(c.row(KIND, "In", "spot"))
    for mode, counts in (("DoNotSchedule", [1, 2]), (SOFT, [1, 5])):
        story = c.Story.of(spot, there("z1"))
        story.batch(c.web(5, w.spread(KIND, whenUnsatisfiable=mode)))
        assert kinds(story) == counts


def test_157_domains_that_the_pods_may_not_use_set_no_minimum() -> None:
    """Pods that must run on spot do not wait for on demand."""
    story = c.Story.of(c.pool(c.row(KIND, "In", "spot", "on-demand")), there("z1"))
    story.batch(c.web(5, w.spread(KIND), **c.wants((KIND, "In", ["spot"]))))
    assert kinds(story) == [1, 5]


def test_158_architectures_are_domains() -> None:
    """One on amd64, and a pool of arm64 only: two more."""
    story = c.Story.of(c.pool(c.row(labels.ARCH, "In", "arm64")), there("z1"))
    assert len(story.batch(c.web(4, w.spread(labels.ARCH))).pending) == 2
    assert story.counts(labels.ARCH) == [1, 2]


def test_159_zones_and_hosts_at_once() -> None:
    """In passes of 2, 3, 5 and 11, never more than three on a host."""
    story = c.Story.of(w.pool())
    for number, (count, expected) in enumerate(((2, [1, 1]), (3, [1, 2, 2]), (5, [3, 3, 4]), (11, [7, 7, 7]))):
        story.batch(c.web(count, w.spread(), w.spread(labels.HOSTNAME, 3), name=f"b{number}"))
        assert story.counts() == expected
        assert max(story.counts(labels.HOSTNAME)) <= 3


def test_160_capacity_types_and_hosts_at_once() -> None:
    """In passes of 2, 3, 5 and 11, never more than three on a host."""
    story = c.Story.of(w.pool())
    for number, (count, expected) in enumerate(((2, [1, 1]), (3, [2, 3]), (5, [5, 5]), (11, [10, 11]))):
        story.batch(c.web(count, w.spread(KIND), w.spread(labels.HOSTNAME, 3), name=f"b{number}"))
        assert kinds(story) == expected
        assert max(story.counts(labels.HOSTNAME)) <= 3
