"""How many troubles there are, by code: the same as `kerf status` names, but for those of single NodeClaims and pods,
which have metrics of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from kerf.judgement import troubles
from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.model.snapshot import Snapshot

NAME = "kerf_troubles"


def counts(snapshot: Snapshot, silent: Collection[str]) -> dict[tuple[tuple[str, str], ...], float]:
    """By labels; `silent` are the schedulers that answer no pods.

    A code that nothing has is 0, so that an alert can distinguish it from a metric that is missing.
    """
    pools, classes = snapshot.node_pools, snapshot.node_classes
    named = [(str(Ref(kinds.NODE_POOL.name, "", name)), pool.status.conditions) for name, pool in pools.items()]
    named += [(str(Ref(kinds.NODE_CLASS.name, "", name)), one.status.conditions) for name, one in classes.items()]
    found = Counter(
        one.code
        for rows in (
            troubles.failing(snapshot.failures.values(), snapshot.now, classes.values()),
            troubles.not_ready(pools.values(), classes.values(), snapshot.now),
            troubles.refused(
                snapshot.launch_failures.values(),
                snapshot.node_claims.values(),
                len(snapshot.pods.pending),
                snapshot.now,
            ),
            troubles.guarded(named),
        )
        for one in rows
    )
    found[troubles.NOT_SCHEDULED] = len(silent)
    codes = (
        troubles.ACTION_FAILS,
        troubles.NOT_READY,
        troubles.GUARD,
        troubles.LAUNCH_REFUSED,
        troubles.NOT_SCHEDULED,
    )
    return {(("code", code),): float(found[code]) for code in codes}
