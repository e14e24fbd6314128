"""Pending pods to NodeClaims: wait for the batch, simulate all of it, create what is missing, say why for the rest.

Pods that will land on a node which exists or is on its way need nothing but a nomination. A batch closes at once for
pods that have waited for one before, and have lost their capacity on the node of it to others. Source: scheduling
reference §1 and §9.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from kerf.model import kinds
from kerf.model.boundaries import Boundary, broken, guarded
from kerf.model.gauges import Labels, PlanGauge
from kerf.model.instants import earliest
from kerf.model.kinds import Ref
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import must_be_spread
from kerf.model.kubernetes.pods import virtual as is_virtual
from kerf.model.memory import Memory, Turn
from kerf.model.plan import INTERNAL_ERROR, CreateNodeClaim, Event, Nomination, Plan, Reason, Refusal, joined
from kerf.model.snapshot import Batch, Snapshot
from kerf.pods.buffer_pods import virtual_pods
from kerf.pods.daemon_overhead import daemon_problems
from kerf.provisioning.boundary import NO_PROBLEMS, Problems, solve_apart, solve_early, solve_roughly
from kerf.provisioning.buffers import buffered, real_part, reports, without_room
from kerf.provisioning.creations import creatable, creatable_part, creations_of
from kerf.provisioning.early import ANSWERS, again_at, certain_part, enough, next_try, unanswered
from kerf.provisioning.expecting import events_of, over
from kerf.provisioning.pending import leaving_pods, pending_pods
from kerf.provisioning.progress import with_progress
from kerf.provisioning.unread import kept_waiting, unread_refusals, unread_since
from kerf.provisioning.waiting import TERMINATING
from kerf.scheduling.facts.nodes import sites
from kerf.scheduling.mismatch.evidence import displaced
from kerf.scheduling.offerings.settling import SETTLING
from kerf.scheduling.seating.reserved import DEFERRED
from kerf.scheduling.solve import PodRefusal, Solution
from kerf.scheduling.work import WORK_BUDGET
from kerf_api import labels

#: Solves for some pods.
Solved = Callable[[Sequence[Pod]], Solution]
#: While pods stay pending, the world is looked at again this often.
LOOK_AGAIN = timedelta(seconds=10)
#: Refusals of pods that may well have a place in a moment.
NOT_YET = frozenset({DEFERRED.code, SETTLING, TERMINATING, WORK_BUDGET})
_LEAST_NOMINATION = timedelta(seconds=10)
_FAILED_FOR, _NOMINATED_FOR, _NO_TYPES_FOR = 300, 120, 60
#: The controller sees that a node is initialized so long after the time of the condition at most.
SEEN = timedelta(seconds=5)
#: Pods that lost their capacity wait so long after the first initialized node for nodes that are still to come.
JOINING = timedelta(seconds=5)
#: When no pod has come for this part of the time after which a batch closes (or of that for which they kept coming), it
#: is likely to be all.
_LIKELY_ALL = 0.3
#: Pods are solved for ahead within this part of the time from that instant to the close: a solution that is begun late
#: may keep the loop from the close.
_AHEAD_WITHIN = 0.5
#: A reconcile that comes within this time after the close of a batch decides as of the close: time alone does not make
#: what was solved ahead void.
_AS_OF_CLOSE = timedelta(seconds=1)


def provision(snapshot: Snapshot, turn: Turn | None = None) -> Plan:
    """Create NodeClaims for pending pods once their batch is closed. Nothing to do, nothing in the plan."""
    turn = turn or Memory().turn(snapshot)
    if snapshot.batch is None:
        waits = Plan(next_due=snapshot.now + LOOK_AGAIN if snapshot.pods.pending else None)
        return joined((waits, reports(turn)))
    closes = snapshot.batch.closes(snapshot.settings)
    if closes > snapshot.now and _displaced(turn, snapshot.batch):
        closes = snapshot.now
    if closes > snapshot.now:
        sites(turn)  # what can be read of the nodes while the pods wait for their batch need not be read after it
        return joined((_before(turn, snapshot.batch, closes), reports(turn)))
    if unanswered(snapshot) and snapshot.now < closes + ANSWERS:
        return joined((Plan(next_due=closes + ANSWERS), reports(turn)))
    prompt = snapshot.now < closes + _AS_OF_CLOSE
    then = replace(snapshot, now=closes) if prompt else snapshot
    pending, refused = pending_pods(then)
    solution = (turn.held(_key(then, closes)) if prompt else None) or _solved(turn, then, pending)
    solution, creations = creatable(then, solution, partial(_solved, turn, then, pending))
    return joined((_plan(then, solution, creations, refused), buffered(turn, solution, creations)))


def _displaced(turn: Turn, batch: Batch) -> bool:
    """Whether pods lost their capacity on nodes that were initialized since the latest plan, when it is due to look.

    Pods that took it may have a place on nodes that are still to come, but no pod waits for the last of many nodes, and
    one with a hard spread for none: where its domain is full, nodes elsewhere do not help it, nor those of its
    workload that must not come before it.
    """
    snapshot, opened = turn.snapshot, batch.opened_at
    if opened is None or batch.recheck_at is None or batch.recheck_at > snapshot.now or unanswered(snapshot):
        return False
    joining = any(not state.initialized and not state.deleting for state in snapshot.state_nodes.values())
    awaits = joining and snapshot.now < opened + JOINING
    return displaced(turn, opened - SEEN, must_be_spread if awaits else None)


def _before(turn: Turn, batch: Batch, closes: datetime) -> Plan:
    """While the batch is open: order what is certain, now and then; when it is not the time for that, solve ahead."""
    if unanswered(turn.snapshot):
        return Plan(next_due=closes)
    now, due = turn.snapshot.now, next_try(turn.snapshot, batch, closes)
    if due is not None and due <= now:
        tried = _early(turn, batch)
        return replace(tried, next_due=earliest((tried.try_at, closes)) if tried.actions else now)
    ahead = guarded("provisioning", lambda: _ahead(turn, batch, closes), Plan(ahead=True), closes)
    return replace(ahead, next_due=earliest((due, ahead.next_due, closes)))


def _early(turn: Turn, batch: Batch) -> Plan:
    """Order the nodes that are certain for the pods that are there; the others wait for the close."""
    snapshot, boundary = turn.snapshot, Boundary()
    looked = Plan(try_at=again_at(snapshot, batch, found=False))
    pending = pending_pods(snapshot)[0]
    if not enough(snapshot, pending):
        return looked
    solution = certain_part(snapshot, _solved(turn, snapshot, pending, early=True), pending)
    solution, creations = creatable_part(snapshot, solution)
    if not creations:
        return looked
    homes = _homes(solution, creations)
    return replace(
        looked,
        try_at=again_at(snapshot, batch, found=True),
        actions=creations,
        events=(*_pod_events(snapshot, homes, {}, boundary), *events_of(snapshot)),
        nominations=nominations(snapshot, solution, homes, boundary),
        refusals=tuple(boundary.refusals),
        purchase=solution.purchase,
    )


def _homes(solution: Solution, creations: Sequence[CreateNodeClaim]) -> dict[str, str]:
    """By key of a pod, where it is expected: a key of `state_nodes`, or the NodeClaim of its new node."""
    homes = dict(solution.placed)
    for creation, node in zip(creations, solution.new_nodes, strict=True):
        homes |= dict.fromkeys(node.pods, creation.claim.name)
    return homes


def _ahead(turn: Turn, batch: Batch, closes: datetime) -> Plan:
    """Solve once as of the close of the batch when its pods seem to be all there; the claims that will make.

    While nothing changes until then, no pod waits for the solution. Where something does, it is not made again before
    the close: in a large cluster something changes all the time.
    """
    snapshot, kept_coming = turn.snapshot, batch.last - batch.first
    likely = batch.last + _LIKELY_ALL * max(snapshot.settings.batch_idle, kept_coming)
    late = likely + _AHEAD_WITHIN * (closes - likely)
    if batch.again or batch.ahead_at is not None or likely >= closes or late <= snapshot.now:
        return Plan(next_due=closes)
    if likely > snapshot.now:
        return Plan(next_due=likely)
    then = replace(snapshot, now=closes)
    solution = turn.hold(_key(then, closes), lambda: _solved(turn, then, pending_pods(then)[0]))
    foreseen = tuple(creation.claim for creation in creations_of(then, solution))
    return Plan(next_due=closes, foreseen=foreseen, ahead=True)


def _key(snapshot: Snapshot, closes: datetime) -> tuple[object, ...]:
    """What a solution rests on but for tables."""
    return "solution", closes, snapshot.nominations


def _solved(
    turn: Turn, snapshot: Snapshot, pending: list[Pod], without: Problems = NO_PROBLEMS, *, early: bool = False
) -> Solution:
    """A place for each pod; a new node only where that may help. The NodePools of `without` make no nodes.

    `early`: more pods are to come, and virtual pods wait for them.
    """
    leaving, failed = leaving_pods(snapshot)
    found = [*pending, *leaving, *(() if early else virtual_pods(turn))]
    if not found:
        return Solution(unplaced=failed)

    def solved(some: Sequence[Pod], shut: Problems = NO_PROBLEMS, /, *, roughly: bool = False) -> Solution:
        real, virtual = ([pod for pod in some if is_virtual(pod) is kind] for kind in (False, True))
        make = solve_roughly if roughly else solve_early if early else solve_apart
        return _placed(snapshot, real, virtual, partial(make, snapshot, turn=turn, without={**without, **shut}))

    try:
        solution = with_progress(turn, snapshot, found, solved)
    except Exception as error:  # records of earlier nodes that fail must not keep all pods from their nodes
        solution = solved(found)
        named = (name for name, pool in snapshot.node_pools.items() if labels.MISMATCHES in pool.metadata.annotations)
        problems = dict.fromkeys(sorted(named), PodRefusal(INTERNAL_ERROR, broken(error).text))
        solution = replace(solution, pool_problems={**problems, **solution.pool_problems})
    return replace(solution, unplaced={**solution.unplaced, **failed}) if failed else solution


def _placed(snapshot: Snapshot, pods: Sequence[Pod], virtual: Sequence[Pod], apart: Solved) -> Solution:
    """As `_served`, but no new node is made for pods that a node which cannot be read may hold for now."""
    solution = _served(pods, virtual, apart)
    waiting = kept_waiting(snapshot, solution, {pod.key: pod for pod in (*pods, *virtual)})
    if not waiting:
        return solution
    pods, virtual = ([pod for pod in some if pod.key not in waiting] for some in (pods, virtual))
    solution = _served(pods, virtual, apart)
    return replace(solution, unplaced={**solution.unplaced, **waiting})


def _served(pods: Sequence[Pod], virtual: Sequence[Pod], apart: Solved) -> Solution:
    """A place for each pod, and then for the virtual ones; if those blocked others, for none of them."""
    solution = apart([*pods, *virtual])
    lost = [pod for pod in pods if pod.key in solution.unplaced]
    if not lost or not virtual:
        return solution
    alone = apart(pods)
    return solution if len(alone.unplaced) == len(lost) else without_room(alone, virtual)


def _plan(
    snapshot: Snapshot,
    solution: Solution,
    creations: tuple[CreateNodeClaim, ...],
    refused: dict[str, PodRefusal],
) -> Plan:
    """Virtual pods have no events and no nominations. A failure about one pod, NodePool or DaemonSet costs no other."""
    wanted, boundary = real_part(snapshot, solution), Boundary()
    homes = _homes(wanted, creations)
    unplaced = {**refused, **wanted.unplaced}
    texts = _texts(unplaced, boundary)
    still = any(key in snapshot.pods.pending for key in (*homes, *unplaced))
    events = (
        *_pod_events(snapshot, homes, _failures(unplaced, texts), boundary),
        *_pool_events(snapshot, solution, boundary),
        *events_of(snapshot),
    )
    promised, gauges = nominations(snapshot, wanted, homes, boundary), _gauges(solution, boundary)
    said = (
        *_refusals(unplaced, texts, solution),
        *_daemon_refusals(snapshot),
        *unread_refusals(snapshot, solution),
    )
    subjects = {refusal.subject for refusal in said}
    left_over, had_turn = _turns(snapshot, unplaced)
    return Plan(
        actions=creations,
        refusals=(*said, *(refusal for refusal in boundary.refusals if refusal.subject not in subjects)),
        events=events,
        nominations=promised,
        next_due=snapshot.now + LOOK_AGAIN if still else None,
        provisioned=True,
        gauges=gauges,
        purchase=solution.purchase,
        unread_since=unread_since(snapshot, solution),
        left_over=left_over,
        had_turn=had_turn,
    )


def _turns(snapshot: Snapshot, unplaced: Mapping[str, PodRefusal]) -> tuple[frozenset[str], frozenset[str]]:
    """The UIDs of the pods that wait for their first turn, and of those that had one meanwhile and were refused.

    When none waits, each has had its turn. Then the pods without a place are tried again with the next batch, not at
    once: refused pods keep no core busy.
    """
    if all(why.code != WORK_BUDGET for why in unplaced.values()):
        return frozenset(), frozenset()
    known = {key: why for key, why in unplaced.items() if key in snapshot.pods.by_key}
    uids = {key: snapshot.pods[key].metadata.uid for key in known}
    refused = frozenset(uids[key] for key, why in known.items() if why.code != WORK_BUDGET)
    had_turn = refused | snapshot.had_turn.intersection(uids.values())
    left_over = frozenset(uids.values()) - had_turn
    return left_over, had_turn if left_over else frozenset()


def _gauges(solution: Solution, boundary: Boundary) -> dict[tuple[PlanGauge, Labels], float]:
    """Pending pods by zone, and those without a place by what the nearest NodePool's answer rests on."""
    left = {key: why for key, why in solution.unplaced.items() if why.code not in NOT_YET}
    rules = Counter(boundary.run(f"pod/{key}", partial(_rule, why), why.code) for key, why in left.items())
    return {
        **{
            (PlanGauge.PENDING_PODS_BY_ZONE, (("controller", "provisioner"), ("zone", z))): float(n)
            for z, n in solution.zones.items()
        },
        **{(PlanGauge.REFUSED_PODS, (("rule", rule),)): float(count) for rule, count in sorted(rules.items())},
    }


