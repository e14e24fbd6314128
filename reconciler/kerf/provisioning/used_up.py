"""Pods that have no place because a quota of vCPUs is used up: which quota, and the edits that help.

A quota is the cause when a pod has a place with the offerings that the quota has closed, and none without them. So a
plain stock-out of a zone is never reported as a quota.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from typing import Final

from kerf.ec2.quotas import UsedUp, used_up
from kerf.model.aws.instance_type import OfferingKey
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Turn
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.edits import AddValue, PoolEdit
from kerf.scheduling.answers.explanation import cut
from kerf.scheduling.context import SolveContext, restocked
from kerf.scheduling.solve import NewNode, PodRefusal, Solution, SolveOptions, solve
from kerf.scheduling.work import Work
from kerf_api import labels

#: The code of the refusal.
QUOTA_USED_UP: Final = "QuotaUsedUp"
#: So many kinds of pods, quotas and sets of quotas are tried at most, and of so many kinds also edits of NodePools; so
#: many steps of work a trial, and characters of EC2's message.
_MOST_KINDS, _MOST_QUOTAS, _MOST_SETS, _MOST_EDITED, _STEPS, _MESSAGE = 300, 6, 20, 20, 5000, 160
_OTHER: Final = {labels.ON_DEMAND: labels.SPOT, labels.SPOT: labels.ON_DEMAND}

Closed = Mapping[UsedUp, frozenset[OfferingKey]]


def with_quotas(
    snapshot: Snapshot, pods: Sequence[Pod], solution: Solution, context: SolveContext, turn: Turn, only: str = ""
) -> Solution:
    """Return the solution of these pods; refusals because of used-up quotas name the quotas.

    `context` is that of the solution, `turn` that of the memory that it was made with. The pod with the key `only` is
    tried first.
    """
    closed = closed_by_quotas(snapshot) if solution.unplaced else {}
    if not closed:
        return solution
    kinds: dict[int, tuple[str, PodRefusal]] = {}
    for key, refusal in sorted(solution.unplaced.items(), key=lambda row: row[0] != only):
        kinds.setdefault(id(refusal), (key, refusal))
    by_key, trials = {pod.key: pod for pod in pods}, _Trials(snapshot, context, turn, closed)
    rows = [(by_key[key], refusal) for key, refusal in kinds.values() if key in by_key]
    answers: dict[int, PodRefusal] = {}
    for number, (pod, refusal) in enumerate(rows[:_MOST_KINDS]):
        with suppress(Exception):  # words are not worth a pass in which others have found places
            answers[id(refusal)] = trials.answer(pod, refusal, edited=number < _MOST_EDITED)
    unplaced = {key: answers.get(id(refusal), refusal) for key, refusal in solution.unplaced.items()}
    return replace(solution, unplaced=unplaced)


def closed_by_quotas(snapshot: Snapshot) -> Closed:
    """Return the used-up quotas with the offerings that each has closed."""
    if not snapshot.launch_failures or not snapshot.out_of_stock:
        return {}
    types = (one for catalogue in snapshot.catalogues.values() for one in catalogue)
    vcpus = {one.name: one.capacity["cpu"] // 1000 for one in types}
    found = used_up(snapshot.launch_failures.values(), snapshot.out_of_stock, vcpus, snapshot.now)
    return dict(list(found.items())[:_MOST_QUOTAS])


@dataclass(frozen=True, slots=True)
class _Trials:
    """Solves for single pods with other offerings or another NodePool than those of a snapshot.

    `worlds` are snapshots by the quotas that are not used up in them, each with its context.
    """

    snapshot: Snapshot
    context: SolveContext
    turn: Turn
    closed: Closed
    worlds: dict[tuple[UsedUp, ...], tuple[Snapshot, SolveContext]] = field(default_factory=dict)

    def answer(self, pod: Pod, refusal: PodRefusal, *, edited: bool) -> PodRefusal:
        """The refusal, with the quotas that are its cause, and the edits of NodePools that avoid them if `edited`."""
        if self._node(self.snapshot, pod, self.context) is not None:  # alone it has a place: others take its capacity
            return refusal
        found = {quota: node for quota in self.closed if (node := self._with(pod, (quota,))) is not None}
        found = found or self._smallest(pod)
        if not found:
            return refusal
        edits = tuple(dict.fromkeys(self._other_markets(pod, found))) if edited else ()
        text = "; ".join(str(replace(quota, message=cut(quota.message, _MESSAGE))) for quota in found)
        return replace(refusal, code=QUOTA_USED_UP, text=text, quotas=tuple(found), around=edits)

    def _smallest(self, pod: Pod) -> dict[UsedUp, NewNode]:
        """The fewest quotas that give the pod a node together, each with the node; empty when all of them do not."""
        names = tuple(self.closed)
        if len(names) < 2 or (node := self._with(pod, names)) is None:
            return {}
        sets = (some for number in range(2, len(names)) for some in combinations(names, number))
        for some in islice(sets, _MOST_SETS):
            if (fewer := self._with(pod, some)) is not None:
                return dict.fromkeys(some, fewer)
        return dict.fromkeys(names, node)

    def _with(self, pod: Pod, quotas: tuple[UsedUp, ...]) -> NewNode | None:
        """The new node of a pod when the offerings that these quotas have closed can be had again."""
        if quotas not in self.worlds:
            keys = frozenset().union(*(self.closed[quota] for quota in quotas))
            stock = {key: until for key, until in self.snapshot.out_of_stock.items() if key not in keys}
            open_again = replace(self.snapshot, out_of_stock=stock)
            self.worlds[quotas] = open_again, restocked(self.context, open_again, self.turn)
        snapshot, context = self.worlds[quotas]
        return self._node(snapshot, pod, context)

    def _other_markets(self, pod: Pod, found: Mapping[UsedUp, NewNode]) -> Iterator[PoolEdit]:
        """NodePools with the other capacity type, which another quota counts, where that gives the pod a node now."""
        for quota, node in found.items():
            pool = self.snapshot.node_pools[node.pool]
            edit = AddValue(pool.name, labels.CAPACITY_TYPE, _OTHER[quota.capacity_type])
            after = edit.made(pool)
            if after is not pool and self._node(self.snapshot.with_node_pools(after), pod) is not None:
                yield edit

    def _node(self, snapshot: Snapshot, pod: Pod, context: SolveContext | None = None) -> NewNode | None:
        known = context or restocked(self.context, snapshot, self.turn)
        options = SolveOptions(reasons=False)
        solution = solve(snapshot, (pod,), options, context=known, work=Work(_STEPS))
        return next((node for node in solution.new_nodes if pod.key in node.pods), None)
