"""Why nodes stay: the blockers of those that are eligible for consolidation, in every plan.

Nothing is simulated here. A node whose pods merely have no better place is no business of this module; one that may
not be touched at all is refused with the reason; and pods hear what became of a protection that is more than `true`.
A plan looks at a bounded number of nodes; in a larger cluster a window over their names moves on with time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from kerf.disruption.announcing import unconsolidatable
from kerf.disruption.candidates import costs
from kerf.disruption.candidates.budgets import Ledger
from kerf.disruption.candidates.candidates import Blocker, known_candidate, refused
from kerf.disruption.candidates.pacing import backing_off
from kerf.disruption.consolidation.eligibility import consolidation_blockers
from kerf.disruption.consolidation.proposals import eligible
from kerf.disruption.view import View
from kerf.model import kinds
from kerf.model.instants import earliest
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import planning
from kerf.model.plan import NOTHING, Event, Plan, joined
from kerf.model.snapshot import StateNode
from kerf_api import durations, labels

#: How many nodes one plan looks at, and how many of them are others a second later.
_LOOKS: Final = 250
_PER_SECOND: Final = 25
_NO_POOL: Final = ("NoNodePoolLabel", "NodePoolNotFound")


def staying(view: View, ledger: Ledger) -> Plan:
    """The refusals, by the order of the keys of `snapshot.state_nodes`; the emptiness and drift methods return
    theirs."""
    keys = _window(view.turn.keys("state_nodes"), view.snapshot.now)
    return view.turn.plan_of(_STAYING, view.each, [key for key in keys if key not in ledger.taken])


def _window(keys: Sequence[str], now: datetime) -> Sequence[str]:
    if len(keys) <= _LOOKS:
        return keys
    first = int(now.timestamp()) * _PER_SECOND % len(keys)
    return [*keys[first : first + _LOOKS], *keys[: max(0, first + _LOOKS - len(keys))]]


def _one(view: View, key: str) -> Plan:
    state, now = view.snapshot.state_nodes[key], view.snapshot.now
    if not eligible(view, key):
        told_elsewhere = _told_elsewhere(view, state)
        told = Plan(events=() if told_elsewhere else unconsolidatable(view, state), next_due=_waits_until(view, state))
        return _without_pool(view, key) + told
    due = pods.next_protection_end(view.snapshot.pods.on(state.name), now)
    told = Plan(events=tuple(_protections(view, state.name)), next_due=due)
    if _told_elsewhere(view, state):
        return told
    found = backing_off(view, state)
    if found is not None:
        return joined((told, found))
    blocker = known_candidate(view, key)
    return joined((told, refused(state, blocker))) if isinstance(blocker, Blocker) else told


def _waits_until(view: View, state: StateNode) -> datetime | None:
    """When something that keeps consolidation from looking at a node ends by itself: it is too young, say."""
    pool = view.snapshot.node_pools.get(state.pool_name)
    if pool is None or state.claim is None:
        return None
    return earliest(blocker.until for blocker in consolidation_blockers(view, state, pool))


_STAYING = planning("staying", "state_nodes", "node", _one)


def _without_pool(view: View, key: str) -> Plan:
    """The refusal of a node whose NodePool is not to be found: nothing else would ever mention it."""
    state = view.snapshot.state_nodes[key]
    if state.pool_name in view.snapshot.node_pools:
        return NOTHING
    blocker = known_candidate(view, key)
    return refused(state, blocker) if isinstance(blocker, Blocker) and blocker.code in _NO_POOL else NOTHING


def _told_elsewhere(view: View, state: StateNode) -> bool:
    """Whether the node is empty or has drifted."""
    drifted = state.claim is not None and state.claim.is_true("Drifted")
    return drifted or costs.empty(view.snapshot.pods.on(state.name))


def _protections(view: View, node_name: str) -> Iterator[Event]:
    """On each pod whose do-not-disrupt is not plainly `true`: until when it holds, that it did, or that it cannot."""
    marked = (pod for pod in view.snapshot.pods.on(node_name) if labels.DO_NOT_DISRUPT in pod.metadata.annotations)
    for pod in sorted(marked, key=lambda pod: pod.key):
        text = pod.metadata.annotations[labels.DO_NOT_DISRUPT]
        if text == "true" or not pods.active(pod):
            continue
        lasts, since = durations.parse_go(text), pod.status.start_time
        if lasts is None:
            words = (
                f"{labels.DO_NOT_DISRUPT} is {text!r}, neither true nor a positive duration: the pod is not protected"
            )
            yield _event(pod, "InvalidDoNotDisruptAnnotation", words, type_="Warning")
        elif since is not None and view.snapshot.now - since < lasts:
            yield _event(pod, "DoNotDisruptUntil", f"Protected from disruption until {(since + lasts).isoformat()}")
        elif since is not None:
            yield _event(pod, "DoNotDisruptGracePeriodElapsed", f"No longer protected from disruption, after {text}")


def _event(pod: Pod, reason: str, words: str, *, type_: str = "Normal") -> Event:
    """The same words are emitted again only after an hour."""
    return Event(kinds.ref(pod), pod.metadata.uid, type_, reason, words, words, 3600)
