"""Pending pods to NodeClaims: wait for the batch, simulate all of it, create what is missing, say why for the rest.

Pods that will land on a node which exists or is on its way need nothing but a nomination. Source: scheduling reference
§1 and §9.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.model import kinds
from reconciler.model.boundaries import MALFORMED
from reconciler.model.kinds import Ref
from reconciler.model.memory import Memory, Turn
from reconciler.model.objects import Pod
from reconciler.model.plan import CreateNodeClaim, Event, Nomination, Plan, Reason, Refusal, joined
from reconciler.model.snapshot import Batch, Snapshot
from reconciler.provisioning.boundary import solve_apart
from reconciler.provisioning.buffers import buffered, real_part, reports, without_room
from reconciler.provisioning.pending import pending_pods, rehoused_pods
from reconciler.scheduling.buffers import virtual_pods
from reconciler.scheduling.claims import to_claim
from reconciler.scheduling.daemons import daemon_problems
from reconciler.scheduling.reserving import DEFERRED
from reconciler.scheduling.sites import sites
from reconciler.scheduling.solve import NewNode, PodRefusal, Solution

#: While pods stay pending, the world is looked at again this often.
LOOK_AGAIN = timedelta(seconds=10)
_ZONES = "karpenter_scheduler_pending_pods_by_effective_zone_count"
_RULES = "kerf_refused_pods"
_LEAST_NOMINATION = timedelta(seconds=10)
_FAILED_FOR, _NOMINATED_FOR, _NO_TYPES_FOR = 300, 120, 60
#: When no pod has come for this part of the time after which a batch closes (or of that for which they kept coming), it
#: is likely to be all.
_LIKELY_ALL = 0.3


def provision(snapshot: Snapshot, turn: Turn | None = None) -> Plan:
    """Create NodeClaims for pending pods once their batch is closed. Nothing to do, nothing in the plan."""
    turn = turn or Memory().turn(snapshot)
    if snapshot.batch is None:
        waits = Plan(next_due=snapshot.now + LOOK_AGAIN if snapshot.pods.pending else None)
        return joined((waits, reports(turn)))
    closes = closing_time(snapshot.batch, snapshot)
    if closes > snapshot.now:
        sites(turn)  # what can be read of the nodes while the pods wait for their batch need not be read after it
        return joined((_ahead(turn, snapshot.batch, closes), reports(turn)))
    pending, refused = pending_pods(snapshot)
    solution = turn.held(_key(snapshot, closes)) or _solved(turn, snapshot, pending)
    kept, wanted = buffered(turn, solution), real_part(snapshot, solution)
    return joined((_plan(snapshot, solution, wanted, refused), kept))


def _ahead(turn: Turn, batch: Batch, closes: datetime) -> Plan:
    """Solve as of the close of the batch when its pods seem to be all there, and tell which claims that will make.

    While nothing changes until then, nobody waits for the solution.
    """
    snapshot, kept_coming = turn.snapshot, batch.last - batch.first
    likely = batch.last + _LIKELY_ALL * max(snapshot.settings.batch_idle, kept_coming)
    if batch.again or likely >= closes:
        return Plan(next_due=closes)
    if likely > snapshot.now:
        return Plan(next_due=likely)
    then, key = replace(snapshot, now=closes), _key(snapshot, closes)
    solution = turn.held(key) or turn.hold(key, _solved(turn, then, pending_pods(then)[0]))
    return Plan(next_due=closes, foreseen=tuple(creation.claim for creation in _creations(then, solution)))


def _key(snapshot: Snapshot, closes: datetime) -> tuple[object, ...]:
    """What a solution rests on but for tables."""
    return "solution", closes, snapshot.nominations


def _solved(turn: Turn, snapshot: Snapshot, pending: list[Pod]) -> Solution:
    """A place for each pod, and then for the virtual ones; if those were in the way of others, for none of them."""
    pods, virtual = [*pending, *rehoused_pods(snapshot)], virtual_pods(turn)
    if not pods and not virtual:
        return Solution()
    solution = solve_apart(snapshot, [*pods, *virtual], turn)
    lost = [pod for pod in pods if pod.key in solution.unplaced]
    if not lost or not virtual:
        return solution
    alone = solve_apart(snapshot, pods, turn)
    return solution if len(alone.unplaced) == len(lost) else without_room(alone, virtual)


def closing_time(batch: Batch, snapshot: Snapshot) -> datetime:
    """A batch closes when no pod has come for a while, and at the latest some time after its first."""
    return min(batch.last + snapshot.settings.batch_idle, batch.first + snapshot.settings.batch_max)


def _plan(snapshot: Snapshot, solution: Solution, wanted: Solution, refused: dict[str, PodRefusal]) -> Plan:
    """`wanted` is the part of the solution that is about real pods: virtual ones are told and promised nothing."""
    creations = _creations(snapshot, solution)
    homes = dict(wanted.placed)
    for creation, node in zip(creations, wanted.new_nodes, strict=True):
        homes |= dict.fromkeys(node.pods, creation.claim.name)
    unplaced = {**refused, **wanted.unplaced}
    told = _told(unplaced)
    still = any(key in snapshot.pods.pending for key in (*homes, *unplaced))
    return Plan(
        actions=creations,
        refusals=(*_refusals(unplaced, told, solution), *_daemon_refusals(snapshot)),
        events=(*_pod_events(snapshot, homes, _failures(unplaced, told)), *_pool_events(snapshot, solution)),
        nominations=nominations(snapshot, wanted, homes),
        next_due=snapshot.now + LOOK_AGAIN if still else None,
        provisioned=True,
        gauges=_gauges(solution),
        purchase=solution.purchase,
    )


def _creations(snapshot: Snapshot, solution: Solution) -> tuple[CreateNodeClaim, ...]:
    return tuple(
        CreateNodeClaim(
            reason=Reason("Provisioned", _purpose(snapshot, node)),
            claim=to_claim(snapshot, node, salt="provisioned"),
        )
        for node in solution.new_nodes
    )


def _purpose(snapshot: Snapshot, node: NewNode) -> str:
    real = sum(key in snapshot.pods for key in node.pods)
    rest = len(node.pods) - real
    text = f"for {real} pods that have no node" if real or not rest else "for pods to come"
    return f"{text}, with room for {rest} of CapacityBuffers" if rest else text


def _gauges(solution: Solution) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Pending pods by zone, and those without a place by what the nearest NodePool's answer rests on."""
    rules = Counter(_rule(why) for why in solution.unplaced.values() if why.code != DEFERRED.code)
    return {
        **{(_ZONES, (("controller", "provisioner"), ("zone", z))): float(n) for z, n in solution.zones.items()},
        **{(_RULES, (("rule", rule),)): float(count) for rule, count in sorted(rules.items())},
    }


