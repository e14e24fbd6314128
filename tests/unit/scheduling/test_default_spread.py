"""Default spread constraints beyond the catalogue: what a selector is made of; equal pods stay of one class."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kerf.model.kubernetes.objects import Pod, TopologySpreadConstraint
from kerf.model.kubernetes.selectors import Selector, selector_of
from kerf.pods.default_constraints import DefaultSpread
from kerf.scheduling.placing.classes import PodFacts, classes_of
from kerf.scheduling.placing.pod_parts import shape_of
from kerf.scheduling.solve import SolveOptions, context_of, solve
from kerf.scheduling.topology.solve_counts import Topology
from kerf.scheduling.work import Work
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

ZONES = decode(TopologySpreadConstraint, {"maxSkew": 2, "topologyKey": labels.ZONE, "minDomains": 2})
HOSTS = decode(TopologySpreadConstraint, {"topologyKey": labels.HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"})
HOST = decode(TopologySpreadConstraint, {"topologyKey": labels.HOSTNAME})
APP = {"matchLabels": {"app": "a"}}


def pod(kind: str = "ReplicaSet", name: str = "p", api_version: str = "apps/v1", **spec: Any) -> Pod:
    owner = {"apiVersion": api_version, "kind": kind, "name": "rs", "uid": "u", "controller": True}
    return w.pod(name, **{"labels": {"app": "a"}, "owner": owner, **spec})


def workload(kind: str = "ReplicaSet", selector: Any = APP, **more: Any) -> Any:
    return c.made(kind, "rs", "default", spec={"selector": selector}, **more)


def given(*objects: Any, to: Pod, defaults: tuple[TopologySpreadConstraint, ...] = (ZONES,)) -> Pod:
    """The pod with what it is given in a world of these objects."""
    (found,) = DefaultSpread(w.world(*objects, default_constraints=defaults)).given([to])
    return found


def selector(found: Pod) -> Selector | None:
    """Whom its only constraint counts."""
    rows = found.spec.topology_spread_constraints
    return selector_of(rows[0].label_selector, {}, ()) if rows else None


def test_everything_but_the_selector_is_as_it_was_set() -> None:
    found = given(workload(), to=pod(), defaults=(ZONES, HOSTS))
    rows = found.spec.topology_spread_constraints
    assert [msgspec.structs.replace(row, label_selector=None) for row in rows] == [ZONES, HOSTS]
    assert all(row.label_selector is not None for row in rows)
    assert found.metadata == pod().metadata


@pytest.mark.parametrize(
    ("objects", "owned", "pairs", "expressions"),
    [
        ([workload()], pod(), [("app", "a")], []),
        ([workload("ReplicationController", {"app": "a"})], pod("ReplicationController", api_version="v1"), None, None),
        (
            [
                workload(selector={"matchLabels": {"app": "b"}}),
                c.made("Service", "s", "default", spec={"selector": {}}),
            ],
            pod(),
            [("app", "b")],
            [],
        ),
        (
            [
                workload(selector={"matchLabels": {"app": "b"}}),
                c.made("Service", "s", "default", spec={"selector": {"app": "a"}}),
            ],
            pod(),
            [("app", "a"), ("app", "b")],
            [],
        ),
        (
            [
                workload("ReplicationController", {"app": "b"}),
                c.made("Service", "s", "default", spec={"selector": {"app": "a"}}),
            ],
            pod("ReplicationController", api_version="v1"),
            [("app", "b")],
            [],
        ),
    ],
    ids=["a ReplicaSet", "a ReplicationController", "an empty Service", "a contradiction", "pairs that are replaced"],
)
def test_whom_a_default_counts(objects: list[Any], owned: Pod, pairs: Any, expressions: Any) -> None:
    found = selector(given(objects, to=owned))
    assert found is not None
    assert list(found.pairs) == (pairs or [("app", "a")])
    assert list(found.expressions) == (expressions or [])


@pytest.mark.parametrize(
    ("objects", "owned"),
    [
        ([], pod()),
        ([workload()], pod("Job")),
        ([workload()], pod("ReplicaSet", api_version="example.com/v1")),
        ([workload(selector={})], pod()),
        ([workload(selector=None)], pod()),
        ([workload(metadata={"unreadable": "spec"})], pod()),
        ([workload()], msgspec.structs.replace(pod(), metadata=msgspec.structs.replace(pod().metadata, namespace="x"))),
        (
            [c.made("Service", "s", "default", spec={"selector": {"app": "a"}}, metadata={"unreadable": "?"})],
            pod("Job"),
        ),
        ([c.made("Service", "s", "default", spec={"selector": {"app": "b"}})], pod("Job")),
        ([c.made("Service", "s", "x", spec={"selector": {"app": "a"}})], pod("Job")),
    ],
    ids=[
        "unknown",
        "a Job",
        "of another group",
        "empty",
        "none",
        "unreadable",
        "elsewhere",
        "an unreadable Service",
        "a Service of others",
        "a far Service",
    ],
)
def test_a_pod_that_belongs_to_nothing_known_is_left_as_it_is(objects: list[Any], owned: Pod) -> None:
    assert given(objects, to=owned) is owned


def test_who_owns_a_pod_without_controlling_it_does_not_count() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u"}
    owned = w.pod("p", labels={"app": "a"}, owner=owner)
    assert given(workload(), to=owned) is owned


def test_pods_of_one_workload_stay_of_one_class() -> None:
    """Whatever other labels each of them has, and however often they are looked at."""
    pods = [pod("StatefulSet", f"p-{n}", labels={"app": "a", "index": str(n)}) for n in range(9)]
    snapshot = w.world(w.pool(), workload("StatefulSet"), pods, default_constraints=(HOST,))
    context = context_of(snapshot)
    found = context.spread.given(pods)
    assert len({shape_of(one) for one in found}) == 1
    topology = Topology(context.tallies, found, frozenset(), frozenset())
    classes, odd, waiting = classes_of(
        found,
        PodFacts(),
        topology=topology,
        respect_preferences=True,
        soft_taints=False,
        work=Work(),
    )
    assert ([len(one.members) for one in classes], odd, waiting) == ([9], {}, [])
    assert [len(node.pods) for node in solve(snapshot, pods, context=context).new_nodes] == [1] * 9


def test_a_pod_that_moves_is_spread_as_well() -> None:
    """The reference applies the defaults to pods of nodes that go, too."""
    node = w.node("n", cpu="8")
    running = [pod(name=f"p-{n}", node="n") for n in range(3)]
    snapshot = w.world(w.pool(), workload(), node, running, default_constraints=(HOST,))
    moved = solve(snapshot, running, SolveOptions(exclude=frozenset({"node/n"})))
    assert [len(one.pods) for one in moved.new_nodes] == [1, 1, 1]
