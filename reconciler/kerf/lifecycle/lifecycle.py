"""The life of what exists, in one plan: classes and pools, then launches, then each claim and Node, then garbage.

Every object is looked at by itself: one that cannot be understood is refused, and the others continue.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from kerf.lifecycle import node_overlays
from kerf.lifecycle.garbage import garbage
from kerf.lifecycle.nodeclaim import expectations, launch, mismatches, pool_limits
from kerf.lifecycle.nodeclaim.consistency import check
from kerf.lifecycle.nodeclaim.demotion import demote
from kerf.lifecycle.nodeclaim.initialization import initialize
from kerf.lifecycle.nodeclaim.liveness import give_up
from kerf.lifecycle.nodeclaim.pod_events import note_pod_events
from kerf.lifecycle.nodeclaim.progress import begin, finish
from kerf.lifecycle.nodeclaim.registration import hydrate, register
from kerf.lifecycle.nodeclaim.tagging import tag
from kerf.lifecycle.nodeclass import node_classes, unused
from kerf.lifecycle.nodepool import node_pools
from kerf.lifecycle.termination import deletion_guard, termination
from kerf.lifecycle.view import View
from kerf.model.boundaries import guarded
from kerf.model.memory import Memory, Step, Turn, planning
from kerf.model.noting import Room
from kerf.model.plan import NOTHING, Plan, joined
from kerf.model.snapshot import Snapshot
from kerf.model.writes import unreadable
from kerf_api.v1.nodeclaim import NodeClaim

LIFECYCLE: Final = Room(
    "lifecycle",
    unread=(
        "accounts",
        "batch",
        "candidates_left_over",
        "examined_at",
        "had_turn",
        "impairments",
        "interruptions",
        "kept",
        "left_over",
        "proposals",
    ),
)
_STEPS = (hydrate, register, demote, initialize, check, note_pod_events, tag, deletion_guard.note_leave)


def lifecycle(snapshot: Snapshot, turn: Turn | None = None) -> Plan:
    """Everything that the present state of classes, pools, claims and nodes asks for."""
    turn = turn or Memory().turn(snapshot)
    whole, each = View(turn.snapshot), View(turn.noted)
    return joined(
        (
            guarded("launches", lambda: joined(_launches(turn, whole, each))),
            _claims(turn, each),
            guarded("deletions", lambda: joined(_deletions(turn, whole, each))),
            *(turn.all(step, each).plan for step in (NODES, CLASSES, OVERLAYS)),
            guarded("NodePools", lambda: joined(_pools(turn, whole, each))),
            guarded("garbage", partial(garbage.collect, turn)),
            guarded("unused", partial(unused.collect, turn)),
        )
    )


# --- claims -----------------------------------------------------------------------------------------------------
def _launches(turn: Turn, whole: View, each: View) -> Iterator[Plan]:
    """First of all, for pods wait for them."""
    waiting = [whole.snapshot.node_claims[name] for name in turn.all(WAITING, each).spoken]
    return launch.launch(whole, waiting, lambda: _used(turn, each))


def _used(turn: Turn, each: View) -> pool_limits.Used:
    return pool_limits.Used(turn.all(node_pools.MEMBERS, each).sums, turn.all(pool_limits.APART, each).sums)


def _claims(turn: Turn, each: View) -> Plan:
    """Every claim by itself; a failure over the nodes to come takes no claim's plan with it."""
    plan = turn.all(CLAIMS, each).plan
    return guarded("expectations", partial(expectations.first, turn, plan, each), otherwise=plan)


def _waits(view: View, name: str) -> tuple[bool, None]:
    """Whether a claim is still to be launched."""
    claim = view.snapshot.node_claims[name]
    return claim.managed and not claim.metadata.deleting and not claim.is_true("Launched"), None


def _claim(view: View, name: str) -> Plan:
    """A claim that has launched, or is on its way out."""
    claim = view.snapshot.node_claims[name]
    if not claim.managed:
        return NOTHING
    if claim.metadata.unreadable:
        return unreadable(claim)
    if claim.metadata.deleting:
        held = deletion_guard.deleted(view, claim) is not None
        return NOTHING if held else termination.end_claim(view, claim)
    return _live(view, claim) if claim.is_true("Launched") else NOTHING


def _deletions(turn: Turn, whole: View, each: View) -> Iterator[Plan]:
    """The claims that another client has deleted: of many at once some wait."""
    asked = turn.all(deletion_guard.STANDINGS, each)
    found = [standing.deleted for standing in asked.spoken.values() if standing.deleted is not None]
    verdict = deletion_guard.judge(whole, found, asked.sums.get(deletion_guard.NODES, 0))
    yield verdict.plan
    for name in asked.spoken:
        if name not in verdict.held:
            yield turn.one(DELETED, each, name)


def _deleted(view: View, name: str) -> Plan:
    return termination.end_claim(view, view.snapshot.node_claims[name])


def _live(view: View, claim: NodeClaim) -> Plan:
    """A launched claim's way to Initialized, and what keeps it up to date afterwards."""
    node = view.node_of(claim)
    progress = begin(view, claim, node).condition("Launched", "True")
    for step in _STEPS:
        progress = step(progress)
    return finish(progress.also(give_up(progress)), claim, node)


# --- nodes, classes, pools --------------------------------------------------------------------------------------
def _node(view: View, name: str) -> Plan:
    node = view.snapshot.nodes[name]
    return termination.end_node(view, node) if node.metadata.deleting else NOTHING


def _class(view: View, name: str) -> Plan:
    return node_classes.reconcile(view, view.snapshot.node_classes[name])


def _overlay(view: View, name: str) -> Plan:
    return node_overlays.reconcile(view, view.snapshot.node_overlays[name])


def _pools(turn: Turn, whole: View, each: View) -> Iterator[Plan]:
    pools = whole.snapshot.node_pools
    held = node_pools.held(turn.all(node_pools.MEMBERS, each), pools)
    found = mismatches.find(turn)
    yield Plan(next_due=found.due)
    yield mismatches.in_vain(found)
    for name in sorted(pools):
        own_hash = partial(turn.one, node_pools.HASHES, each, name)
        validation = partial(turn.one, node_pools.VALIDATIONS, each, name)
        step = partial(node_pools.reconcile, whole, pools[name], held[name], own_hash, validation, found)
        yield guarded(f"nodepool/{name}", step)


WAITING = Step("waiting claims", "node_claims", _waits, speaks=bool)
CLAIMS = planning("claims", "node_claims", "nodeclaim", _claim)
DELETED = planning("deleted claims", "node_claims", "nodeclaim", _deleted)
NODES = planning("nodes", "nodes", "node", _node)
CLASSES = planning("node classes", "node_classes", "ec2nodeclass", _class)
OVERLAYS = planning("node overlays", "node_overlays", "nodeoverlay", _overlay)
