"""What would become of the pods if some nodes were removed: the scheduler is asked, as it would be for pending pods.

Pods that are pending, and those of nodes that are already on their way, take part, because they want the same room; but
only the candidates' own pods decide the answer, and the latter where these would take their places: what was stuck
before is no reason to keep a node. Nor is a successor that has not joined yet: where the scheduler sends a candidate's
pod there, it is asked whether another pod can have that place. The virtual pods of CapacityBuffers take part, too: a
node whose end would take their room costs what it takes to make room again, and stays where there can be none. Source:
disruption reference §3.1, §3.10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.asking import NO_POOLS, Manner, Scheduler, Solve
from kerf.disruption.candidates.candidates import Blocker, Candidate
from kerf.disruption.view import View
from kerf.model.boundaries import broken
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Step
from kerf.pods.buffer_pods import settled_pods, virtual_pods
from kerf.pods.default_constraints import DefaultSpread
from kerf.scheduling.answers.solution import NewNode, PodRefusal, Solution
from kerf.scheduling.facts.joining import NOT_INITIALIZED, Limit, limits_of
from kerf.scheduling.placing.pod_parts import has_terms
from kerf.scheduling.work import WORK_BUDGET
from kerf_api import labels
from kerf_api.texts import counted

#: By `namespace/name`.
Pods = dict[str, Pod]
_SHOWN = 5
#: So many NodePools that make no such node are passed over at most in the search for a successor.
_MOST_POOLS = 8
#: Of candidates whose pods, with all that take part, are more work than one candidate may take.
_TOO_MUCH_WORK: Final = Blocker(
    WORK_BUDGET,
    "finding nodes for its pods needs more work than the limit for one node: too many pods, of this node or pending, "
    "have constraints of their own; give them equal affinities and spreads, or drain the node by hand",
)
#: A pod has left its node so long after the removal of the node began, unless something keeps it there.
_MOVED_WITHIN: Final = timedelta(minutes=5)
#: Of candidates that take pods of nodes that are being removed.
_PLACE_OF_OTHERS: Final = Blocker(
    "PlaceOfOthers", "pods of nodes that are being removed have their place on it, and no other yet", quiet=True
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """`new_nodes` are those that candidates' pods need and that may be made; `stranded` maps pods without a place to
    the reason, `barred` those of other nodes to the limit by which these may not be made. Pods that take part and get
    no node by such a limit are `waiting`. `failed` says why none of that is known."""

    new_nodes: tuple[NewNode, ...] = ()
    stranded: Mapping[str, str] = field(default_factory=dict)
    failed: Blocker | None = None
    barred: Mapping[str, Limit] = field(default_factory=dict)
    waiting: Set[str] = frozenset()

    @property
    def blocker(self) -> Blocker | None:
        """Why the candidates stay, with the first few pods that have no place, for a person."""
        if self.failed is not None:
            return self.failed
        if self.barred:
            return _barred_by(next(iter(self.barred.values())))
        if not self.stranded:
            return None
        rows = [f"pod {key}: {why}" for key, why in sorted(self.stranded.items())]
        more = f" and {counted(len(rows) - _SHOWN, 'more pod')}" if len(rows) > _SHOWN else ""
        return Blocker("PodsWouldNotSchedule", f"not all pods would schedule: {'; '.join(rows[:_SHOWN])}{more}")


def simulate(
    view: View,
    candidates: Sequence[Candidate],
    ask: Solve,
    manner: Manner,
    beside: Sequence[NewNode] = (),
    *,
    must_go: bool = False,
) -> Outcome:
    """Take the candidates away and place their pods; nodes that are planned for them may be there already. Nodes that
    `must_go` are removed anyway."""
    try:
        return _simulated(view, candidates, ask, manner, beside, must_go=must_go)
    except Exception as error:
        reason = broken(error)
        return Outcome(failed=Blocker(reason.code, f"finding places for its pods failed: {reason.text}"))


def _simulated(
    view: View, candidates: Sequence[Candidate], ask: Solve, manner: Manner, beside: Sequence[NewNode], *, must_go: bool
) -> Outcome:
    """As by the scheduler alone. Where nodes may not be made by that, in another way, if these do.

    Pods that take part and get no node for that reason are left out: without them the others may have another kind of
    node. Where candidates must go, the NodePools of such nodes make none, and the next ones may do. Others can wait:
    a change is not rolled out to a NodePool that does not have it, and no node moves there and back.
    """
    found = _outcome(view, candidates, ask, manner, beside)
    if not found.barred:
        return found
    if found.waiting:
        one = _outcome(view, candidates, _Otherwise(ask, left_out=found.waiting), manner, beside)
        if _does(one, found):
            return one
    barred, shut = found.barred, frozenset[str]()
    while must_go and len(shut) < min(len(view.snapshot.node_pools) - 1, _MOST_POOLS):
        more = shut.union(limit.pool for limit in barred.values())
        if more == shut:
            break
        shut = more
        one = _outcome(view, candidates, _Otherwise(ask, shut=shut), manner, beside)
        if _does(one, found):
            return one
        barred = one.barred
    return found


def _does(one: Outcome, found: Outcome) -> bool:
    """Whether all nodes may be made, and no more pods have no place."""
    return one.failed is None and not one.barred and one.stranded.keys() <= found.stranded.keys()


@dataclass(frozen=True, slots=True)
class _Otherwise:
    """The scheduler, asked about the pods that are not `left_out`, while the `shut` NodePools make no nodes."""

    solve: Solve
    left_out: Set[str] = frozenset()
    shut: frozenset[str] = NO_POOLS

    def __call__(
        self,
        some: Sequence[Pod],
        exclude: frozenset[str],
        manner: Manner,
        beside: Sequence[NewNode] = (),
        shut: frozenset[str] = NO_POOLS,
        /,
    ) -> Solution:
        asked = [pod for pod in some if pod.key not in self.left_out]
        return self.solve(asked, exclude, manner, beside, self.shut | shut)


def _outcome(
    view: View, candidates: Sequence[Candidate], ask: Solve, manner: Manner, beside: Sequence[NewNode]
) -> Outcome:
    moving, leaving, virtual = on_the_move(view, candidates)
    others = {**view.snapshot.pods.pending, **leaving}
    exclude = closed(view, candidates)
    wanted = {**virtual, **others, **moving}
    solution = ask([wanted[key] for key in sorted(wanted)], exclude, manner, beside)
    seated = moving.keys() & solution.placed.keys()
    soon, asked = _lately(view), [wanted[key] for key in sorted(others)]
    homeless = _homeless(view, leaving, solution, soon) - moving.keys()
    before = ask(asked, exclude, manner, beside) if homeless and seated else solution
    displaced = homeless - _homeless(view, leaving, before, soon)
    evicted = {key for key, pod in leaving.items() if pod.spec.node_name in soon}
    if evicted & (homeless - displaced):
        own = {one.key for one in candidates}
        there = ask(asked, exclude - own, manner, beside)
        housed = homeless - displaced - _homeless(view, leaving, there, soon)
        if evicted & housed and any(there.placed.get(key) in own for key in evicted):
            return Outcome(failed=_PLACE_OF_OTHERS)
    owing = {*moving, *virtual, *displaced}
    staying = {*moving, *displaced, *(settled_pods(view.turn) if manner is not Manner.FREELY else ())}
    if any(key in staying and refusal.code == WORK_BUDGET for key, refusal in solution.unplaced.items()):
        return Outcome(failed=_TOO_MUCH_WORK)
    stranded = _stranded(view, solution, staying)
    if manner is Manner.FREELY and not beside and stranded and staying.isdisjoint(solution.unplaced):
        apart = _apart(view, solution, moving, {**virtual, **others}, exclude, ask)
        if apart is not None:
            return Outcome(apart.new_nodes)
    needed = tuple(node for node in solution.new_nodes if not owing.isdisjoint(node.pods))
    limits = limits_of(view.turn)
    bars = [(one, limit) for one in solution.new_nodes if (limit := limits.bars(one)) is not None]
    barred = {key: limit for one, limit in bars if not staying.isdisjoint(one.pods) for key in one.pods}
    allowed = tuple(one for one in needed if limits.bars(one) is None)
    return Outcome(allowed, stranded, barred=barred, waiting=_waiting(view, bars) - staying if barred else frozenset())


def _waiting(view: View, bars: Iterable[tuple[NewNode, Limit]]) -> Set[str]:
    """The pods of nodes that may not be made, without those that provisioning has found another place for."""
    promised = view.snapshot.promises
    known = view.snapshot.pods.by_key
    keys = {key for one, _ in bars for key in one.pods}
    return {key for key in keys if key not in known or known[key].metadata.uid not in promised}


def not_made(view: View, new: Iterable[NewNode]) -> Blocker | None:
    """Why these new nodes may not be made beside late ones of their NodePools, each of which makes one at most."""
    limits, counts = limits_of(view.turn), Counter[str]()
    for one in new:
        if (limit := limits.of(one)) is not None:
            counts[limit.pool] += 1
            if counts[limit.pool] > limit.left:
                return _barred_by(limit)
    return None


def _barred_by(limit: Limit) -> Blocker:
    such = "further node like its late ones until one of that kind" if limit.alike else "other node for now until one"
    return Blocker(NOT_INITIALIZED, f"NodePool {limit.pool} launches no {such} is initialized", quiet=True)


def _apart(
    view: View, solution: Solution, moving: Pods, others: Pods, exclude: frozenset[str], ask: Solve
) -> Solution | None:
    """Where the candidates' pods would be placed apart from the others: on new nodes, or on initialized ones that are
    no other pod's place.

    None when one has no place, or when that costs more than the solution, by which some wait for a node. None as well
    where the answers are no answer for all together: to pods with spreads or inter-pod terms, and with new nodes that
    limits of a NodePool or a reservation count.
    """
    if mind_others(view, (*moving.values(), *others.values())):
        return None
    before = ask([others[key] for key in sorted(others)], exclude, Manner.FREELY)
    unready = (key for key, state in view.snapshot.state_nodes.items() if not state.initialized)
    shut = exclude.union(unready, before.placed.values())
    alone = ask([moving[key] for key in sorted(moving)], shut, Manner.FREELY)
    if alone.unplaced or not before.unplaced.keys() <= solution.unplaced.keys():
        return None
    if limited(view, alone.new_nodes):
        return None
    return alone if before.price + alone.price <= solution.price else None


def mind_others(view: View, some: Iterable[Pod]) -> bool:
    """Whether more than free resources decides on the places of pods: spreads, default ones included, inter-pod terms,
    or device claims."""
    return any(has_terms(pod) or pods.claims_devices(pod) for pod in DefaultSpread(view.snapshot).given(some))


def limited(view: View, new: Iterable[NewNode]) -> bool:
    """Whether limits of a NodePool or a reservation count one of the new nodes, or its NodePool makes one at a time."""
    pools, limits = view.snapshot.node_pools, limits_of(view.turn)
    return any(
        labels.RESERVED in one.capacity_types or pools[one.pool].spec.limits or limits.of(one) is not None
        for one in new
    )


def unhoused(view: View, one: Candidate, ask: Scheduler, manner: Manner, *, open_new: bool) -> dict[str, PodRefusal]:
    """The candidate's own pods that would have no place, with the account of why; without `open_new` those that fit on
    none of the other nodes. They are placed `FREELY` or `SPARING`."""
    moving, leaving, virtual = on_the_move(view, [one])
    wanted = {**virtual, **view.snapshot.pods.pending, **leaving, **moving}
    pods_, sparing = [wanted[key] for key in sorted(wanted)], manner is Manner.SPARING
    found = ask.refusals(pods_, closed(view, [one]), open_new=open_new, sparing=sparing)
    return {key: refusal for key, refusal in found.items() if key in moving}


def on_the_move(view: View, candidates: Sequence[Candidate]) -> tuple[Pods, Pods, Pods]:
    """The candidates' pods that leave, those of nodes that are removed anyway, and those of CapacityBuffers."""
    moving = leavers(view, (c.node.name for c in candidates))
    leaving = leavers(view, _going(view, {c.key for c in candidates}))
    return moving, leaving, {pod.key: pod for pod in virtual_pods(view.turn)}


