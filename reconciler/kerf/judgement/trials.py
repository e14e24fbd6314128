"""Search for a change that would unblock a node: apply changes one by one, and judge the node by the same rules.

The number of tries is bounded. A change helps when no lasting blocker of the same disruption remains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kerf.disruption.asking import Scheduler, Solve
from kerf.disruption.candidates.candidates import unblocked
from kerf.disruption.view import View
from kerf.judgement.changes import Change, OfPods, OfPool, Unmark
from kerf.judgement.suggesting import suggested
from kerf.judgement.values import End, Remedies, Remedy

#: The most changes that are tried for one disruption.
MOST_TRIES: Final = 30

#: Judges the disruption of the same code for this node (a key of `state_nodes`) in another view, by another scheduler.
Judge = Callable[[View, str, Solve], End]


def remedies(view: View, key: str, end: End, ask: Solve, judge: Judge) -> Remedies:
    """Return the first change of pods that helps, the first of another object that helps, and the number of tries."""
    found: dict[bool, Remedy] = {}
    tried, before = 0, {hold.code for hold in end.open}
    halfway: tuple[str, str] | None = None
    for change in suggested(view, unblocked(view, key), end, ask):
        of_pods = isinstance(change, (OfPods, Unmark))
        if of_pods in found:
            continue
        if tried == MOST_TRIES:
            break
        tried += 1
        after = _after(view, key, ask, judge, change)
        if after.wanted and not after.open:
            found[of_pods] = Remedy(str(change), after.saving, change.patch(view.snapshot))
        elif halfway is None and after.open and before.isdisjoint(hold.code for hold in after.open):
            halfway = str(change), str(after.open[0])
    kept = tuple(sorted(found.values(), key=lambda one: -one.saving))
    return Remedies(kept, tried, None if kept else halfway)


def _after(view: View, key: str, ask: Solve, judge: Judge, change: Change) -> End:
    changed = replace(view, snapshot=change.made(view.snapshot))
    if isinstance(change, OfPool) and isinstance(ask, Scheduler):
        ask = ask.with_pool(changed.snapshot.node_pools[change.edit.pool])
    if isinstance(change, OfPods) and change.of_others and isinstance(ask, Scheduler):
        ask = Scheduler(changed.snapshot)
    return judge(changed, key, ask)
