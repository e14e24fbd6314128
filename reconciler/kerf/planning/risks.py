"""Risks of a plan: facts about the final state that an operator may want to know before the change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.forced.expiration import end_of
from kerf.model.changes.pdbs import Pdbs
from kerf.model.instants import rfc3339
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import workload
from kerf.model.snapshot import Snapshot
from kerf.planning.outcomes import Outcome, PlannedNode
from kerf.provisioning import contradictions
from kerf_api import labels
from kerf_api.deletion import how_to_allow
from kerf_api.resources import Resources
from kerf_api.texts import counted
from kerf_api.v1 import conditions
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

_NODES: Final = "nodes"


@dataclass(frozen=True, slots=True)
class Risk:
    """One risk.

    Attributes:
        code: a stable name of the kind of risk.
        text: a description for people.
        subject: `kind/name` of the affected object, in lower case; empty for the whole cluster.
        namespace: the namespace of a namespaced object.
        owner: `Kind/name` of the workload with the affected pods.
        count: number of affected nodes; for SpotShare the percentage of the cost.
        at: the first time of the risk, where it is known.
    """

    code: str
    text: str
    subject: str = ""
    namespace: str = ""
    owner: str = ""
    count: int = 0
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """The final state of a simulation.

    Attributes:
        snapshot: the cluster at the end.
        outcome: the result of the simulation.
        nodes: the remaining nodes.
        horizon: the time that the plan covers, from the start of the simulation.
        guarded: by NodePool, the NodeClaims whose drain the deletion guard has delayed.
        hindered: by NodePool, why it gets no nodes at the start of the simulation, and what helps.
    """

    snapshot: Snapshot
    outcome: Outcome
    nodes: Sequence[PlannedNode]
    horizon: timedelta
    guarded: Mapping[str, Sequence[str]] = field(default_factory=dict)
    hindered: Mapping[str, str] = field(default_factory=dict)


def risks(ending: Ending) -> tuple[Risk, ...]:
    """Return all risks, those of the whole cluster first."""
    nodes = (_spot(ending), _zones(ending), _limits(ending), _unready(ending), _hindered(ending), _expiry(ending))
    rest = (_pdbs(ending), _guard(ending), _blocked(ending), _horizon(ending))
    return tuple(risk for part in (*nodes, *rest) for risk in part)


# --- remaining nodes --------------------------------------------------------------------------------------------
def _spot(ending: Ending) -> Iterator[Risk]:
    spot = sum(one.price for one in ending.nodes if one.capacity_type == labels.SPOT)
    total = sum(one.price for one in ending.nodes)
    if total and spot * 2 > total:
        share = 100 * spot // total
        text = f"{share} % of the cost is for spot instances, which AWS can reclaim at any time"
        yield Risk("SpotShare", text, count=share)


def _zones(ending: Ending) -> Iterator[Risk]:
    for pool, some in _by_pool(ending.nodes).items():
        zones = {one.zone for one in some}
        if len(some) > 1 and len(zones) == 1 and zones != {""}:  # the zone of an estimated node may be open
            text = f"NodePool {pool}: all {len(some)} nodes are in zone {zones.pop()}"
            yield Risk("SingleZone", text, f"nodepool/{pool}", count=len(some))


def _by_pool(nodes: Iterable[PlannedNode]) -> dict[str, list[PlannedNode]]:
    found: dict[str, list[PlannedNode]] = {}
    for one in nodes:
        found.setdefault(one.nodepool, []).append(one)
    return dict(sorted(found.items()))


def _limits(ending: Ending) -> Iterator[Risk]:
    """Return NodePools whose limits exclude one more node of their smallest size."""
    sizes: dict[str, list[Resources]] = {}
    for claim in ending.snapshot.node_claims.values():
        if not claim.metadata.deleting:
            sizes.setdefault(claim.pool_name, []).append(_size(claim))
    for name, pool in sorted(ending.snapshot.node_pools.items()):
        rows = list(_reached(pool, sizes.get(name, [])))
        if rows:
            text = f"NodePool {name}: no further node fits into its limits: {', '.join(rows)}; raise spec.limits"
            yield Risk("LimitReached", text, f"nodepool/{name}", count=len(sizes[name]))


def _reached(pool: NodePool, sizes: Sequence[Resources]) -> Iterator[str]:
    try:
        limits = pool.limits
    except ValueError:  # the NodePool's own condition reports malformed limits
        return
    for resource, limit in sorted((limits or {}).items()):
        amounts = [size[resource] for size in sizes]
        if amounts and sum(amounts) + min(amounts) > limit:
            used, most = (Resources({resource: amount}).texts()[resource] for amount in (sum(amounts), limit))
            yield f"{resource} {used} of {most}"


def _size(claim: NodeClaim) -> Resources:
    capacity = claim.status.capacity or claim.spec.resources.requests
    return Resources({**Resources.parse(capacity), _NODES: 1})


def _unready(ending: Ending) -> Iterator[Risk]:
    """Return NodePools that launch no node: those that are not Ready, and those without an instance type."""
    for name, pool in sorted(ending.snapshot.node_pools.items()):
        ready = conditions.get(pool.status.conditions, conditions.READY)
        if not pool.managed or pool.metadata.deleting or ready is None:
            continue
        cause = _cause(ending.snapshot, pool, ready)
        if cause:
            yield Risk("NotReady", f"NodePool {name}: not ready, so it launches no node: {cause}", f"nodepool/{name}")


def _cause(snapshot: Snapshot, pool: NodePool, ready: Condition) -> str:
    if pool.class_name not in snapshot.node_classes:
        fix = "add its manifest or change spec.template.spec.nodeClassRef"
        return f"EC2NodeClass {pool.class_name} does not exist; {fix}"
    if ready.status != conditions.TRUE:
        return ready.message or ready.reason
    contrary = contradictions.of(snapshot, pool)
    return str(contrary) if contrary is not None and not contrary.passes else ""


def _hindered(ending: Ending) -> Iterator[Risk]:
    """Return NodePools that get no nodes now: the simulation launches them all the same."""
    for name, found in ending.hindered.items():
        if name in ending.snapshot.node_pools:
            text = f"NodePool {name}: gets no nodes now, but the plan assumes that it does: {found}"
            yield Risk("LaunchesFail", text, f"nodepool/{name}")


def _expiry(ending: Ending) -> Iterator[Risk]:
    """Return nodes that expire before the horizon and are not replaced earlier."""
    began = ending.outcome.began
    until, due = began + ending.horizon, dict[str, list[datetime]]()
    going = {one.node.name for one in ending.outcome.departures}
    for claim in ending.snapshot.node_claims.values():
        at = None if claim.metadata.deleting or claim.name in going else _end(ending.snapshot, claim, until)
        if at is not None and at <= until:
            due.setdefault(claim.pool_name, []).append(max(at, began))
    for pool, times in sorted(due.items()):
        nodes = f"{counted(len(times), 'node')} expire{'s' if len(times) == 1 else ''}"
        first = min(times)
        text = f"NodePool {pool}: {nodes} before the horizon, the first at {rfc3339(first)}; see expireAfter"
        yield Risk("NearExpiry", text, f"nodepool/{pool}", count=len(times), at=first)


def _end(snapshot: Snapshot, claim: NodeClaim, until: datetime) -> datetime | None:
    try:
        end = end_of(snapshot, claim, until)
    except ValueError:  # the NodeClaim's own refusal reports a malformed duration
        return None
    return end.at if end is not None else None


# --- nodes with a pending disruption ------------------------------------------------------------------------------
def _pdbs(ending: Ending) -> Iterator[Risk]:
    """Return PodDisruptionBudgets that allow no eviction from nodes with a pending disruption."""
    names = {one.node for one in ending.outcome.held}
    names |= {one.node.name for one in ending.outcome.departures if one.ended is None}
    pdbs = Pdbs(ending.snapshot.pdb_selectors, ending.snapshot.pdb_budgets)
    nodes, owners = dict[str, set[str]](), dict[str, Counter[str]]()
    for name in sorted(names):
        for pod in _pods_of(ending.snapshot, name):
            for key in pdbs.blocking(pod, ending.snapshot.now):
                nodes.setdefault(key, set()).add(name)
                owners.setdefault(key, Counter())[_owner(pod)] += 1
    for key in sorted(nodes):
        namespace, _, name = key.partition("/")
        owner, count = owners[key].most_common(1)[0][0], len(nodes[key])
        drains = f"the drain of {counted(count, 'node')}"
        text = f"PodDisruptionBudget {key} of {owner} blocks {drains}: it allows no eviction; change it or add replicas"
        yield Risk("PodDisruptionBudget", text, f"poddisruptionbudget/{name}", namespace, owner, count)


def _pods_of(snapshot: Snapshot, claim_name: str) -> Iterator[Pod]:
    claim = snapshot.node_claims.get(claim_name)
    if claim is not None and claim.status.node_name:
        on_node = snapshot.pods.by_node.get(claim.status.node_name, {})
        yield from (on_node[key] for key in sorted(on_node))


def _owner(pod: Pod) -> str:
    found = workload(pod)
    return "/".join(found) if found is not None else f"Pod/{pod.metadata.name}"


def _guard(ending: Ending) -> Iterator[Risk]:
    for pool, names in sorted(ending.guarded.items()):
        nodes, allow = len(names), how_to_allow("nodepool", pool, len(names))
        drains = f"delays the drain of {counted(nodes, 'node')}"
        text = f"NodePool {pool}: the deletion guard {drains}; to allow it at once: {allow}"
        yield Risk("DeletionGuard", text, f"nodepool/{pool}", count=nodes)


def _blocked(ending: Ending) -> Iterator[Risk]:
    for one in ending.outcome.held:
        why = one.blocker or "the blocker is not known"
        text = f"NodeClaim {one.node} has drifted ({one.reason}) and stays: {why}"
        yield Risk("Held", text, f"nodeclaim/{one.node}", count=1)


def _horizon(ending: Ending) -> Iterator[Risk]:
    if ending.outcome.simulated and not ending.outcome.at_rest:
        yield Risk("Horizon", "more changes follow after the horizon", at=ending.outcome.ended)