def closed(view: View, candidates: Sequence[Candidate]) -> frozenset[str]:
    """The nodes that take no pods."""
    return frozenset({c.key for c in candidates} | view.commands.keys())


def leavers(view: View, node_names: Iterable[str]) -> Pods:
    """The pods of these nodes that can be evicted at all, now or later; one that cannot stays until its node's end."""
    each, found = view.each, Pods()
    for name in node_names:
        own: Pods = _leavers_of(view, name)[0] if view.supposed else view.turn.one(_LEAVERS, each, name)
        found |= own
    return found


def _going(view: View, others: set[str]) -> list[str]:
    """The names of the nodes that are being deleted or are about to be, besides others."""
    states = view.snapshot.state_nodes
    return [node.name for key in sorted(_removed(view) - others) if (node := states[key].node) is not None]


def _removed(view: View) -> set[str]:
    return {*view.commands, *view.turn.all(_DELETING, view.each).spoken}


def _homeless(view: View, leaving: Pods, solution: Solution, soon: Mapping[str, bool]) -> set[str]:
    """Those of the leaving pods, by key, that have no place; a pod that is evicted now has none on a node that has not
    joined: it would wait for that. `soon` are the nodes of `_lately`."""
    states = view.snapshot.state_nodes
    late = {key for key, place in solution.placed.items() if place in states and not states[place].initialized}
    waiting = {key for key in late & leaving.keys() if soon.get(leaving[key].spec.node_name)}
    return (leaving.keys() - solution.placed.keys()) | waiting


