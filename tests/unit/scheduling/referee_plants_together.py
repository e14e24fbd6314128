"""Plants against the rules between pods: topology spread, affinity, anti-affinity and their namespaces."""

from __future__ import annotations

from typing import Any

from kerf.model.kubernetes.objects import ReplicationController, Service, TopologySpreadConstraint
from kerf.model.kubernetes.workloads import ReplicaSet, StatefulSet
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.referee_plants import Choice, Plant, going, namespace, new, put

WEB = {"app": "web"}
ZONES = (w.node("n", "z1"), w.node("m", "z2"))


def old(node: str, name: str = "old", **spec: Any) -> Any:
    return w.pod(name, node=node, **{"labels": WEB, **spec})


def plant(name: str, rule: str, world: tuple[Any, ...], right: Choice, wrong: Choice) -> Plant:
    return Plant(name, rule, world, right, wrong)


# --- spread -------------------------------------------------------------------------------------------------------
def spread(name: str, right: Choice, wrong: Choice, *world: Any, pods: int = 2, **constraint: Any) -> Plant:
    """Replicas `p-0` … with one constraint."""
    own = constraint.pop("spec", {})
    spec = {"labels": WEB, "topologySpreadConstraints": [w.spread(**constraint)], **own}
    return plant(name, "spread", (*world, w.replicas(pods, "p", **spec)), right, wrong)


EVEN, PILED = put(p_0="n", p_1="m"), put(p_0="n", p_1="n")
RED = {"key": "team", "value": "red", "effect": "NoSchedule"}
SPREAD = [
    spread("over zones", EVEN, PILED, *ZONES),
    spread("over nodes", EVEN, PILED, *ZONES, key=labels.HOSTNAME),
    spread(
        "pods that run already count",
        put(p_0="m", p_1="m"),
        put(p_0="m", p_1="n"),
        *ZONES,
        old("n"),
        old("n", "older"),
        spec={"namespace": "default"},
    ),
    spread("a larger skew", put(p_0="n", p_1="n"), put(p_0="n", p_1="n", p_2="n"), *ZONES, pods=3, skew=2),
    spread("minDomains", put(p_0="n"), PILED, w.node("n"), minDomains=2),
    spread(
        "a zone that the pod may not enter, all the same",
        put(p_0="n"),
        PILED,
        *ZONES,
        spec={"nodeSelector": {labels.ZONE: "z1"}},
        nodeAffinityPolicy="Ignore",
    ),
    spread(
        "a tainted zone, by default",
        put(p_0="n"),
        PILED,
        w.node("n", "z1"),
        w.node("m", "z2", taints=[RED]),
    ),
    spread(
        "a tainted zone is no zone when taints are honoured",
        put(p_0="n", p_1="n", p_2="x"),
        put(p_0="n", p_1="n", p_2="n"),
        w.node("n", "z1"),
        w.node("m", "z2", taints=[RED]),
        w.node("x", "z3"),
        pods=3,
        nodeTaintsPolicy="Honor",
    ),
    spread(
        "matchLabelKeys",
        put(p_0="n", p_1="m"),
        put(p_0="n", p_1="n"),
        *ZONES,
        old("m", "other-0", labels={**WEB, "version": "1"}),
        old("m", "other-1", labels={**WEB, "version": "1"}),
        spec={"labels": {**WEB, "version": "2"}},
        matchLabelKeys=["version"],
    ),
    spread(
        "a node without the label",
        put(p_0="m"),
        put(p_0="n"),
        w.node("n"),
        w.node("m", labels={"rack": "1"}),
        key="rack",
    ),
    spread(
        "a pod that its own selector does not mean",
        put(p_0="m"),
        put(p_0="n"),
        *ZONES,
        old("n"),
        old("n", "older"),
        spec={"labels": {}},
        pods=1,
    ),
    plant(
        "planned nodes",
        "spread",
        (w.pool(), w.replicas(2, "p", labels=WEB, topologySpreadConstraints=[w.spread()])),
        put(new("p-0", zone="z1"), new("p-1", zone="z2")),
        put(new("p-0", zone="z1"), new("p-1", zone=("z1", "z2"))),
    ),
]


