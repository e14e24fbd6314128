"""Disruption: what must go, what may go, and how far that has come. One snapshot in, one plan out.

Forceful ends come first (interruption, expiration), then the commands under way, then what is left of old ones, the
conditions that others read, and last new commands, as far as budgets allow, with a word on nodes that have to stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconciler.disruption.budgets import Ledger
from reconciler.disruption.commands import heal, progress
from reconciler.disruption.conditions import conditions
from reconciler.disruption.expiration import expire
from reconciler.disruption.interruption import interrupt
from reconciler.disruption.methods import METHODS
from reconciler.disruption.simulation import Scheduler, Solve
from reconciler.disruption.standing import staying
from reconciler.disruption.view import View, view
from reconciler.model.memory import Memory, Turn
from reconciler.model.plan import DeleteObject, Plan, Reason, Refusal, Source, joined
from reconciler.model.snapshot import Snapshot

#: What a command rests on: a node is judged by its pods, and by the budgets that protect them and it.
_SEEN = frozenset({Source.NODE_POOLS, Source.NODE_CLAIMS, Source.NODES, Source.PODS, Source.PDBS})


def disrupt(snapshot: Snapshot, ask: Solve | None = None, turn: Turn | None = None) -> Plan:
    """What disruption wants of this snapshot. `ask` is the scheduler that simulations use, by default the real one."""
    turn = turn or Memory().turn(snapshot)
    forced = [interrupt(snapshot), expire(turn)]
    ending = frozenset(a.ref.name for plan in forced for a in plan.actions if isinstance(a, DeleteObject))
    seen = replace(view(snapshot, turn), ending=ending)
    ledger = Ledger(seen)
    for name in sorted(ending):
        ledger.take(snapshot.node_claims[name].pool_name, name)
    under_way = [progress(seen), heal(seen)]
    scheduler = ask if ask is not None else Scheduler(snapshot)
    started = _started(seen, ledger, scheduler)
    return joined([*forced, *under_way, started, staying(seen, ledger), conditions(seen)])


def _started(seen: View, ledger: Ledger, ask: Solve) -> Plan:
    """New commands, of the methods that can see what they rest on."""
    blind = _blind(seen.snapshot, _SEEN)
    if blind is not None:
        return blind
    return joined(_blind(seen.snapshot, m.sources) or m.run(seen, ledger, ask) for m in METHODS)


def _blind(snapshot: Snapshot, sources: Iterable[Source]) -> Plan | None:
    """A refusal of new commands while nobody knows what is on the nodes, say; None when everything is known."""
    old = sorted(str(source) for source in sources if not snapshot.fresh(source))
    if not old:
        return None
    reason = Reason("StaleSource", f"waiting for a complete list of {', '.join(old)}")
    return Plan(refusals=(Refusal("disruption", reason),))
