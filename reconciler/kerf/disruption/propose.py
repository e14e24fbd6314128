"""The slow half: which nodes could be consolidated. Pure, but free to take seconds; it runs in a worker process.

The cluster is considered as a whole: first the set of nodes that can all be removed, then a set that cheaper nodes
replace, and last single candidates, the one that saves most per disruption first and NodePools in turn. Moves that are
found are proposed together, each reckoning with those before it; `decide` checks each again. A move that was proposed
before keeps its first time, so that one can see how long it has stood.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Final

from kerf.disruption.asking import Scheduler, Solve
from kerf.disruption.candidates import costs
from kerf.disruption.candidates.budgets import Ledger
from kerf.disruption.candidates.candidates import Blocker, Candidate, candidate
from kerf.disruption.candidates.pacing import failed_lately, probed
from kerf.disruption.consolidation.balanced import Policy
from kerf.disruption.consolidation.eligibility import consolidation_blockers
from kerf.disruption.consolidation.moves import Move
from kerf.disruption.consolidation.proposals import FRESH, consolidatable, versions
from kerf.disruption.consolidation.search import Bounded, deletable, replaceable, single, without
from kerf.disruption.consolidation.worth import shortfall
from kerf.disruption.methods.methods import by_savings
from kerf.disruption.view import View, view
from kerf.model import backoff
from kerf.model.kubernetes.pods import next_protection_end
from kerf.model.memory import Memory
from kerf.model.plan import Reason
from kerf.model.snapshot import Findings, Proposal, Snapshot
from kerf.scheduling.answers.nodeclaims import to_claim
from kerf_api.v1.budgets import UNDERUTILIZED, rows

#: How many candidates one run simulates alone, how many of them are always the most promising, and how many such moves
#: it names.
_SIMULATIONS: Final = 60
_ALWAYS: Final = 30
_MOVES: Final = 10
#: An answer is taken to be the same for so long at most.
_LONGEST: Final = timedelta(minutes=10)


def propose(snapshot: Snapshot, ask: Solve | None = None, memory: Memory | None = None) -> tuple[Proposal, ...]:
    """The moves found, as `consider` has them."""
    return consider(snapshot, ask, memory).proposals


def consider(snapshot: Snapshot, ask: Solve | None = None, memory: Memory | None = None) -> Findings:
    """The moves found, in the order in which they reckon with each other: deletions, then what is replaced; and why
    nodes that were looked at alone stay.

    `ask` is the scheduler that simulations use, by default the real one; a `memory` spares working out again what has
    not changed since it was last given, and changes no answer.
    """
    seen = view(snapshot, (memory or Memory()).turn(snapshot))
    scheduler = Bounded(ask if ask is not None else Scheduler(snapshot, seen.turn), len(snapshot.pods))
    ledger, policy = Ledger(seen), Policy(seen)
    order = sorted(_candidates(seen), key=by_savings)
    alone = [one for one in order if policy.approves([one], one.price) and shortfall(seen, [one], 0) is None]
    gone = deletable(seen, alone, ledger, scheduler)
    found = [Move((one,), (), one.price, one.price) for one in gone]
    seen = _taken(seen, ledger, gone)
    left = [one for one in order if one.key not in seen.commands]
    several = replaceable(seen, ledger.affordable(left, UNDERUTILIZED), policy, scheduler)
    if several is not None:
        found.append(several)
        seen = _taken(seen, ledger, several.candidates)
    rest = [one for one in left if one.key not in seen.commands]
    kept: dict[str, Reason] = {}
    for one, outcome in _single(seen, rest, ledger, policy, scheduler):
        if isinstance(outcome, Blocker):
            kept[one.key] = Reason(outcome.code, outcome.text)
        else:
            found.append(outcome)
    proposals = tuple(_proposal(snapshot, move) for move in found)
    until = min(_ends(seen, proposals)) if not scheduler.exhausted and _settled(snapshot) else None
    return Findings(proposals, kept, until)


def _settled(snapshot: Snapshot) -> bool:
    """Whether one run looks at every node, and no node or pod is on its way, for which there are many deadlines."""
    if len(snapshot.state_nodes) > _SIMULATIONS or any(snapshot.pods.pending):
        return False
    return all(state.initialized and not state.deleting for state in snapshot.state_nodes.values())


def _ends(seen: View, proposals: Iterable[Proposal]) -> Iterator[datetime]:
    """When the answer may be another one although nothing has changed: at the end of a back-off of a node or NodePool,
    of a pause, of a minimum age, of a wait for approval, of a pod's protection, of a budget's window, and when a
    proposal gets a new time. Costs that go by the age of a node order moves and make none; for what else may go by the
    time there is an upper limit."""
    now = seen.snapshot.now
    yield now + _LONGEST
    yield from (one.made_at + FRESH for one in proposals if one.made_at is not None)
    for state in seen.snapshot.state_nodes.values():
        pool = seen.snapshot.node_pools.get(state.pool_name)
        if (failed := failed_lately(seen, state)) is not None and failed.until is not None:
            yield failed.until
        if state.claim is not None and pool is not None:
            waits = (one.until for one in consolidation_blockers(seen, state, pool))
            yield from (end for end in waits if end is not None and end > now)
        if (end := next_protection_end(seen.snapshot.pods.on(state.name), now)) is not None:
            yield end
    for pool in seen.snapshot.node_pools.values():
        held = backoff.until(pool, now)
        if held is not None and held > now:
            yield held
        with suppress(ValueError):  # budgets that cannot be evaluated allow nothing at any time
            found = rows(budgets=pool.spec.disruption.budgets, nodes=0, now=now, reason=UNDERUTILIZED)
            yield from (row.changes for row in found if row.changes is not None)


def _taken(seen: View, ledger: Ledger, gone: Sequence[Candidate]) -> View:
    """The view in which these are on their way, after their budgets have been taken from."""
    for one in gone:
        ledger.take(one.pool.name, one.key)
    return without(seen, gone)


def _single(
    seen: View, left: Sequence[Candidate], ledger: Ledger, policy: Policy, ask: Bounded
) -> Iterator[tuple[Candidate, Move | Blocker]]:
    """Candidates with their moves, or why they have none; those of the NodePools in turn."""
    number = 0
    for one in probed(interleaved(left), seen, _ALWAYS, _SIMULATIONS):
        if number == _MOVES or ask.exhausted:
            return
        if not ledger.remaining(one.pool.name, UNDERUTILIZED):
            continue
        move = single(seen, one, policy, ask)
        yield one, move
        if isinstance(move, Blocker):
            continue
        number += 1
        ledger.take(one.pool.name, one.key)
        seen = seen if move.new else without(seen, [one])


def _candidates(seen: View) -> Iterator[Candidate]:
    for key in sorted(seen.snapshot.state_nodes):
        if consolidatable(seen, key):
            found = candidate(seen, key)
            if isinstance(found, Candidate) and found.cost > costs.ONE:
                yield found


def interleaved(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The best of each NodePool in turn, then the second of each, and so on."""
    by_pool: dict[str, list[Candidate]] = {}
    for one in candidates:
        by_pool.setdefault(one.pool.name, []).append(one)
    columns = [sorted(by_pool[name], key=by_savings) for name in sorted(by_pool)]
    return [one for row in zip_longest(*columns) for one in row if one is not None]


def _proposal(snapshot: Snapshot, move: Move) -> Proposal:
    going = move.candidates
    uids = " ".join(one.claim.metadata.uid for one in going)
    id_ = hashlib.sha256(f"{move.kind} {uids}".encode()).hexdigest()[:10]
    refs = {ref for one in going for ref in (f"nodeclaim/{one.claim.name}", f"node/{one.node.name}")}
    refs |= {f"nodepool/{one.pool.name}" for one in going}
    return Proposal(
        id=id_,
        reason=UNDERUTILIZED,
        kind=move.kind,
        candidates=tuple(one.key for one in going),
        replacements=tuple(to_claim(snapshot, new, salt=id_) for new in move.new),
        saving=move.saving,
        versions=versions(snapshot, refs),
        pods=frozenset(pod.metadata.uid for one in going for pod in one.movable),
        made_at=_first_made(snapshot, id_),
    )


def _first_made(snapshot: Snapshot, id_: str) -> datetime:
    """When this move was first proposed, if it has been proposed ever since; else now."""
    known = [p.made_at for p in snapshot.proposals if p.id == id_ and p.made_at is not None]
    fresh = [made for made in known if snapshot.now - made < FRESH]
    return min(fresh, default=snapshot.now)
