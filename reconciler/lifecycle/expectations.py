"""Pods are told which node was made for them, before that node takes any.

The kube-scheduler binds the pods, and its scores spread them over the nodes that are there: the first of several that
come up would take what was meant for the others, and what was meant for it would find no room any more. A pod with a
`status.nominatedNodeName` is tried on that node first, and pods that are no more important leave it its room there. So
the pods of a claim are nominated to its Node as soon as there is one; for as long as that takes, and a few seconds at
most, the Node keeps its taint. It keeps it until it is ready and has started, too: a pod that is tried on it before is
nominated no more, and the next one would take its place. Source: Kubernetes, KEP-1923 (prefer nominated node);
scheduler, filtering.

From pods that are more important no room is kept: one that waits for its own node would take the first that comes up,
or make those go that have just come there. And of pods that must be together the first takes what room is left
anywhere, and the others find none beside it. So a Node waits, somewhat longer, while such pods wait for other nodes of
its NodePool that have been launched and are not up yet.

It is an expectation, nothing more: the kube-scheduler drops it when the pod fits nowhere, and it is taken back here
when the node is gone, or on its way out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf

from api import labels
from api.v1.nodeclaim import NodeClaim
from reconciler.lifecycle.view import View
from reconciler.model import kinds
from reconciler.model.memory import Step, Turn
from reconciler.model.objects import Node, Pod
from reconciler.model.plan import NOTHING, Action, PatchObject, Plan, Reason, joined
from reconciler.model.snapshot import Snapshot
from reconciler.scheduling.claims import pod_mark

#: A Node that has joined waits this long for its pods to be told, if need be; and this long until it is up, or for
#: pods that come first.
HELD_FOR, HELD_AT_MOST = timedelta(seconds=10), timedelta(seconds=30)
EXPECT, TAKE_BACK = "ExpectPod", "TakeBackExpectation"


def first(turn: Turn, claims: Plan, each: View) -> Plan:
    """The plan for the claims, with the pods told first; as it was when pods are not to be told."""
    snapshot = turn.snapshot
    if not snapshot.settings.nominate_pods:
        return claims
    coming = turn.all(COMING, each).spoken
    planned = _planned(snapshot, coming) if any(coming.values()) else {}
    ranks = _ranks(snapshot, coming, planned)
    told, until = list[Action](), dict[str, datetime]()
    for claim_name, found in planned.items():
        node = snapshot.nodes.get(coming[claim_name] or "")
        if node is not None and found:
            claim, untold = snapshot.node_claims[claim_name], [p for p in found if p.key in snapshot.pods.pending]
            told += [_expected(pod, node.name) for pod in untold]
            later = _gives_way(claim, found, ranks) or not _is_up(claim, node)
            if (end := _held_until(node, snapshot.now, untold, later)) is not None:
                until[node.name] = end
    rest = (action for action in claims.actions if not _joins_one_of(action, until))
    plan = replace(claims, actions=(*told, *rest))
    due = Plan(next_due=min(until.values())) if until else NOTHING
    return joined((plan, due, Plan(actions=tuple(_taken_back(snapshot)))))


def _comes(view: View, name: str) -> tuple[str | None, None]:
    """The Node of a claim that is launched and not initialised yet, while both stay; empty before it has joined."""
    claim = view.snapshot.node_claims[name]
    if not claim.managed or claim.metadata.deleting or not claim.is_true("Launched") or claim.is_true("Initialized"):
        return None, None
    node = view.node_of(claim)
    if node is None:
        return "", None
    return (None if node.metadata.deleting else node.name), None


def _planned(snapshot: Snapshot, coming: Mapping[str, str | None]) -> Mapping[str, Sequence[Pod]]:
    """Those of the pods that claims were made for that are not bound yet, by the name of the claim.

    A pod that makes others go is not among them, nor one that is expected on another node.
    """
    waiting = {pod_mark(pod.metadata.uid): pod for _, pod in sorted(snapshot.pods.pending.items())}
    found = dict[str, Sequence[Pod]]()
    for name, node_name in coming.items():
        marks = frozenset(snapshot.node_claims[name].metadata.annotations.get(labels.PLANNED_PODS, "").split(","))
        told = sorted(snapshot.pods.nominated.get(node_name or "", {}).items())
        expected = [pod for _, pod in told if pod_mark(pod.metadata.uid) in marks]
        found[name] = [*(waiting[mark] for mark in sorted(marks & waiting.keys())), *expected]
    return found


def _ranks(
    snapshot: Snapshot, coming: Mapping[str, str | None], planned: Mapping[str, Sequence[Pod]]
) -> Mapping[str, Sequence[tuple[float, str]]]:
    """For each NodePool the claims whose pods have no node to go to yet, with the highest rank among these, the highest
    first."""
    found = dict[str, list[tuple[float, str]]]()
    for name, pods in planned.items():
        claim, node = snapshot.node_claims[name], snapshot.nodes.get(coming[name] or "")
        if pods and not (node is not None and _is_up(claim, node)):
            found.setdefault(claim.pool_name, []).append((max(map(_rank, pods)), name))
    return {pool: sorted(rows, reverse=True) for pool, rows in found.items()}


def _rank(pod: Pod) -> float:
    """Its priority; above all others are pods that must be beside others."""
    affinity = pod.spec.affinity
    bound = affinity is not None and affinity.pod_affinity is not None and affinity.pod_affinity.required
    return inf if bound else pod.spec.priority


def _is_up(claim: NodeClaim, node: Node) -> bool:
    """Whether nothing but what we hold it by keeps its pods from the Node."""
    return node.ready and all(
        taint.key == labels.UNREGISTERED_TAINT or any(taint.matches(own) for own in claim.spec.taints)
        for taint in node.spec.taints
    )


def _gives_way(claim: NodeClaim, found: Sequence[Pod], ranks: Mapping[str, Sequence[tuple[float, str]]]) -> bool:
    """Whether pods that come before one of those that are planned here have no node to go to yet."""
    least = min(pod.spec.priority for pod in found)
    return any(rank > least for rank, other in ranks.get(claim.pool_name, ())[:2] if other != claim.name)


def _held_until(node: Node, now: datetime, untold: Sequence[Pod], later: bool) -> datetime | None:
    """How long at most the Node keeps its taint for this; None when it has lost it, or waited long enough."""
    created = node.metadata.creation_timestamp
    if node.registered or created is None or not (untold or later):
        return None
    end = created + (HELD_AT_MOST if later else HELD_FOR)
    return end if now < end else None


def _joins_one_of(action: Action, names: Mapping[str, datetime]) -> bool:
    return isinstance(action, PatchObject) and action.ref.kind == kinds.NODE.name and action.ref.name in names


def _taken_back(snapshot: Snapshot) -> Iterator[Action]:
    """A pod that is expected on a node that is not there, or goes, would wait there for ever."""
    for name, found in sorted(snapshot.pods.nominated.items()):
        node = snapshot.nodes.get(name)
        if node is None or node.metadata.deleting:
            yield from (_told(pod, None, TAKE_BACK, f"node {name} is gone") for _, pod in sorted(found.items()))


def _expected(pod: Pod, node_name: str) -> PatchObject:
    return _told(pod, node_name, EXPECT, f"node {node_name} was made for it")


def _told(pod: Pod, node_name: str | None, verb: str, why: str) -> PatchObject:
    return PatchObject(
        reason=Reason("Expected", why),
        verb=verb,
        ref=kinds.ref(pod),
        patch={"status": {"nominatedNodeName": node_name}},
        subresource="status",
        resource_version=pod.metadata.resource_version,
    )


COMING = Step("claims whose nodes are coming", "node_claims", _comes, speaks=lambda node: node is not None)
