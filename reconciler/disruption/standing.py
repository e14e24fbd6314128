"""Why nodes stay: what speaks against those that consolidation would like to look at, told in every plan.

Nothing is simulated here. A node whose pods merely have no better place is no business of this module; one that may
not be touched at all is refused with the reason. A plan looks at a bounded number of nodes; in a larger cluster a
window over their names moves on with time.
"""

from __future__ import annotations

from typing import Final

from reconciler.disruption import costs
from reconciler.disruption.budgets import Ledger
from reconciler.disruption.candidates import Blocker, candidate, refused
from reconciler.disruption.methods import backing_off, probed
from reconciler.disruption.proposals import attractive
from reconciler.disruption.view import View
from reconciler.disruption.writes import NOTHING, joined
from reconciler.model.plan import Plan
from reconciler.model.snapshot import StateNode

#: How many nodes one plan looks at.
_LOOKS: Final = 250


def staying(view: View, ledger: Ledger) -> Plan:
    """The refusals, by the order of the keys of `snapshot.state_nodes`; the emptiness and drift methods tell theirs."""
    keys = probed(sorted(view.snapshot.state_nodes), view, 0, _LOOKS)
    return joined(_one(view, key) for key in keys if key not in ledger.taken and attractive(view, key))


def _one(view: View, key: str) -> Plan:
    state = view.snapshot.state_nodes[key]
    if _told_elsewhere(view, state):
        return NOTHING
    found = backing_off(view, state)
    if found is not None:
        return found
    blocker = candidate(view, key)
    return refused(state, blocker) if isinstance(blocker, Blocker) else NOTHING


def _told_elsewhere(view: View, state: StateNode) -> bool:
    """Whether the node is empty or has drifted."""
    drifted = state.claim is not None and state.claim.is_true("Drifted")
    return drifted or costs.empty(view.snapshot.pods.on(state.name))
