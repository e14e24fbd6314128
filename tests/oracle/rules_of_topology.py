"""Rules over several nodes that are easily misread: spreads, affinity and anti-affinity."""

from __future__ import annotations

from typing import Any

from tests.oracle.known import FITS, IN_A, IN_B, TERMINATING, known
from tests.oracle.objects import (
    HOST,
    RACK,
    ZONE,
    Json,
    affinity,
    anti_affinity,
    in_zones,
    node,
    node_affinity,
    pod,
    spread,
    term,
)

WEB, A, B = {"app": "web"}, {"app": "a"}, {"app": "b"}
TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}


def spreading(*constraints: Json, **spec: Any) -> Json:
    """The pod `web` with spread constraints; it matches their selectors."""
    return pod("web", labels=WEB, topologySpreadConstraints=list(constraints or [spread(ZONE, "web")]), **spec)


def counted(name: str, on: str, **more: Any) -> Json:
    """A bound pod that the spread constraints count."""
    return pod(name, on=on, labels=WEB, **more)


SPREADS = {
    "a full node counts": known(
        [*in_zones("a"), node("n2", labels=IN_B, allocatable={"pods": "0"})],
        [counted("one", "n1"), spreading()],
        {"n1": "PodTopologySpread", "n2": "NodeResourcesFit"},
    ),
    "a cordoned node counts": known(
        [*in_zones("a"), node("n2", labels=IN_B, unschedulable=True)],
        [counted("one", "n1"), spreading()],
        {"n1": "PodTopologySpread", "n2": "NodeUnschedulable"},
    ),
    "a tainted node counts, as taints are ignored by default": known(
        [*in_zones("a"), node("n2", labels=IN_B, taints=[TAINT])],
        [counted("one", "n1"), spreading()],
        {"n1": "PodTopologySpread", "n2": "TaintToleration"},
    ),
    "a tainted node does not count under nodeTaintsPolicy Honor": known(
        [*in_zones("a"), node("n2", labels=IN_B, taints=[TAINT])],
        [counted("one", "n1"), spreading(spread(ZONE, "web", nodeTaintsPolicy="Honor"))],
        {"n1": FITS, "n2": "TaintToleration"},
    ),
    "a cordoned node without its taint counts even under nodeTaintsPolicy Honor": known(
        [*in_zones("a"), node("n2", labels=IN_B, unschedulable=True)],
        [counted("one", "n1"), spreading(spread(ZONE, "web", nodeTaintsPolicy="Honor"))],
        {"n1": "PodTopologySpread", "n2": "NodeUnschedulable"},
    ),
    "a node that the selector leaves out does not count": known(
        [node("n1", labels={**IN_A, "team": "x"}), node("n2", labels=IN_B)],
        [counted("one", "n1"), spreading(nodeSelector={"team": "x"})],
        {"n1": FITS, "n2": "NodeAffinity"},
    ),
    "a node that the selector leaves out counts under nodeAffinityPolicy Ignore": known(
        [node("n1", labels={**IN_A, "team": "x"}), node("n2", labels=IN_B)],
        [counted("one", "n1"), spreading(spread(ZONE, "web", nodeAffinityPolicy="Ignore"), nodeSelector={"team": "x"})],
        {"n1": "PodTopologySpread", "n2": "NodeAffinity"},
    ),
    "pods on nodes that do not count are not counted, although their zone is": known(
        [node("n1", labels={**IN_A, "team": "x"}), node("n2", labels=IN_A), node("n3", labels={**IN_B, "team": "x"})],
        [counted("one", "n2"), counted("two", "n2"), spreading(nodeSelector={"team": "x"})],
        {"n1": FITS, "n2": "NodeAffinity", "n3": FITS},
    ),
    "fewer domains than minDomains: the minimum is zero": known(
        in_zones("a", "b"),
        [counted("one", "n1"), counted("two", "n2"), spreading(spread(ZONE, "web", minDomains=3))],
        {"n1": "PodTopologySpread", "n2": "PodTopologySpread"},
    ),
    "a pod that its own selector does not match adds nothing": known(
        in_zones("a", "b"),
        [
            pod("one", on="n1", labels=A),
            pod("web", labels=WEB, topologySpreadConstraints=[spread(ZONE, "a")]),
        ],
        {"n1": FITS, "n2": FITS},
    ),
    "an empty selector counts no pod": known(
        in_zones("a", "b"),
        [counted("one", "n1"), counted("two", "n1"), spreading(spread(ZONE, "web", labelSelector={}))],
        {"n1": FITS, "n2": FITS},
    ),
    "no selector counts no pod": known(
        in_zones("a", "b"),
        [counted("one", "n1"), counted("two", "n1"), spreading(spread(ZONE, "web", labelSelector=None))],
        {"n1": FITS, "n2": FITS},
    ),
    "pods of other namespaces are not counted": known(
        in_zones("a", "b"),
        [counted("one", "n1", meta={"namespace": "other"}), spreading()],
        {"n1": FITS, "n2": FITS},
    ),
    "matchLabelKeys counts the pods of the same revision alone": known(
        in_zones("a", "b"),
        [
            pod("one", on="n1", labels={**WEB, "revision": "1"}),
            pod(
                "web",
                labels={**WEB, "revision": "2"},
                topologySpreadConstraints=[spread(ZONE, "web", matchLabelKeys=["revision"])],
            ),
        ],
        {"n1": FITS, "n2": FITS},
    ),
    "a pod of a DaemonSet counts": known(
        in_zones("a", "b"),
        [
            counted(
                "agent",
                "n1",
                meta={
                    "ownerReferences": [
                        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "d", "controller": True}
                    ]
                },
            ),
            spreading(),
        ],
        {"n1": "PodTopologySpread", "n2": FITS},
    ),
    "a constraint that only prefers neither refuses nor hides nodes": known(
        [*in_zones("a", "b"), node("n3", labels={ZONE: "c"})],
        [
            counted("one", "n1"),
            spreading(spread(ZONE, "web"), spread(RACK, "web", whenUnsatisfiable="ScheduleAnyway")),
        ],
        {"n1": "PodTopologySpread", "n2": FITS, "n3": FITS},
    ),
}

