"""What has lost its other half: instances without a claim, and claims whose instance is gone.

Both are judged by complete and recent lists only. A list without a single claim proves nothing against nodes that are
up and ready, and many at once prove nothing at all: the guard (`garbage_guard`) says what may be ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from api import labels
from api.v1.nodeclaim import NodeClaim
from reconciler.lifecycle import garbage_guard
from reconciler.lifecycle.garbage_guard import SOURCES, Suspect
from reconciler.lifecycle.view import View, assigned_instance, managed
from reconciler.lifecycle.writes import act, deletion, joined, stale
from reconciler.model.cloud import Instance
from reconciler.model.plan import Plan, Reason, TerminateInstance


def collect(view: View) -> Plan:
    """Orphaned instances with their nodes and claims without an instance, as far as they may be ended."""
    orphans, lost = list(_orphans(view)), list(_lost_claims(view))
    refusal = stale(view.snapshot, "garbage", SOURCES)
    if refusal is not None:
        return refusal if orphans or lost else Plan()
    suspects = [*(_orphan(view, instance) for instance in orphans), *(_lost(view, claim) for claim in lost)]
    verdict = garbage_guard.judge(view, suspects, _doubt(view, orphans))
    released = {s.id for s in suspects if s.id in verdict.released and s.due <= view.snapshot.now}
    ends = [_end(view, instance) for instance in orphans if instance.id in released]
    return joined((*ends, *(_forget(claim) for claim in lost if _id(claim) in released), verdict.plan))


def _orphan(view: View, instance: Instance) -> Suspect:
    due = instance.launched + view.snapshot.settings.adoption_time
    tags = instance.tags
    return Suspect(instance.id, tags.get(labels.TAG_NODEPOOL, ""), tags.get(labels.TAG_NODECLASS, ""), due)


def _lost(view: View, claim: NodeClaim) -> Suspect:
    return Suspect(_id(claim), claim.pool_name, claim.spec.node_class_ref.name, view.snapshot.now)


def _id(claim: NodeClaim) -> str:
    return claim.instance_id or claim.name


def _doubt(view: View, orphans: list[Instance]) -> str:
    """Words when there is no claim at all and yet one of the orphans has a Node that is ready; or when the claim that
    stands for one may be a claim that cannot be read."""
    for name, claim in sorted(view.snapshot.node_claims.items()):
        unread = claim.metadata.unreadable
        if ("$.status" in unread or "$.metadata" in unread) and not assigned_instance(claim):
            return f"nodeclaim/{name} cannot be read: {unread}"
    ready = sorted(node.name for o in orphans for node in view.nodes.get(o.provider_id, ()) if node.ready)
    if view.snapshot.node_claims or not ready:
        return ""
    return f"there is no NodeClaim at all, and yet {len(ready)} nodes are ready, such as {ready[0]}"


# --- instances --------------------------------------------------------------------------------------------------
def _orphans(view: View) -> Iterator[Instance]:
    """Live instances that no claim has and none waits for, by ID."""
    claims = view.snapshot.node_claims.values()
    taken = {assigned_instance(claim) for claim in claims}
    awaited = {c.metadata.annotations.get(labels.LAUNCH_GROUP) for c in claims if not assigned_instance(c)}
    for _, instance in sorted(view.snapshot.instances.items()):
        if instance.live and instance.id not in taken and instance.tags.get(labels.LAUNCH_GROUP, "") not in awaited:
            yield instance


def _end(view: View, instance: Instance) -> Plan:
    reason = Reason("GarbageCollected", f"instance {instance.id} has no node claim")
    end = TerminateInstance(reason=reason, sources=frozenset(SOURCES), instance_id=instance.id)
    nodes = (n for n in view.nodes.get(instance.provider_id, ()) if not n.metadata.deleting)
    return act(end, *(deletion(node, reason, *SOURCES) for node in nodes))


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
    return act(deletion(claim, reason, *SOURCES))