# --- affinity -------------------------------------------------------------------------------------------------------
def near(name: str, right: Choice, wrong: Choice, *world: Any, key: str = labels.ZONE, **more: Any) -> Plant:
    """One pod `p` of another app that wants to be where `web` is."""
    affinity = w.between("podAffinity", key, **more)
    return plant(name, "affinity", (*world, w.pod("p", affinity=affinity, labels={"app": "client"})), right, wrong)


def friends(name: str, right: Choice, wrong: Choice, *world: Any, key: str = labels.ZONE) -> Plant:
    """Two pods that want to be where their like are."""
    pods = w.replicas(2, "p", labels=WEB, affinity=w.between("podAffinity", key))
    return plant(name, "affinity", (*world, pods), right, wrong)


def chain(name: str, app: str, wanted: str) -> Any:
    return w.pod(name, labels={"app": app}, affinity=w.between("podAffinity", labels.ZONE, wanted))


ELSEWHERE = old("m", namespace="other")
NEAR = [
    near("company in the zone", put(p="n"), put(p="m"), *ZONES, old("n")),
    near("company on the node", put(p="n"), put(p="x"), *ZONES, w.node("x", "z1"), old("n"), key=labels.HOSTNAME),
    near("company that comes along", put(p="n", web="n"), put(p="m", web="n"), *ZONES, w.pod("web", labels=WEB)),
    near("company in another namespace is none", put(p="n"), put(p="m"), *ZONES, old("n"), ELSEWHERE),
    near("company in a listed namespace", put(p="m"), put(p="n"), *ZONES, old("n"), ELSEWHERE, namespaces=["other"]),
    near(
        "company in namespaces by label",
        put(p="m"),
        put(p="n"),
        *ZONES,
        namespace("other", tier="front"),
        namespace("default", tier="back"),
        old("n"),
        ELSEWHERE,
        namespaceSelector={"matchLabels": {"tier": "front"}},
    ),
    near("company in all namespaces", put(p="m"), put(p="n"), *ZONES, ELSEWHERE, namespaceSelector={}),
    near("a pod on its way out is company", put(p="m"), put(p="n"), *ZONES, going(old("m", "gone"))),
    friends("the first of its kind founds one zone", put(p_0="n", p_1="n"), put(p_0="n", p_1="m"), *ZONES),
    friends("nobody founds a zone beside another", put(p_0="n", p_1="n"), put(p_0="m", p_1="m"), *ZONES, old("n")),
    plant(
        "a zone that is left open",
        "affinity",
        (w.pool(), *ZONES, old("n"), w.pod("p", affinity=w.between("podAffinity", labels.ZONE))),
        put(new("p", zone="z1")),
        put(new("p", zone=("z1", "z2"))),
    ),
    plant(
        "two that wait for each other",
        "affinity",
        (*ZONES, chain("a", "a", "b"), chain("b", "b", "a")),
        put(),
        put(a="n", b="n"),
    ),
]


# --- anti-affinity ----------------------------------------------------------------------------------------------------
def far(key: str = labels.HOSTNAME, **more: Any) -> dict[str, Any]:
    return {"labels": WEB, "affinity": w.between("podAntiAffinity", key, **more)}


