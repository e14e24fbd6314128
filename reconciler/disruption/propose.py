"""The slow half: which nodes could be consolidated. Pure, but free to take seconds; it runs in a worker process.

Every candidate is taken away in a simulation, the one that saves most per disruption first and NodePools in turn. Moves
that are found are proposed together, each reckoning with the deletions before it; `decide` checks each again. A move
that was proposed before keeps its first time, so that one can see how long it has stood.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest
from typing import Final

from api.v1.budgets import UNDERUTILIZED
from reconciler.disruption import costs
from reconciler.disruption.balanced import BALANCED, Totals, totals
from reconciler.disruption.budgets import Ledger
from reconciler.disruption.candidates import Blocker, Candidate, candidate
from reconciler.disruption.command import Command
from reconciler.disruption.methods import by_savings
from reconciler.disruption.moves import Move, judge
from reconciler.disruption.pacing import probed
from reconciler.disruption.proposals import FRESH, consolidatable, versions
from reconciler.disruption.simulation import Scheduler, Solve
from reconciler.disruption.view import View, view
from reconciler.model.snapshot import Proposal, Snapshot
from reconciler.scheduling.claims import to_claim

#: How many candidates one run simulates, how many of them are always the most promising, and how many moves it names.
_SIMULATIONS: Final = 60
_ALWAYS: Final = 30
_MOVES: Final = 10


def propose(snapshot: Snapshot, ask: Solve | None = None) -> tuple[Proposal, ...]:
    """The moves found, the best first. `ask` is the scheduler that simulations use, by default the real one."""
    seen = view(snapshot)
    ledger = Ledger(seen)
    scheduler = ask if ask is not None else Scheduler(snapshot, seen.turn)
    found: list[Move] = []
    for one in probed(_ordered(_candidates(seen)), seen, _ALWAYS, _SIMULATIONS):
        if len(found) == _MOVES:
            break
        if not ledger.remaining(one.pool.name, UNDERUTILIZED):
            continue
        move = judged(seen, one, scheduler)
        if isinstance(move, Blocker):
            continue
        ledger.take(one.pool.name, one.key)
        found.append(move)
        if move.new is None:
            seen = _without(seen, one)
    return tuple(_proposal(snapshot, move) for move in found)


def _candidates(seen: View) -> Iterator[Candidate]:
    for key in sorted(seen.snapshot.state_nodes):
        if consolidatable(seen, key):
            found = candidate(seen, key)
            if isinstance(found, Candidate) and found.cost > costs.ONE:
                yield found


def _ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The best of each NodePool in turn, then the second of each, and so on."""
    by_pool: dict[str, list[Candidate]] = {}
    for one in candidates:
        by_pool.setdefault(one.pool.name, []).append(one)
    columns = [sorted(by_pool[name], key=by_savings) for name in sorted(by_pool)]
    return [one for row in zip_longest(*columns) for one in row if one is not None]


def judged(seen: View, one: Candidate, ask: Solve) -> Move | Blocker:
    """The candidate's move, unless there is none or its pool's policy finds it not worth the disruption."""
    whole = totals(seen, one.pool) if one.pool.spec.disruption.consolidation_policy == BALANCED else None
    if whole is not None and not _worth(whole, one, one.price):
        return _NOT_WORTH_IT
    move = judge(seen, one, ask)
    if isinstance(move, Blocker) or whole is None or _worth(whole, one, move.saving):
        return move
    return _NOT_WORTH_IT


_NOT_WORTH_IT: Final = Blocker("NotWorthIt", f"policy {BALANCED}: it would save too little for what it disrupts")


def _worth(whole: Totals, one: Candidate, saving: int) -> bool:
    return whole.approves(saving, one.cost)


def _without(seen: View, one: Candidate) -> View:
    """The view in which this candidate is on its way already."""
    going = Command(id="", reason=UNDERUTILIZED, started=seen.snapshot.now, created=True)
    return replace(seen, commands={**seen.commands, one.key: going})


def _proposal(snapshot: Snapshot, move: Move) -> Proposal:
    one = move.candidate
    id_ = hashlib.sha256(f"{move.kind} {one.claim.metadata.uid}".encode()).hexdigest()[:10]
    refs = (f"nodeclaim/{one.claim.name}", f"node/{one.node.name}", f"nodepool/{one.pool.name}")
    return Proposal(
        id=id_,
        reason=UNDERUTILIZED,
        kind=move.kind,
        candidates=(one.key,),
        replacements=() if move.new is None else (to_claim(snapshot, move.new, salt=id_),),
        saving=move.saving,
        versions=versions(snapshot, refs),
        pods=frozenset(pod.metadata.uid for pod in one.movable),
        made_at=_first_made(snapshot, id_),
    )


def _first_made(snapshot: Snapshot, id_: str) -> datetime:
    """When this move was first proposed, if it has been proposed ever since; else now."""
    known = [p.made_at for p in snapshot.proposals if p.id == id_ and p.made_at is not None]
    fresh = [made for made in known if snapshot.now - made < FRESH]
    return min(fresh, default=snapshot.now)
