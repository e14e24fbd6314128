"""Events about consolidation: nodes that it never looks at, nodes for which something cheaper was found, moves that
were approved, and moves that were dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from kerf.disruption.candidates.candidates import Candidate
from kerf.disruption.consolidation.balanced import K, Policy
from kerf.disruption.consolidation.consequences import evicted
from kerf.disruption.consolidation.eligibility import consolidation_blockers
from kerf.disruption.consolidation.moves import REPLACE
from kerf.disruption.consolidation.proposals import eligible
from kerf.disruption.consolidation.worth import TOO_LITTLE, unreadable
from kerf.disruption.drift.conditions import CONSOLIDATABLE
from kerf.disruption.on_nodes import node_events
from kerf.disruption.view import View
from kerf.model import kinds
from kerf.model.instants import rfc3339
from kerf.model.plan import Event
from kerf.model.snapshot import Proposal, StateNode
from kerf.scheduling.offerings import prices
from kerf_api.texts import counted

#: Why a move is dropped: the world has changed, budgets allow it no more, or the pods have no such place any more.
CHURN, BUDGET, SCHEDULING = "churn", "budget", "scheduling"
#: Of nodes that are at rest and stay because their pool or they themselves say so; the others say nothing of interest.
_SAID: Final = frozenset(
    {"ConsolidationDisabled", "WhenEmpty", "UnknownInstanceType", "NoLabel", "InvalidAnnotation", "TooYoung"}
)

#: A fault of a NodePool's is reported again after so many seconds.
_EVERY: Final = 3600
#: For so long the blocker of a node that has come to rest is an event.
_NEWS: Final = timedelta(hours=2)
_FOR_EVER: Final = 10 * 365 * 24 * 3600
#: What the gate SpotToSpotConsolidation, minValues, or a threshold excludes.
_RESTRAINED: Final = frozenset({"SpotToSpotDisabled", "TooFewSpotTypes", "MinValues", *TOO_LITTLE})


def unconsolidatable(view: View, state: StateNode) -> tuple[Event, ...]:
    """Why consolidation never looks at a node that is in use."""
    pool = view.snapshot.node_pools.get(state.pool_name)
    if pool is None or pool.static or state.claim is None or state.deleting or not state.initialized:
        return ()
    if view.command(state.claim.name) is not None:
        return ()
    found = next((one for one in consolidation_blockers(view, state, pool) if one.code in _SAID), None)
    if found is None:
        return ()
    until = f", until {rfc3339(found.until)}" if found.until is not None else ""
    return _once(state, f"{found.text}{until}", found.code)


def unreadable_thresholds(view: View) -> Iterator[Event]:
    """On each NodePool whose consolidation thresholds cannot be read."""
    for pool, why in unreadable(view):
        yield Event(kinds.ref(pool), pool.metadata.uid, "Warning", why.code, why.text, why.text, _EVERY)


def restrained(view: View) -> Iterator[Event]:
    """Which nodes stay for a setting's sake, as the slow half found: a cheaper node could be had without it.

    Of nodes that have been at rest for long this is no event, least of all at the start of a process.
    """
    for key, why in sorted(view.snapshot.kept.items()):
        state = view.snapshot.state_nodes.get(key)
        if why.code in _RESTRAINED and state is not None and eligible(view, key) and _rested_lately(view, state):
            yield from _once(state, why.text, why.code)


def _rested_lately(view: View, state: StateNode) -> bool:
    condition = state.claim.condition(CONSOLIDATABLE) if state.claim is not None else None
    since = condition.last_transition_time if condition is not None else None
    return since is not None and view.snapshot.now - since < _NEWS


def replaceable(view: View, proposals: Iterable[Proposal]) -> Iterator[Event]:
    """That nodes could be replaced, what that would save, and whose pods it would evict."""
    for proposal in proposals:
        others = len(proposal.candidates) - 1
        beside = f" together with {counted(others, 'other node')}" if others else ""
        amount = (
            f"saves {prices.dollars(proposal.saving)} an hour" if proposal.saving else "frees capacity reservations"
        )
        words = f"Could be replaced{beside}: the replacement {amount}"
        for key in proposal.candidates if proposal.kind == REPLACE else ():
            state = view.snapshot.state_nodes.get(key)
            if state is not None and view.command(key) is None:
                line = "; ".join((words, *evicted(view.pods_on(state.name))))
                yield from _stands(state, "ConsolidationCandidate", line, "")


def rejected(states: Iterable[StateNode], why: str, text: str) -> tuple[Event, ...]:
    """That a move that was found is dropped."""
    return tuple(event for one in states for event in _stands(one, "ConsolidationRejected", f"{why}: {text}", why))


def approved(view: View, candidates: Sequence[Candidate], saving: int) -> Iterator[Event]:
    """By what score Balanced pools found a move worth its disruption: of one node on it, of several on the pool."""
    for pool, score in Policy(view).scores(candidates, saving):
        percents = (
            f"{float(100 * score.saved):.1f} % of its cost for {float(100 * score.disturbed):.1f} % of its disruption"
        )
        words = f"Score {score.text} (at least {1 / K} is asked, k = {K}): NodePool {pool.name} saves {percents}"
        if len(candidates) == 1:
            yield from node_events(candidates[0].state, "ConsolidationApproved", words)
        else:
            yield Event(kinds.ref(pool), pool.metadata.uid, "Normal", "ConsolidationApproved", words)


def _once(state: StateNode, words: str, code: str) -> tuple[Event, ...]:
    """A configured wait needs no event every hour: it has one while this process runs."""
    return tuple(
        replace(event, same_seconds=_FOR_EVER) for event in node_events(state, "Unconsolidatable", words, dedupe=code)
    )


def _stands(state: StateNode, reason: str, words: str, dedupe: str) -> tuple[Event, ...]:
    return tuple(event.standing() for event in node_events(state, reason, words, dedupe=dedupe))
