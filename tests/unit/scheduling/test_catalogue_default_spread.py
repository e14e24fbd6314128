"""Red: default spread constraints: behaviours 188 to 193 of the catalogue.

Missing: `Settings.default_constraints` (read from SCHEDULER_CONFIG in runtime/settings/settings.py), the kinds Service,
ReplicaSet, StatefulSet and ReplicationController, and the injection before classes are made
(scheduling/placing/classes.py).
"""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model.kubernetes.objects import Pod, TopologySpreadConstraint
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w


def default(key: str = labels.ZONE, **more: Any) -> dict[str, Any]:
    """The setting with one default constraint."""
    manifest = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **more}
    return {"default_constraints": (decode(TopologySpreadConstraint, manifest),)}


def replica_set(name: str = "rs", selector: dict[str, Any] | None = None, kind: str = "ReplicaSet") -> Any:
    return c.made(kind, name, "default", spec={"selector": selector or {"matchLabels": {"app": name}}})


def service(name: str, selector: dict[str, str] | None, namespace: str = "default") -> Any:
    return c.made("Service", name, namespace, spec={"selector": selector} if selector is not None else {})


def owned(count: int, name: str = "rs", kind: str = "ReplicaSet", **spec: Any) -> list[Pod]:
    """Pods of a workload, with its name as `app`."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{kind}-{name}", "controller": True}
    return w.replicas(count, spec.pop("prefix", name), **{"labels": {"app": name}, "owner": owner, **spec})


def test_188_the_pods_of_a_workload_are_spread() -> None:
    """Over zones, and over hosts."""
    assert c.spread_counts(w.pool(), replica_set(), owned(4), **default()) == [1, 1, 2]
    assert c.run(w.pool(), replica_set(), owned(3), **default(labels.HOSTNAME)).sizes() == [1, 1, 1]


def test_189_who_has_a_constraint_or_no_workload_gets_none() -> None:
    """Any constraint of its own; no owner and no service; no default."""
    hosts = default(labels.HOSTNAME)
    own: dict[str, Any] = {"topologySpreadConstraints": [w.spread(labels.HOSTNAME, 3, app="rs")]}
    assert c.run(w.pool(), replica_set(), owned(3, **own), **hosts).sizes() == [3]
    assert c.run(w.pool(), w.replicas(3, "p", labels={"app": "p"}), **hosts).sizes() == [3]
    assert c.run(w.pool(), replica_set(), owned(3), default_constraints=()).sizes() == [3]
    assert c.run(w.pool(), replica_set(), owned(3), **hosts).sizes() == [1, 1, 1]


def test_190_a_hard_default_leaves_pods_waiting_and_a_soft_one_does_not() -> None:
    """Five domains wanted and three there: one pod for each."""
    for mode, waiting in (("DoNotSchedule", 2), ("ScheduleAnyway", 0)):
        done = c.run(w.pool(), replica_set(), owned(5), **default(minDomains=5, whenUnsatisfiable=mode))
        assert len(done.pending) == waiting


def test_191_running_pods_count_and_each_workload_spreads_alone() -> None:
    """Through the selector that was found; two revisions do not see each other."""
    node = w.node("n", "z1", cpu="50m")
    there = owned(2, cpu="1m", memory="1Mi", node="n", prefix="old")
    assert c.spread_counts(w.pool(), replica_set(), node, there, owned(2), **default()) == [1, 1]
    revisions = [replica_set(n) for n in ("a", "b")]
    done = c.run(w.pool(), revisions, owned(2, "a"), owned(2, "b"), **default(labels.HOSTNAME))
    assert done.sizes() == [2, 2]


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_192_the_selector_is_the_workloads_and_its_services(kind: str) -> None:
    """Not the pods' labels. Expressions are taken over; services that match are merged; others do not matter."""
    hosts = default(labels.HOSTNAME)
    by_expression = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["rs"]}]}
    for selector in ({"matchLabels": {"app": "rs"}}, by_expression):
        workload = replica_set(selector=selector, kind=kind)
        pods = [p for n in range(3) for p in owned(1, kind=kind, prefix=f"p{n}", labels={"app": "rs", "n": str(n)})]
        assert c.run(w.pool(), workload, pods, **hosts).sizes() == [1, 1, 1]
    both = {"app": "rs", "tier": "x"}
    pods = w.replicas(3, "p", labels=both)
    merged = [service("one", {"app": "rs"}), service("two", {"tier": "x"})]
    assert c.run(w.pool(), merged, pods, **hosts).sizes() == [1, 1, 1]
    idle = [service("nil", None), service("far", {"app": "rs"}, "other"), service("no", {"app": "else"})]
    assert c.run(w.pool(), idle, pods, **hosts).sizes() == [3]
    conflicting = [replica_set(selector={"matchLabels": {"tier": "y"}}, kind=kind), service("one", {"tier": "x"})]
    torn = owned(3, kind=kind, labels={**both})
    assert c.run(w.pool(), conflicting, torn, **hosts).sizes() == [3]


def test_193_giving_up_the_default_of_one_pod_touches_no_other() -> None:
    """One pod must be in z1 and puts up with a skew there; the other is spread all the same."""
    soft = default(whenUnsatisfiable="ScheduleAnyway")
    node = w.node("n", "z1", cpu="50m")
    there = owned(2, cpu="1m", memory="1Mi", node="n", prefix="old")
    bound = owned(1, prefix="bound", nodeSelector={labels.ZONE: "z1"})
    done = c.run(w.pool(), replica_set(), node, there, bound, owned(1, prefix="free"), **soft)
    assert done.of("bound-0").zones == ("z1",)
    assert "z1" not in done.of("free-0").zones
    assert not done.pending