def _rule(why: PodRefusal) -> str:
    """A rule that NodePools ask (`taints`, `offerings`, …), where the refusal has an account; else its code."""
    pools = why.account.pools if why.account is not None else ()
    return next((pool.rule for pool in pools if pool.rule), why.code)


def _texts(unplaced: Mapping[str, PodRefusal], boundary: Boundary) -> dict[str, str]:
    """The text about each pod, in order of their keys; the pods of one class share one text."""
    texts: dict[int, str] = {}
    for key in sorted(unplaced):
        why = unplaced[key]
        if id(why) not in texts:
            texts[id(why)] = boundary.run(f"pod/{key}", partial(str, why), why.code)
    return {key: texts[id(unplaced[key])] for key in sorted(unplaced)}


def _failures(unplaced: Mapping[str, PodRefusal], texts: Mapping[str, str]) -> dict[str, Reason]:
    """Of which pods have events: not one that has opted out, nor one that may well have a place in the next pass."""
    codes = {key: unplaced[key].code for key, text in texts.items() if text}
    return {key: Reason(code, texts[key]) for key, code in codes.items() if code not in NOT_YET}


def _refusals(unplaced: Mapping[str, PodRefusal], texts: Mapping[str, str], solution: Solution) -> tuple[Refusal, ...]:
    pods = [Refusal(f"pod/{key}", Reason(unplaced[key].code, text)) for key, text in texts.items()]
    pools = [Refusal(f"nodepool/{n}", Reason(why.code, why.text)) for n, why in sorted(solution.pool_problems.items())]
    return (*pods, *pools)


