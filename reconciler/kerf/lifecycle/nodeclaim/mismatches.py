"""The records of nodes that came up other than planned: a verdict on a node becomes a record of its NodePool.

A pod of the shape that runs on such a node, or on a newer one, clears the record. The NodePool's condition
`NodeMismatch` is True while there is a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from kerf.lifecycle.nodeclaim.expectations import taken_back
from kerf.lifecycle.view import View
from kerf.model import mismatches
from kerf.model.claims import true_since
from kerf.model.gauges import Labels, PlanGauge
from kerf.model.instants import earliest
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node
from kerf.model.memory import Turn
from kerf.model.mismatches import EMPTY, LONGEST_TEXT, TAINT, Mismatches, Record, Trait
from kerf.model.plan import Event, Plan
from kerf.model.snapshot import Snapshot
from kerf.model.writes import warning, with_annotations
from kerf.scheduling.answers.nodeclaims import pod_mark
from kerf.scheduling.mismatch.evidence import Verdict, newest_hosts, verdicts, waiting_pods
from kerf.scheduling.mismatch.inputs import inputs_of
from kerf.scheduling.mismatch.replacements import MISFITS, Misfit
from kerf.scheduling.mismatch.watching import TAINT_GOES, Watched, node_of, watched
from kerf.scheduling.offerings import learned
from kerf_api import labels
from kerf_api.v1 import conditions
from kerf_api.v1.conditions import TRUE
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

NODE_MISMATCH: Final = "NodeMismatch"
UNREADABLE: Final = "MismatchesUnreadable"


@dataclass(frozen=True, slots=True)
class Found:
    """The verdicts of a turn by NodePool, and everything that bears on the records; `due` is when that may change.
    `unused` are the verdicts that are no evidence; `teaching` nodes that teach facts without a pod that waits for them:
    replacements that came up other than planned, and nodes from which a taint has removed pods."""

    verdicts: Mapping[str, Sequence[Verdict]]
    unused: Mapping[str, Sequence[Verdict]]
    teaching: Sequence[Misfit | Watched]
    hosts: Mapping[str, datetime]
    due: datetime | None


def find(turn: Turn) -> Found:
    """Look at the watched nodes; nothing costs anything while there are neither such nodes nor records."""
    nodes, due = watched(turn)
    opened = {name: one for name, one in nodes.items() if one.initialized}
    decided = [one for one in verdicts(turn, opened) if not one.undecided]
    known = any(mismatches.remembered(pool) != EMPTY for pool in turn.snapshot.node_pools.values())
    hosts = newest_hosts(turn) if known else {}
    replacing = turn.all(MISFITS, turn.noted)
    misfits = [one for one in replacing.spoken.values() if one is not None and one.verdict is None]
    due = earliest((due if nodes else None, replacing.due, _traits_due(turn.snapshot)))
    found, unused = (_by_pool(one for one in decided if bool(one.unused) is kind) for kind in (False, True))
    return Found(found, unused, (*misfits, *_evicting(turn.snapshot, nodes)), hosts, due)


def _evicting(snapshot: Snapshot, nodes: Mapping[str, Watched]) -> Iterator[Watched]:
    """Nodes from which a taint has removed pods. Pods that still wait have not been there."""
    found = [one for one in nodes.values() if one.initialized and one.evicted]
    waiting = {pod_mark(pod.metadata.uid) for pod in waiting_pods(snapshot)} if found else set()
    return (one for one in found if one.evicted - waiting)


def _by_pool(rows: Iterable[Verdict]) -> Mapping[str, Sequence[Verdict]]:
    found: dict[str, list[Verdict]] = {}
    for one in rows:
        found.setdefault(one.watched.claim.pool_name, []).append(one)
    return found


def in_vain(found: Found) -> Plan:
    """A pod that is nominated to a node which does not help it has to be free for another one."""
    rows = [one for own in found.verdicts.values() for one in own]
    return Plan(
        actions=tuple(
            taken_back(one.pod, f"node {one.watched.node.name} does not run it")
            for one in rows
            if pods.expected_on(one.pod) == one.watched.node.name
        )
    )


def recorded(view: View, pool: NodePool, found: Found) -> Mismatches:
    """The records of a NodePool, with the verdicts on its nodes and without shapes of which a pod runs."""
    snapshot, judged, unused = view.snapshot, found.verdicts.get(pool.name, ()), found.unused.get(pool.name, ())
    known = mismatches.believable(mismatches.remembered(pool), snapshot.now)
    nodes = [(one.watched.claim, one.watched.node) for one in judged]
    nodes += [(one.claim, one.node) for one in found.teaching if one.claim.pool_name == pool.name]
    facts = _learned(snapshot, pool, known, nodes)
    kept = {r.shape: r for r in known.records if not (r.shape in found.hosts and found.hosts[r.shape] >= r.since)}
    inputs = inputs_of(_knowing(snapshot, pool, facts)) if judged or unused else ""
    for verdict in judged:
        kept[verdict.shape] = _with(kept.get(verdict.shape), verdict, view.now, inputs)
    number = sum(record.unused for record in kept.values())
    for verdict in unused:
        if verdict.shape in kept or number < mismatches.MOST_UNUSED:
            number += verdict.shape not in kept
            kept[verdict.shape] = _with_unused(kept.get(verdict.shape), verdict, view.now, inputs)
    return replace(facts, records=tuple(kept[shape] for shape in sorted(kept)))


def _knowing(snapshot: Snapshot, pool: NodePool, facts: Mismatches) -> Snapshot:
    """The snapshot when the facts are in the NodePool: they are no reason for one more attempt."""
    noted = with_annotations(pool, {labels.MISMATCHES: mismatches.annotation(facts)})
    return snapshot.with_node_pools(noted)


def _learned(
    snapshot: Snapshot, pool: NodePool, known: Mismatches, nodes: Iterable[tuple[NodeClaim, Node]]
) -> Mismatches:
    """With the facts that nodes teach; without a trait that one of its nodes has lost, or that others do not have: not
    even for a moment, or each turn would write it again."""
    facts = _standing(snapshot, pool, known)
    by_claim = {claim.name: (claim, node) for claim, node in nodes}
    pairs = [by_claim[name] for name in sorted(by_claim)]
    for claim, node in pairs:
        for trait in learned.traits_of(snapshot, claim, node):
            facts = mismatches.with_trait(facts, trait)
    facts = _standing(snapshot, pool, facts)
    sizes = (learned.size_of(snapshot, claim, node) for claim, node in pairs)
    return mismatches.with_sizes(facts, [size for size in sizes if size is not None])


def _standing(snapshot: Snapshot, pool: NodePool, known: Mismatches) -> Mismatches:
    """Without the traits that nodes of the NodePool contradict."""
    showing = _showing(snapshot, pool, known)
    return replace(known, traits=tuple(trait for trait in known.traits if not _is_over(snapshot, trait, showing)))


def _is_over(snapshot: Snapshot, trait: Trait, showing: Iterable[tuple[str, datetime, Node]]) -> bool:
    """Whether a node that showed the trait shows it no more, or another one has not got it in time: then it is one of
    a part of the NodePool's nodes, as those of a type."""
    there = [node for name in trait.nodes if (node := snapshot.nodes.get(name)) is not None]
    if trait.lasts:
        there += (node for hashed, at, node in showing if hashed == trait.hash and at <= snapshot.now)
    if trait.kind == TAINT:
        return any(trait.text not in map(str, node.spec.taints) for node in there)
    return any(trait.text in node.metadata.labels for node in there)