def _rule(why: PodRefusal) -> str:
    """A rule that NodePools ask (`taints`, `offerings`, …), where the refusal has an account; else its code."""
    pools = why.account.pools if why.account is not None else ()
    return next((pool.rule for pool in pools if pool.rule), why.code)


def _told(unplaced: Mapping[str, PodRefusal]) -> dict[str, str]:
    """What is said of each pod, in order of their keys; the pods of one class share one text."""
    texts = {id(why): str(why) for why in unplaced.values()}
    return {key: texts[id(unplaced[key])] for key in sorted(unplaced)}


def _failures(unplaced: Mapping[str, PodRefusal], told: Mapping[str, str]) -> dict[str, str]:
    """Who is to hear about it: not a pod that has opted out, nor one that may well have a place in the next pass."""
    return {key: text for key, text in told.items() if text and unplaced[key].code != DEFERRED.code}


def _refusals(unplaced: Mapping[str, PodRefusal], told: Mapping[str, str], solution: Solution) -> tuple[Refusal, ...]:
    pods = [Refusal(f"pod/{key}", Reason(unplaced[key].code, text)) for key, text in told.items()]
    pools = [Refusal(f"nodepool/{n}", Reason(why.code, why.text)) for n, why in sorted(solution.pool_problems.items())]
    return (*pods, *pools)


def _daemon_refusals(snapshot: Snapshot) -> Iterator[Refusal]:
    """Nodes are planned without the share of a daemon set that makes no sense: that is said."""
    for key, problem in daemon_problems(snapshot.daemon_sets).items():
        yield Refusal(f"daemonset/{key}", Reason(MALFORMED, problem))


def nominations(snapshot: Snapshot, solution: Solution, homes: Mapping[str, str]) -> tuple[Nomination, ...]:
    """Promises of the homes, in the order of the decisions, so that the next pass can find each of them again."""
    until = snapshot.now + max(2 * snapshot.settings.batch_max, _LEAST_NOMINATION)
    return tuple(
        Nomination(snapshot.pods[key].metadata.uid, homes[key], until) for key in solution.order if key in homes
    )


def _pod_events(snapshot: Snapshot, homes: Mapping[str, str], told: Mapping[str, str]) -> tuple[Event, ...]:
    failed = [
        _event(snapshot.pods[key], "Warning", "FailedScheduling", f"Failed to schedule pod, {text}", _FAILED_FOR)
        for key, text in told.items()
    ]
    nominated = [
        _event(snapshot.pods[key], "Normal", "Nominated", _where(snapshot, target), _NOMINATED_FOR)
        for key, target in sorted(homes.items())
        if key in snapshot.pods.pending
    ]
    return (*failed, *nominated)


def _where(snapshot: Snapshot, target: str) -> str:
    state = snapshot.state_nodes.get(target)
    if state is None:
        return f"Pod should schedule on: nodeclaim/{target}"
    names = [f"nodeclaim/{state.claim.name}"] if state.claim is not None else []
    names += [f"node/{state.node.name}"] if state.node is not None else []
    return f"Pod should schedule on: {', '.join(names)}"


def _event(pod: Pod, type_: str, reason: str, message: str, seconds: int) -> Event:
    uid = pod.metadata.uid
    return Event(Ref.of(kinds.POD, pod), uid, type_, reason, message, dedupe=uid, dedupe_seconds=seconds)


def _pool_events(snapshot: Snapshot, solution: Solution) -> tuple[Event, ...]:
    return tuple(
        Event(
            Ref.of(kinds.NODE_POOL, snapshot.node_pools[name]),
            snapshot.node_pools[name].metadata.uid,
            "Warning",
            why.code,
            why.text,
            dedupe=snapshot.node_pools[name].metadata.uid,
            dedupe_seconds=_NO_TYPES_FOR,
        )
        for name, why in sorted(solution.pool_problems.items())
    )