def _daemon_refusals(snapshot: Snapshot) -> Iterator[Refusal]:
    """Nodes are planned without the share of a daemon set that makes no sense: a refusal reports it."""
    for key, reason in daemon_problems(snapshot.daemon_sets).items():
        yield Refusal(f"daemonset/{key}", reason)


def nominations(
    snapshot: Snapshot, solution: Solution, homes: Mapping[str, str], boundary: Boundary | None = None
) -> tuple[Nomination, ...]:
    """Promises of the homes, in the order of the decisions, so that the next pass can find each of them again."""
    until = snapshot.now + max(2 * snapshot.settings.batch_max, _LEAST_NOMINATION)
    boundary = boundary or Boundary()
    known = {(one.pod_uid, one.target): one.since for one in snapshot.nominations if not one.over}

    def nomination(key: str) -> Nomination:
        uid, target = snapshot.pods[key].metadata.uid, homes[key]
        return Nomination(uid, target, until, known.get((uid, target)) or snapshot.now)

    made = [boundary.run(f"pod/{key}", partial(nomination, key), None) for key in solution.order if key in homes]
    ended = (one for rows in over(snapshot).values() for one in rows)
    return (*(one for one in made if one is not None), *ended)


def _pod_events(
    snapshot: Snapshot, homes: Mapping[str, str], failures: Mapping[str, Reason], boundary: Boundary
) -> tuple[Event, ...]:
    def failed(key: str) -> Event:
        """Another code is another event; the words of one code may change with each pass."""
        pod, why = snapshot.pods[key], failures[key]
        event = _event(pod, "Warning", "FailedScheduling", f"Failed to schedule pod, {why.text}", _FAILED_FOR)
        return replace(event, dedupe=f"{event.dedupe}/{why.code}")

    def nominated(key: str) -> Event:
        return _event(snapshot.pods[key], "Normal", "Nominated", _where(snapshot, homes[key]), _NOMINATED_FOR)

    made = [boundary.run(f"pod/{key}", partial(failed, key), None) for key in failures]
    expected = [key for key in sorted(homes) if key in snapshot.pods.pending]
    made += [boundary.run(f"pod/{key}", partial(nominated, key), None) for key in expected]
    return tuple(event for event in made if event is not None)


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


def _pool_events(snapshot: Snapshot, solution: Solution, boundary: Boundary) -> tuple[Event, ...]:
    def event(name: str, why: PodRefusal) -> Event:
        pool = snapshot.node_pools[name]
        ref, uid = Ref.of(kinds.NODE_POOL, pool), pool.metadata.uid
        return Event(ref, uid, "Warning", why.code, why.text, dedupe=uid, dedupe_seconds=_NO_TYPES_FOR)

    problems = sorted(solution.pool_problems.items())
    made = [boundary.run(f"nodepool/{name}", partial(event, name, why), None) for name, why in problems]
    return tuple(one for one in made if one is not None)