AFFINITIES = {
    "terms over two keys: one pod in the same zone and on the same node": known(
        [node("n1", labels=IN_A), node("n2", labels=IN_A)],
        [
            pod("one", on="n1", labels={"app": "a", "tier": "b"}),
            pod(
                "web",
                affinity=affinity(
                    term(ZONE, "a"), {"topologyKey": HOST, "labelSelector": {"matchLabels": {"tier": "b"}}}
                ),
            ),
        ],
        {"n1": FITS, "n2": "InterPodAffinity"},
    ),
    "two terms over one key: pods in two places, each matches both": known(
        in_zones("a", "b"),
        [
            pod("one", on="n1", labels=A),
            pod("web", affinity=affinity(term(ZONE, "a"), {"topologyKey": ZONE, "labelSelector": {}})),
        ],
        {"n1": FITS, "n2": "InterPodAffinity"},
    ),
    "the first of its kind may come where a match is on a node without the key": known(
        [node("n1", labels=IN_A), node("n2")],
        [pod("one", on="n2", labels=WEB), pod("web", labels=WEB, affinity=affinity(term(ZONE, "web")))],
        {"n1": FITS, "n2": "InterPodAffinity"},
    ),
    "not the first of its kind once one is anywhere with the key": known(
        in_zones("a", "b"),
        [pod("one", on="n2", labels=WEB), pod("web", labels=WEB, affinity=affinity(term(ZONE, "web")))],
        {"n1": "InterPodAffinity", "n2": FITS},
    ),
    "a terminating pod serves affinity": known(
        in_zones("a", "b"),
        [pod("one", on="n1", labels=A, meta=TERMINATING), pod("web", affinity=affinity(term(ZONE, "a")))],
        {"n1": FITS, "n2": "InterPodAffinity"},
    ),
    "a pod of another namespace does not serve affinity": known(
        in_zones("a"),
        [pod("one", on="n1", labels=A, meta={"namespace": "other"}), pod("web", affinity=affinity(term(ZONE, "a")))],
        {"n1": "InterPodAffinity"},
    ),
    "a namespace selector reaches pods of other namespaces": known(
        in_zones("a"),
        [
            pod("one", on="n1", labels=A, meta={"namespace": "other"}),
            pod("web", affinity=affinity(term(ZONE, "a", namespaceSelector={"matchLabels": {"team": "x"}}))),
        ],
        {"n1": FITS},
        namespaces=[{"metadata": {"name": "other", "labels": {"team": "x"}}}],
    ),
    "an empty namespace selector reaches all namespaces": known(
        in_zones("a"),
        [
            pod("one", on="n1", labels=A, meta={"namespace": "other"}),
            pod("web", affinity=affinity(term(ZONE, "a", namespaceSelector={}))),
        ],
        {"n1": FITS},
    ),
    "anti-affinity: each term alone": known(
        in_zones("a", "b"),
        [
            pod("one", on="n1", labels=A),
            pod("two", on="n2", labels=B),
            pod("web", affinity=anti_affinity(term(ZONE, "a"), term(ZONE, "b"))),
        ],
        {"n1": "InterPodAffinity", "n2": "InterPodAffinity"},
    ),
    "anti-affinity: a node without the key takes the pod": known(
        [node("n1"), node("n2", labels=IN_A)],
        [pod("one", on="n1", labels=A), pod("web", affinity=anti_affinity(term(ZONE, "a")))],
        {"n1": FITS, "n2": FITS},
    ),
    "anti-affinity to a DaemonSet's pods on every node": known(
        in_zones("a", "b"),
        [
            pod("agent-1", on="n1", labels=A),
            pod("agent-2", on="n2", labels=A),
            pod("web", affinity=anti_affinity(term(HOST, "a"))),
        ],
        {"n1": "InterPodAffinity", "n2": "InterPodAffinity"},
    ),
    "anti-affinity of a terminating pod refuses": known(
        in_zones("a"),
        [
            pod("one", on="n1", affinity=anti_affinity(term(HOST, "web")), meta=TERMINATING),
            pod("web", labels=WEB),
        ],
        {"n1": "InterPodAffinity"},
    ),
    "node affinity: an empty term beside another matches nothing by itself": known(
        [node("n1", labels={"team": "x"}), node("n2")],
        [
            pod(
                "web",
                affinity=node_affinity({}, {"matchExpressions": [{"key": "team", "operator": "Exists"}]}),
            )
        ],
        {"n1": FITS, "n2": "NodeAffinity"},
    ),
}
