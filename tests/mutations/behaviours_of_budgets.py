"""Behaviours 35 to 61 of the disruption catalogue, broken: budgets, emptiness. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    35: (
        "A pool that allows nothing is not told so.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "        if budget.nodes and not budget.allowed[reason]:",
                "        if not budget.nodes:",
            ),
        ),
    ),
    36: (
        "Nodes that commands are about use up no budget.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "labels.COMMAND in meta.annotations or not state.node.ready",
                "not state.node.ready",
            ),
        ),
    ),
    37: (
        "Nodes that wait for their replacements use up no budget.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "labels.COMMAND in meta.annotations or not state.node.ready",
                "not state.node.ready",
            ),
        ),
    ),
    38: (
        "Of what a plan starts in a pool only one node counts.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "self._started[pool] = self._started.get(pool, 0) + 1",
                "self._started[pool] = 1",
            ),
        ),
    ),
    39: (
        "Empty nodes go whatever the budget says.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "    if not ledger.remaining(found.pool.name, EMPTY):",
                "    if ledger.remaining(found.pool.name, EMPTY) < 0:",
            ),
        ),
    ),
    40: (
        "Nodes whose instances are ending count.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                ' and state.initialized and not claim.is_true("InstanceTerminating")',
                " and state.initialized",
            ),
        ),
    ),
    41: (
        "What remains may be less than nothing.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "        return max(0, self.allowed[reason] - self.disrupting)",
                "        return self.allowed[reason] - self.disrupting",
            ),
        ),
    ),
    42: (
        "A node that is not ready uses up no budget.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "labels.COMMAND in meta.annotations or not state.node.ready",
                "labels.COMMAND in meta.annotations",
            ),
        ),
    ),
    43: (
        "Drift asks no budget.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "    return found if ledger.remaining(found.pool.name, DRIFTED) else no_budget(view, state, DRIFTED)",
                "    return found",
            ),
        ),
    ),
    44: (
        "Drifted nodes that are on their way use up no budget.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "labels.COMMAND in meta.annotations or not state.node.ready",
                "not state.node.ready",
            ),
        ),
    ),
    45: (
        "A budget that sleeps holds.",
        (Edit("api/v1/budgets.py", "    return hit is not None and hit <= now", "    return hit is not None"),),
    ),
    46: (
        "A scoped budget that sleeps is the only one.",
        (Edit("api/v1/budgets.py", "reason in b.reasons) and _active(b, now)]", "reason in b.reasons)]"),),
    ),
    47: (
        "The loosest budget wins.",
        (
            Edit(
                "api/v1/budgets.py",
                "    return min((_count(b.nodes, nodes) for b in holding), default=UNLIMITED)",
                "    return max((_count(b.nodes, nodes) for b in holding), default=UNLIMITED)",
            ),
        ),
    ),
    48: (
        "What cannot be read allows all.",
        (
            Edit(
                "api/v1/budgets.py",
                "    if problems(given):\n        return 0",
                "    if problems(given):\n        return UNLIMITED",
            ),
        ),
    ),
    49: (
        "Schedules are in the time zone of who asks.",
        (
            Edit(
                "api/cron.py",
                "        start = instant.astimezone(UTC)\n",
                "        start = instant.replace(tzinfo=UTC)\n",
            ),
            Edit(
                "api/v1/budgets.py",
                "hit is not None and hit <= now",
                "hit is not None and hit <= now.replace(tzinfo=hit.tzinfo)",
            ),
        ),
    ),
    50: (
        "A window is open an instant too long.",
        (
            Edit(
                "api/v1/budgets.py",
                "next_after(now - durations.parse(budget.duration))",
                'next_after(now - durations.parse(budget.duration) - durations.parse("1m"))',
            ),
        ),
    ),
    51: (
        "A number is no more than there are nodes.",
        (
            Edit(
                "api/v1/budgets.py",
                "    return min(int(allowance), UNLIMITED)",
                "    return min(int(allowance), nodes)",
            ),
        ),
    ),
    52: (
        "One empty node goes in a plan.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "        for found in sorted(ready, key=by_savings)\n",
                "        for found in sorted(ready, key=by_savings)[:1]\n",
            ),
        ),
    ),
    53: (
        "An empty node goes as soon as anything has been said of it.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                'calm = claim.is_true("Consolidatable") and next(restless(view, claim, pool), None) is None',
                'calm = claim.condition("Consolidatable") is not None',
            ),
        ),
    ),
    54: (
        "Daemons keep their node.",
        (
            Edit(
                "reconciler/disruption/costs.py",
                "    return not any(pods.reschedulable(pod) and eviction_cost(pod) > 0",
                "    return not any(eviction_cost(pod) > 0",
            ),
        ),
    ),
    55: (
        "Every pod that ends keeps its node.",
        (Edit("reconciler/model/pods.py", "(terminating(pod) and of_stateful_set(pod))", "terminating(pod)"),),
    ),
    56: (
        "Drift comes before emptiness.",
        (
            Edit("reconciler/disruption/methods.py", '    Method("emptiness", emptiness),\n', ""),
            Edit(
                "reconciler/disruption/methods.py",
                '    Method("consolidation", consolidation),\n',
                '    Method("emptiness", emptiness),\n    Method("consolidation", consolidation),\n',
            ),
        ),
    ),
    57: (
        "A pod that comes to an empty node goes with it.",
        (Edit("reconciler/disruption/commands.py", "    if come:\n", "    if come and command.replacements:\n"),),
    ),
    58: (
        "An empty node goes at once.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "    due = quiet_since(found) + view.snapshot.settings.validation_delay",
                "    due = quiet_since(found)",
            ),
        ),
    ),
    59: (
        "Nobody counts the nodes that were spared.",
        (
            Edit(
                "reconciler/telemetry/telemetry.py",
                "                self.metrics.failed_validations.labels(kind).inc()",
                "                self.metrics.failed_validations.labels(kind)",
            ),
        ),
    ),
    60: (
        "Static pools are consolidated.",
        (Edit("reconciler/disruption/attraction.py", "    if pool.static:\n", "    if False:\n"),),
    ),
    61: (
        "Room that is kept on one node keeps them all.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "view.snapshot.buffer_pods.get(key, 0) if empty",
                "sum(view.snapshot.buffer_pods.values()) if empty",
            ),
        ),
    ),
}