FAR = [
    plant("two on a node", "anti-affinity", (*ZONES, w.replicas(2, "p", **far())), EVEN, PILED),
    plant(
        "two in a zone",
        "anti-affinity",
        (*ZONES, w.node("x", "z1"), w.replicas(2, "p", **far(labels.ZONE))),
        EVEN,
        put(p_0="n", p_1="x"),
    ),
    plant("one that runs already", "anti-affinity", (*ZONES, old("n"), w.pod("p", **far())), put(p="m"), put(p="n")),
    plant(
        "one that is on its way out",
        "anti-affinity",
        (*ZONES, going(old("n")), w.pod("p", **far())),
        put(p="m"),
        put(p="n"),
    ),
    plant(
        "one that is on its way out for long, and a planned node",
        "anti-affinity",
        (w.pool(), *ZONES, going(old("n"), hours=1), going(old("m", "soon")), w.pod("p", **far(labels.ZONE))),
        put(new("p", zone="z2")),
        put(new("p", zone="z1")),
    ),
    plant(
        "one that runs already shuns it",
        "anti-affinity",
        (*ZONES, old("n", **far()), w.pod("p", labels=WEB)),
        put(p="m"),
        put(p="n"),
    ),
    plant(
        "one that comes along shuns it",
        "anti-affinity",
        (*ZONES, w.pod("a", **far()), w.pod("b", labels=WEB)),
        put(a="n", b="m"),
        put(a="n", b="n"),
    ),
    plant(
        "in another namespace",
        "anti-affinity",
        (*ZONES, old("n"), ELSEWHERE, w.pod("p", **far(namespaces=["other"]))),
        put(p="n"),
        put(p="m"),
    ),
    plant(
        "planned nodes that may share a zone",
        "anti-affinity",
        (w.pool(), w.replicas(2, "p", **far(labels.ZONE))),
        put(new("p-0", zone="z1"), new("p-1", zone=("z2", "z3"))),
        put(new("p-0", zone=("z1", "z2")), new("p-1", zone=("z2", "z3"))),
    ),
]


# --- spread that nobody asked for ---------------------------------------------------------------------------------
def given(name: str, right: Choice, wrong: Choice, *world: Any, pods: int = 2, **spec: Any) -> Plant:
    """Replicas `p-0` … without a constraint, and default constraints over zones."""
    over_zones = decode(TopologySpreadConstraint, {"maxSkew": 1, "topologyKey": labels.ZONE})
    pods_of = w.replicas(pods, "p", **{"labels": WEB, **spec})
    return Plant(name, "spread", (*world, pods_of), right, wrong, facts={"default_constraints": (over_zones,)})


def workload(kind: type[Any], **spec: Any) -> Any:
    return decode(kind, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})


def owner(kind: str, api_version: str = "apps/v1") -> dict[str, Any]:
    return {"owner": {"apiVersion": api_version, "kind": kind, "name": "web", "uid": "u", "controller": True}}


MATCH_WEB = {"matchLabels": WEB}
GIVEN = [
    given(
        "by default, of a ReplicaSet",
        EVEN,
        PILED,
        *ZONES,
        workload(ReplicaSet, selector=MATCH_WEB),
        **owner("ReplicaSet"),
    ),
    given(
        "by default, of a StatefulSet",
        EVEN,
        PILED,
        *ZONES,
        workload(StatefulSet, selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
        **owner("StatefulSet"),
    ),
    given(
        "by default, of a ReplicationController",
        EVEN,
        PILED,
        *ZONES,
        workload(ReplicationController, selector=WEB),
        **owner("ReplicationController", "v1"),
    ),
    given("by default, of a Service", EVEN, PILED, *ZONES, workload(Service, selector=WEB)),
    given(
        "by default, with those that run already",
        put(p_0="m"),
        put(p_0="n"),
        *ZONES,
        old("n"),
        workload(Service, selector=WEB),
        pods=1,
    ),
    given(
        "by default, only where there is no constraint of its own",
        put(p_0="n", p_1="n", p_2="m"),
        put(p_0="n", p_1="n", p_2="n"),
        *ZONES,
        workload(Service, selector=WEB),
        pods=3,
        topologySpreadConstraints=[w.spread(skew=2)],
    ),
]

PLANTS = [*SPREAD, *NEAR, *FAR, *GIVEN]