def _showing(snapshot: Snapshot, pool: NodePool, known: Mismatches) -> list[tuple[str, datetime, Node]]:
    """The nodes of the NodePool that its traits concern, with the hash of their NodePool and the instant by which they
    would show a trait."""
    hashes, found = {trait.hash for trait in known.traits if trait.lasts}, list[tuple[str, datetime, Node]]()
    for claim in snapshot.claims_by_pool.get(pool.name, ()) if hashes else ():
        own, since = claim.metadata.annotations.get(labels.NODEPOOL_HASH, ""), true_since(claim, "Initialized")
        node = node_of(snapshot, claim) if own in hashes and since is not None else None
        if node is not None and node.ready and since is not None:
            found.append((own, since + TAINT_GOES, node))
    return found


def _traits_due(snapshot: Snapshot) -> datetime | None:
    """When the next node would show a trait that is known of its NodePool."""
    known = ((pool, mismatches.remembered(pool)) for pool in snapshot.node_pools.values())
    return earliest(at for pool, own in known for _, at, _ in _showing(snapshot, pool, own) if at > snapshot.now)


def _with(record: Record | None, verdict: Verdict, now: datetime, inputs: str) -> Record:
    """Nodes of the first attempt count as one; each further attempt counts."""
    one = verdict.watched
    differs = "; ".join(map(str, learned.differences(one.claim, one.node)))[:LONGEST_TEXT]
    if record is None or record.unused:
        return _first(verdict, now, inputs, differs)
    return record if verdict.shape not in one.probes else _and(record, one, now, inputs, differs)


