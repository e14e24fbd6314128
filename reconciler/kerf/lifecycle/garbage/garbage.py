"""What has lost its other half: instances without a claim, and claims whose instance is gone.

Both are judged by complete and recent lists only. A list without a single claim proves nothing against nodes that are
up and ready, and many at once prove nothing at all: the guard (`garbage_guard`) says what may be ended. A claim that
has neither an instance nor a Node needs no guard: nothing runs that its end could stop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kerf.lifecycle import shifted_zones
from kerf.lifecycle.garbage import garbage_guard
from kerf.lifecycle.garbage.garbage_guard import SOURCES, Suspect
from kerf.lifecycle.nodeclaim.consistency import CONSISTENT, NODE_NOT_FOUND
from kerf.lifecycle.nodeclaim.outcomes import shown_from
from kerf.lifecycle.nodeclaim.ownership import holds, named_by, strayed
from kerf.lifecycle.nodeclaim.unmarked import may_get_instance
from kerf.lifecycle.view import View
from kerf.model.aws.cloud import Instance
from kerf.model.claims import since
from kerf.model.kubernetes import pods
from kerf.model.memory import Step, Turn, planning
from kerf.model.plan import Plan, Reason, Source, TerminateInstance, joined
from kerf.model.writes import act, deletion, stale
from kerf_api import labels
from kerf_api.texts import counted
from kerf_api.v1.nodeclaim import NodeClaim

#: How long a Node that had joined may be away.
_AWAY = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class _Orphan:
    """An instance without a claim. It is `listed` when claims were listed completely after one should have had it: an
    older list may not show that claim."""

    instance: Instance
    listed: bool


def collect(turn: Turn) -> Plan:
    """Orphaned instances with their nodes and claims without an instance, as far as they may be ended."""
    view, each = View(turn.snapshot), View(turn.noted)
    orphans, lost = list(turn.all(_ORPHANS, each).spoken.values()), list(turn.all(_LOST, each).spoken.values())
    reports = turn.all(_STRAYED, each).plan
    refusal = stale(view.snapshot, "garbage", SOURCES)
    if refusal is not None:
        return joined((refusal if orphans or lost else Plan(), reports))
    instances = [one.instance for one in orphans]
    empty, others = ([claim for claim in lost if _is_empty(view, claim) is kind] for kind in (True, False))
    suspects = [*(_orphan(view, instance) for instance in instances), *(_lost(view, claim) for claim in others)]
    verdict = garbage_guard.judge(view, suspects, _doubt(view, instances))
    ends = [_end(view, one.instance) for one in orphans if one.listed and one.instance.id in verdict.released]
    gone = (*empty, *(claim for claim in others if _id(claim) in verdict.released))
    return joined((reports, *ends, *(_forget(view, claim) for claim in gone), verdict.plan))


def _orphan(view: View, instance: Instance) -> Suspect:
    due, tags = _adopted_by(view, instance), instance.tags
    return Suspect(instance.id, tags.get(labels.TAG_NODEPOOL, ""), tags.get(labels.TAG_NODECLASS, ""), due)


def _adopted_by(view: View, instance: Instance) -> datetime:
    """When the claim that it was launched for has it, if there is one."""
    return instance.launched + view.snapshot.settings.adoption_time


def _lost(view: View, claim: NodeClaim) -> Suspect:
    return Suspect(_id(claim), claim.pool_name, claim.spec.node_class_ref.name, view.snapshot.now)


def _is_empty(view: View, claim: NodeClaim) -> bool:
    """Whether the claim has neither an instance nor a Node: EC2 has taken the instance, say, and the cloud controller
    manager has deleted the Node."""
    return view.instance(claim.status.provider_id) is None and not view.nodes_of(claim)


def _id(claim: NodeClaim) -> str:
    return claim.instance_id or claim.name


def _doubt(view: View, orphans: list[Instance]) -> str:
    """Words when there is no claim at all and yet one of the orphans has a Node that is ready; or when the claim that
    stands for one may be a claim that cannot be read."""
    claims = view.snapshot.node_claims
    torn = min((name for name, claim in claims.items() if _illegible(claim)), default="") if orphans else ""
    if torn:
        return f"nodeclaim/{torn} cannot be read: {claims[torn].metadata.unreadable}"
    ready = sorted(node.name for o in orphans for node in view.nodes.get(o.provider_id, ()) if node.ready)
    if claims or not ready:
        return ""
    nodes = f"{counted(len(ready), 'node')} {'is' if len(ready) == 1 else 'are'} ready"
    return f"there is no NodeClaim at all, and yet {nodes}, such as {ready[0]}"


def _illegible(claim: NodeClaim) -> bool:
    """Whether its instance may be what cannot be read."""
    unread = claim.metadata.unreadable
    return bool(unread) and ("$.status" in unread or "$.metadata" in unread) and not claim.assigned_instance


# --- instances --------------------------------------------------------------------------------------------------
def _orphaned(view: View, id_: str) -> tuple[_Orphan | None, datetime | None]:
    """A live instance that no claim has and none waits for, where instances may be ended."""
    instance, snapshot = view.snapshot.instances[id_], view.snapshot
    if not instance.live or named_by(view, instance) is not None:
        return None, None
    if any(holds(claim) for claim in snapshot.claims_by_instance.get(id_, ())):
        return None, None
    if (held := shifted_zones.held(view, f"instance/{id_}", instance)) is not None:
        return None, held.next_due
    waiting = snapshot.claims_by_group.get(instance.tags.get(labels.LAUNCH_GROUP, ""), ())
    if any(may_get_instance(view, claim) for claim in waiting):
        return None, None
    listed = snapshot.fresh_at.get(Source.NODE_CLAIMS)
    return _Orphan(instance, listed is not None and listed >= _adopted_by(view, instance)), None


def _end(view: View, instance: Instance) -> Plan:
    reason = Reason("GarbageCollected", f"instance {instance.id} has no node claim")
    end = TerminateInstance(reason=reason, sources=frozenset(SOURCES), instance_id=instance.id)
    nodes = (n for n in view.nodes.get(instance.provider_id, ()) if not n.metadata.deleting)
    return act(end, *(deletion(node, reason, *SOURCES) for node in nodes))


# --- claims -----------------------------------------------------------------------------------------------------
def _bereft(view: View, name: str) -> tuple[NodeClaim | None, datetime | None]:
    """A registered claim whose instance EC2's last complete list lacks, and whose Node is not ready either; or one
    whose Node was deleted under our finalizer and stays away: no kubelet registers again, but the bill continues."""
    claim = view.snapshot.node_claims[name]
    if not claim.managed or claim.metadata.deleting or not claim.is_true("Registered"):
        return None, None
    if claim.metadata.unreadable:  # its instance and its Node may be what cannot be read
        return None, None
    lost, due = _lost_now(view, claim)
    held = shifted_zones.claim_held(view, claim, view.instance(claim.status.provider_id)) if lost else None
    return (claim if lost else None, due) if held is None else (None, held.next_due)


def _lost_now(view: View, claim: NodeClaim) -> tuple[bool, datetime | None]:
    """Whether a registered claim has lost its other half, and when it may have."""
    nodes = view.nodes_of(claim)
    if view.instance(claim.status.provider_id) is None and not any(node.ready for node in nodes):
        registered = since(claim, "Registered", view.now)
        return view.listed_after(shown_from(claim, registered, view.now)), None
    away = _given_up(view, claim) if not nodes else None
    return (True, None) if away is not None and away <= view.snapshot.now else (False, away)


def _given_up(view: View, claim: NodeClaim) -> datetime | None:
    """When a claim whose Node is gone has waited for it long enough."""
    known = claim.condition(CONSISTENT)
    gone = known is not None and known.reason == NODE_NOT_FOUND
    at = since(claim, CONSISTENT, view.now)
    return at + _AWAY if gone and at is not None else None


def _forget(view: View, claim: NodeClaim) -> Plan:
    if view.instance(claim.status.provider_id) is None:
        reason = Reason("GarbageCollected", f"instance {claim.instance_id} is gone")
    else:
        reason = Reason("NodeLost", f"node {claim.status.node_name} was deleted and was not created again")
    state = view.snapshot.state_nodes[claim.name]
    on_node = view.snapshot.pods.on(state.node.name) if state.node is not None else ()
    return act(replace(deletion(claim, reason, *SOURCES, Source.NODES), moved=pods.moving(on_node)))


def _strayed(view: View, id_: str) -> Plan:
    """The report of an instance whose claim names another one."""
    instance = view.snapshot.instances[id_]
    claim = named_by(view, instance) if instance.live and id_ not in view.snapshot.claims_by_instance else None
    return strayed(claim, instance) if claim is not None else Plan()


_STRAYED = planning("strayed instances", "instances", "instance", _strayed)
_ORPHANS: Step[View, _Orphan] = Step("orphans", "instances", _orphaned, speaks=bool)  # type: ignore[arg-type]
_LOST: Step[View, NodeClaim] = Step("lost claims", "node_claims", _bereft, speaks=bool)  # type: ignore[arg-type]
