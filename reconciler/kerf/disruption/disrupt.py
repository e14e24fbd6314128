"""Disruption: what must be disrupted, what may be disrupted, and how far that has come. One snapshot in, one plan out.

Forceful ends come first (interruption, impairment, expiration, repair, the surplus of static pools), then the commands
under way, then what is left of old ones, the conditions that others read, and last new commands, as far as budgets
allow, with a word on nodes that have to stay; and what those that have gone really saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from kerf.disruption.asking import Scheduler, Solve
from kerf.disruption.candidates.budgets import Ledger
from kerf.disruption.commands import heal, progress
from kerf.disruption.consolidation.savings import measure
from kerf.disruption.drift.conditions import conditions
from kerf.disruption.drift.rollout import rollout
from kerf.disruption.forced.expiration import expire
from kerf.disruption.forced.impairment import impaired
from kerf.disruption.forced.interruption import interrupt
from kerf.disruption.forced.repair import repair
from kerf.disruption.forced.surplus import surplus
from kerf.disruption.methods.methods import METHODS, Method
from kerf.disruption.on_nodes import tried
from kerf.disruption.share import Share
from kerf.disruption.standing import staying
from kerf.disruption.view import View, view
from kerf.model.memory import Memory, Turn
from kerf.model.noting import Room
from kerf.model.plan import NOTHING, DeleteObject, Plan, Reason, Refusal, Source, joined
from kerf.model.snapshot import Snapshot

#: Of the batch it reads only `waits_for_first_pass`; back-offs of evictions delay drains, no command.
DISRUPTION: Final = Room("disruption", unread=("batch", "inventories"), apart=(("not_before", "eviction/"),))
#: What a command rests on: a node is judged by its pods, and by the budgets that protect them and it.
_SEEN = frozenset({Source.NODE_POOLS, Source.NODE_CLAIMS, Source.NODES, Source.PODS, Source.PDBS})


def disrupt(
    snapshot: Snapshot, ask: Solve | None = None, turn: Turn | None = None, methods: Sequence[Method] = METHODS
) -> Plan:
    """What disruption wants of this snapshot. `ask` is the scheduler that simulations use, by default the real one;
    `methods` are what begins commands, in their order."""
    turn = turn or Memory().turn(snapshot)
    forced = forced_ends(snapshot, turn)
    return forced + tried(
        snapshot, "disruption", lambda: _chosen(turn, _deleted(forced), ask or Scheduler(snapshot, turn), methods)
    )


def forced_ends(snapshot: Snapshot, turn: Turn) -> Plan:
    """What must be disrupted now, whatever budgets say. No cause takes the others with it when it fails."""
    forced = tried(snapshot, "interruption", partial(interrupt, snapshot))
    forced += tried(snapshot, "impairment", partial(impaired, snapshot, _deleted(forced)))
    forced += tried(snapshot, "expiration", partial(expire, turn))
    forced += tried(snapshot, "repair", partial(repair, turn, _deleted(forced)))
    return forced + tried(snapshot, "static NodePools", partial(surplus, turn, _deleted(forced)))


def _deleted(plan: Plan) -> frozenset[str]:
    """The claims that a plan deletes."""
    return frozenset(action.ref.name for action in plan.actions if isinstance(action, DeleteObject))


def _chosen(turn: Turn, ending: frozenset[str], ask: Solve, methods: Sequence[Method]) -> Plan:
    """Voluntary disruption; no failure here takes a forceful end with it."""
    seen = replace(view(turn.snapshot, turn), ending=ending)
    ledger = Ledger(seen)
    for name in sorted(ending):
        ledger.take(seen.snapshot.node_claims[name].pool_name, name)
    parts: tuple[tuple[str, Callable[[], Plan]], ...] = (
        ("commands", partial(progress, seen)),
        ("former commands", partial(heal, seen)),
        ("disruption methods", partial(_started, seen, ledger, ask, methods)),
        ("nodes that stay", partial(staying, seen, ledger)),
        ("claim conditions", partial(conditions, seen)),
        ("rollout", partial(rollout, seen)),
        ("savings", partial(measure, seen)),
    )
    return joined(tried(seen.snapshot, name, part) for name, part in parts)


def _started(seen: View, ledger: Ledger, ask: Solve, methods: Sequence[Method]) -> Plan:
    """New commands, of the methods that can see what they rest on."""
    unready, shares = not_yet(seen.snapshot), {method.name: _share(method, seen.snapshot, ask) for method in methods}
    if unready is not None:
        return unready + _left_over(seen.snapshot, shares)
    plans = [
        _blind(seen.snapshot, method.sources) or _tried(method, seen, ledger, shares[method.name]) for method in methods
    ]
    return joined((*plans, _left_over(seen.snapshot, shares)))


def _share(method: Method, snapshot: Snapshot, ask: Solve) -> Share:
    return Share(ask, frozenset(key for name, key in snapshot.candidates_left_over if name == method.name))


def _left_over(snapshot: Snapshot, shares: Mapping[str, Share]) -> Plan:
    """A method that began nothing leaves as many over as before."""
    there = snapshot.state_nodes
    left = frozenset((name, key) for name, share in shares.items() for key in share.left_over(there))
    return Plan(candidates_left_over=left) if left else NOTHING


def not_yet(snapshot: Snapshot) -> Plan | None:
    """A refusal of new commands of any kind while too little is known; None when enough is."""
    return _blind(snapshot, _SEEN) or _new_here(snapshot)


def _new_here(snapshot: Snapshot) -> Plan | None:
    """A refusal of new commands while a process that has just begun has not looked where the waiting pods may be
    placed.

    What the one before had promised them is not known any more: a node that they are about to be bound to looks empty.
    """
    if not waits_for_first_pass(snapshot):
        return None
    reason = Reason("PodsPending", "waiting for the first provisioning pass")
    return Plan(refusals=(Refusal("disruption", reason),))


def waits_for_first_pass(snapshot: Snapshot) -> bool:
    """Whether pods wait, and this process has not decided yet where they may be placed."""
    return snapshot.batch is not None and snapshot.batch.maiden


def _tried(method: Method, seen: View, ledger: Ledger, share: Share) -> Plan:
    return tried(seen.snapshot, f"disruption/{method.name}", lambda: method.run(seen, ledger, share))


def _blind(snapshot: Snapshot, sources: Iterable[Source]) -> Plan | None:
    """A refusal of new commands while the pods of the nodes are unknown, say; None when everything is known."""
    old = sorted(str(source) for source in sources if not snapshot.fresh(source))
    if not old:
        return None
    reason = Reason("StaleSource", f"waiting for a complete list of {', '.join(old)}")
    return Plan(refusals=(Refusal("disruption", reason),))