def _with_unused(record: Record | None, verdict: Verdict, now: datetime, inputs: str) -> Record:
    """Nodes of one attempt count as one: those that were made before the latest verdict."""
    if record is None:
        return _first(verdict, now, inputs, verdict.unused)
    if not record.unused or _created(verdict.watched, now) <= record.at:
        return record
    return _and(record, verdict.watched, now, inputs, verdict.unused)


def _first(verdict: Verdict, now: datetime, inputs: str, differs: str) -> Record:
    one = verdict.watched
    return Record(
        shape=verdict.shape,
        since=_created(one, now),
        at=now,
        inputs=inputs,
        claim=one.claim.metadata.uid,
        node=one.node.name,
        differs=differs,
        where=_where(one),
        unused=bool(verdict.unused),
    )


def _created(one: Watched, now: datetime) -> datetime:
    return one.claim.metadata.creation_timestamp or now


def _and(record: Record, one: Watched, now: datetime, inputs: str, differs: str) -> Record:
    """With one more node, unless it counts already."""
    uid, number = one.claim.metadata.uid, record.nodes + 1
    if record.counts(uid):
        return record
    latest = replace(record, at=now, nodes=number, inputs=inputs, node=one.node.name, differs=differs)
    return replace(latest, claim=uid, earlier=record.after(uid), where=_where(one))


def _where(one: Watched) -> Mapping[str, str]:
    own = {**one.claim.metadata.labels, **one.node.metadata.labels, labels.NODEPOOL: one.claim.pool_name}
    return mismatches.place(own)


def with_condition(
    pool: NodePool, found: Mismatches, known: tuple[Condition, ...], now: datetime
) -> tuple[Condition, ...]:
    """The NodePool's conditions with NodeMismatch, or without it when there is no record."""
    if not found.limiting:
        return conditions.drop(known, NODE_MISMATCH)
    return conditions.put(
        known,
        NODE_MISMATCH,
        TRUE,
        "PodsNotRunning",
        generation=pool.metadata.generation,
        now=now,
        message=_message(found.limiting),
    )


def _message(records: Iterable[Record]) -> str:
    rows = sorted(records, key=lambda record: (record.at, record.shape))
    latest, count = rows[-1], len(rows)
    shapes = "pods of 1 shape" if count == 1 else f"pods of {count} shapes"
    differs = f": {latest.differs}" if latest.differs else ""
    return f"nodes made for {shapes} did not help, the latest {latest.node or 'one'}{differs}"


def gauges(pool: NodePool, found: Mismatches) -> Mapping[tuple[PlanGauge, Labels], float]:
    number = len(found.limiting)
    return {(PlanGauge.NODE_MISMATCHES, (("nodepool", pool.name),)): float(number)} if number else {}


def reported(pool: NodePool) -> tuple[Event, ...]:
    """An annotation that Kerf cannot read counts as empty."""
    if not mismatches.is_unreadable(pool):
        return ()
    return (warning(pool, UNREADABLE, "the annotation kerf.sh/mismatches is not readable and counts as empty"),)
