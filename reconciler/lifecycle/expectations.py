"""Pods are told which node was made for them, before that node takes any.

The kube-scheduler binds the pods, and its scores spread them over the nodes that are there: the first of several that
come up would take what was meant for the others, and what was meant for it would find no room any more. A pod with a
`status.nominatedNodeName` is tried on that node first, and pods that are no more important leave it its room there. So
the pods of a claim are nominated to its Node as soon as there is one; for as long as that takes, and a few seconds at
most, the Node keeps its taint. Source: Kubernetes, KEP-1923 (prefer nominated node); scheduler, filtering.

It is an expectation, nothing more: the kube-scheduler drops it when the pod fits nowhere, and it is taken back here
when the node is gone, or on its way out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from api import labels
from api.v1.nodeclaim import NodeClaim
from reconciler.lifecycle.view import View
from reconciler.model import kinds
from reconciler.model.memory import Step, Turn
from reconciler.model.objects import Node, Pod
from reconciler.model.plan import NOTHING, Action, PatchObject, Plan, Reason, joined
from reconciler.model.snapshot import Snapshot
from reconciler.scheduling.claims import pod_mark

#: A Node that has joined waits this long for its pods to be told, if need be.
HELD_FOR = timedelta(seconds=10)
EXPECT, TAKE_BACK = "ExpectPod", "TakeBackExpectation"


def first(turn: Turn, claims: Plan, each: View) -> Plan:
    """The plan for the claims, with the pods told first; as it was when pods are not to be told."""
    snapshot = turn.snapshot
    if not snapshot.settings.nominate_pods:
        return claims
    told, until = list[Action](), dict[str, datetime]()
    joining = turn.all(JOINING, each).spoken
    waiting = _waiting(snapshot) if joining else {}
    for claim_name, node_name in joining.items():
        found = list(_planned(snapshot.node_claims[claim_name], waiting))
        told += [_expected(pod, node_name) for pod in found]
        if found and (end := _held_until(snapshot.nodes[node_name], snapshot.now)) is not None:
            until[node_name] = end
    rest = (action for action in claims.actions if not _joins_one_of(action, until))
    plan = replace(claims, actions=(*told, *rest))
    due = Plan(next_due=min(until.values())) if until else NOTHING
    return joined((plan, due, Plan(actions=tuple(_taken_back(snapshot)))))


def _joins(view: View, name: str) -> tuple[str, None]:
    """The Node of a claim that is not initialised yet, while both stay."""
    claim = view.snapshot.node_claims[name]
    if not claim.managed or claim.metadata.deleting or claim.is_true("Initialized"):
        return "", None
    node = view.node_of(claim)
    return (node.name if node is not None and not node.metadata.deleting else ""), None


def _waiting(snapshot: Snapshot) -> Mapping[str, Pod]:
    """Pending pods by their marks; one that has been told, or makes others go, is not pending."""
    return {pod_mark(pod.metadata.uid): pod for _, pod in sorted(snapshot.pods.pending.items())}


def _planned(claim: NodeClaim, waiting: Mapping[str, Pod]) -> Iterator[Pod]:
    """Those of the pods that a claim was made for that wait, and have not been told."""
    for mark in claim.metadata.annotations.get(labels.PLANNED_PODS, "").split(","):
        if mark in waiting:
            yield waiting[mark]


def _held_until(node: Node, now: datetime) -> datetime | None:
    """How long at most the Node keeps its taint for this; None when it has lost it, or waited long enough."""
    created = node.metadata.creation_timestamp
    if node.registered or created is None or now >= created + HELD_FOR:
        return None
    return created + HELD_FOR


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


JOINING = Step("joining claims", "node_claims", _joins, speaks=bool)
