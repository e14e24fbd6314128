"""What has lost its other half: instances without a claim, and claims whose instance is gone.

Both are judged by complete and recent lists only, and few are collected at a time, so that a wrong list cannot empty a
cluster between two looks. A list without a single claim proves nothing against nodes that are up and ready.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from api import labels
from api.v1.nodeclaim import NodeClaim
from reconciler.lifecycle.view import View, assigned_instance, managed
from reconciler.lifecycle.writes import NOTHING, act, deletion, joined, stale
from reconciler.model.cloud import Instance
from reconciler.model.plan import Plan, Reason, Refusal, Source, TerminateInstance

_SOURCES = (Source.INSTANCES, Source.NODE_CLAIMS)
#: At most this many at a time, or this share (one in …) of the fleet when that is more.
_FEW, _ONE_IN = 5, 20
#: How soon to look whether some of those that were collected have gone.
_PAUSE = timedelta(seconds=5)


def collect(view: View) -> Plan:
    """Orphaned instances with their nodes, then claims without an instance; when the next orphan is old enough."""
    orphans, lost = list(_orphans(view)), list(_lost_claims(view))
    live = [orphan for orphan in orphans if orphan.live]
    if not live and not lost:
        return NOTHING
    refusal = stale(view.snapshot, "garbage", _SOURCES) or _doubt(view, live)
    if refusal is not None:
        return refusal
    young = [o.launched for o in live if not _old(view, o)]
    due = min(young) + view.snapshot.settings.adoption_time if young else None
    ends = [_end(view, orphan) for orphan in live if _old(view, orphan)] + [_forget(claim) for claim in lost]
    going = len(orphans) - len(live)
    limit = max(0, max(_FEW, len(view.snapshot.instances) // _ONE_IN) - going)
    rest = Plan(next_due=view.snapshot.now + _PAUSE) if len(ends) > limit else NOTHING
    return joined((*ends[:limit], Plan(next_due=due) if due is not None else NOTHING, rest))


def _doubt(view: View, orphans: list[Instance]) -> Plan | None:
    """A refusal when there is no claim at all and yet one of the orphans has a Node that is ready."""
    ready = sorted(node.name for o in orphans for node in view.nodes.get(o.provider_id, ()) if node.ready)
    if view.snapshot.node_claims or not ready:
        return None
    text = f"there is no NodeClaim at all, but {len(ready)} nodes are ready, such as {ready[0]}"
    due = view.snapshot.now + view.snapshot.settings.disruption_period
    return Plan(refusals=(Refusal("garbage", Reason("NoNodeClaims", text)),), next_due=due)


# --- instances --------------------------------------------------------------------------------------------------
def _orphans(view: View) -> Iterator[Instance]:
    """Instances that no claim has and none waits for, by ID; those that are on their way out too."""
    claims = view.snapshot.node_claims.values()
    taken = {assigned_instance(claim) for claim in claims}
    awaited = {c.metadata.annotations.get(labels.LAUNCH_GROUP) for c in claims if not assigned_instance(c)}
    for _, instance in sorted(view.snapshot.instances.items()):
        if instance.id not in taken and instance.tags.get(labels.LAUNCH_GROUP, "") not in awaited:
            yield instance


def _old(view: View, instance: Instance) -> bool:
    return view.snapshot.now - instance.launched >= view.snapshot.settings.adoption_time


def _end(view: View, instance: Instance) -> Plan:
    reason = Reason("GarbageCollected", f"instance {instance.id} has no node claim")
    end = TerminateInstance(reason=reason, sources=frozenset(_SOURCES), instance_id=instance.id)
    nodes = (n for n in view.nodes.get(instance.provider_id, ()) if not n.metadata.deleting)
    return act(end, *(deletion(node, reason, *_SOURCES) for node in nodes))


# --- claims -----------------------------------------------------------------------------------------------------
def _lost_claims(view: View) -> Iterator[NodeClaim]:
    """Registered claims whose instance EC2's last complete list lacks, and whose Node is not ready either."""
    for _, claim in sorted(view.snapshot.node_claims.items()):
        if not managed(claim) or claim.metadata.deleting or not claim.is_true("Registered"):
            continue
        if view.instance(claim.status.provider_id) is None and not any(n.ready for n in view.nodes_of(claim)):
            since = claim.condition("Registered")
            if since is not None and view.listed_after(since.last_transition_time):
                yield claim


def _forget(claim: NodeClaim) -> Plan:
    reason = Reason("GarbageCollected", f"instance {claim.instance_id} is gone")
    return act(deletion(claim, reason, *_SOURCES))