def _lately(view: View) -> dict[str, bool]:
    """By name, those whose removal has begun a short while ago, and whether they are deleted: a pod that is still there
    later is stuck."""
    found, before = dict[str, bool](), view.snapshot.now - _MOVED_WITHIN
    for key in _removed(view):
        state, command = view.snapshot.state_nodes[key], view.commands.get(key)
        deleted = [one.metadata.deletion_timestamp for one in (state.claim, state.node) if one is not None]
        begun = min((at for at in deleted if at is not None), default=command.started if command is not None else None)
        if state.node is not None and begun is not None and begun > before:
            found[state.node.name] = state.deleting or (command is not None and not command.replacements)
    return found


def _stranded(view: View, solution: Solution, moving: Collection[str]) -> dict[str, str]:
    """Of these pods, by key, those that have no place."""
    lost = {key: refusal.text for key, refusal in solution.unplaced.items() if key in moving}
    for key in moving:
        target = solution.placed.get(key)
        state = view.snapshot.state_nodes.get(target) if target is not None else None
        if state is not None and not state.initialized:
            lost[key] = f"would move to {state.name}, which is not initialized"
    return lost


def _deleting(view: View, key: str) -> tuple[bool, None]:
    return view.snapshot.state_nodes[key].deleting, None


_DELETING: Step[View, bool] = Step("deleting nodes", "state_nodes", _deleting, speaks=bool)


def _leavers_of(view: View, node_name: str) -> tuple[Pods, datetime | None]:
    on_node, now = view.pods_on(node_name), view.snapshot.now
    return {pod.key: pod for pod in on_node if _leaves(view, pod)}, pods.next_protection_end(on_node, now)


def _leaves(view: View, pod: Pod) -> bool:
    now = view.snapshot.now
    held = pods.active(pod) and pods.protected(pod, now)
    return pods.reschedulable(pod) and not held and not view.pdbs.forbids(pod, now)


_LEAVERS: Step[View, Pods] = Step("leavers", "nodes", _leavers_of, speaks=lambda _: False)
