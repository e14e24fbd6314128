"""Behaviours 35 to 61 of the disruption catalogue, broken: budgets, emptiness. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    35: (
        "A pool that allows nothing is not told so.",
        (
            Edit(
                "reconciler/kerf/disruption:reported",
                "budget.nodes and (not budget.allowed[reason])",
                "not budget.nodes",
            ),
        ),
    ),
    36: (
        "Nodes that commands are about use up no budget.",
        (
            Edit(
                "reconciler/kerf/disruption:_consumes",
                (
                    "meta.deleting or state.node.metadata.deleting or labels.COMMAND in meta.annotations or (not "
                    "state.node.ready)"
                ),
                "meta.deleting or state.node.metadata.deleting or (not state.node.ready)",
            ),
        ),
    ),
    37: (
        "Nodes that wait for their replacements use up no budget.",
        (
            Edit(
                "reconciler/kerf/disruption:_consumes",
                (
                    "meta.deleting or state.node.metadata.deleting or labels.COMMAND in meta.annotations or (not "
                    "state.node.ready)"
                ),
                "meta.deleting or state.node.metadata.deleting or (not state.node.ready)",
            ),
        ),
    ),
    38: (
        "Of what a plan starts in a pool only one node counts.",
        (
            Edit(
                "reconciler/kerf/disruption:Ledger.take",
                "self._started.get(pool, 0) + 1",
                "1",
            ),
        ),
    ),
    39: (
        "Empty nodes go whatever the budget says.",
        (
            Edit(
                "reconciler/kerf/disruption:_empty_one",
                "not ledger.remaining(found.pool.name, EMPTY)",
                "ledger.remaining(found.pool.name, EMPTY) < 0",
            ),
        ),
    ),
    40: (
        "Nodes whose instances are ending count.",
        (
            Edit(
                "reconciler/kerf/disruption:_counts",
                (
                    "claim is not None and claim.managed and state.initialized and (not "
                    "claim.is_true('InstanceTerminating'))"
                ),
                "claim is not None and claim.managed and state.initialized",
            ),
        ),
    ),
    41: (
        "What remains may be less than nothing.",
        (
            Edit(
                "reconciler/kerf/disruption:PoolBudget.remaining",
                "max(0, self.allowed[reason] - self.disrupting)",
                "self.allowed[reason] - self.disrupting",
            ),
        ),
    ),
    42: (
        "A node that is not ready uses up no budget.",
        (
            Edit(
                "reconciler/kerf/disruption:_consumes",
                (
                    "meta.deleting or state.node.metadata.deleting or labels.COMMAND in meta.annotations or (not "
                    "state.node.ready)"
                ),
                "meta.deleting or state.node.metadata.deleting or labels.COMMAND in meta.annotations",
            ),
        ),
    ),
    43: (
        "Drift asks no budget.",
        (
            Edit(
                "reconciler/kerf/disruption:_drift_candidate",
                "found if ledger.remaining(found.pool.name, DRIFTED) else no_budget(view, found.state, DRIFTED)",
                "found",
            ),
        ),
    ),
    44: (
        "Drifted nodes that are on their way use up no budget.",
        (
            Edit(
                "reconciler/kerf/disruption:_consumes",
                (
                    "meta.deleting or state.node.metadata.deleting or labels.COMMAND in meta.annotations or (not "
                    "state.node.ready)"
                ),
                "meta.deleting or state.node.metadata.deleting or (not state.node.ready)",
            ),
        ),
    ),
    45: (
        "A budget that sleeps holds.",
        (Edit("api/kerf_api/v1:_active", "hit is not None and hit <= now", "hit is not None"),),
    ),
    46: (
        "A scoped budget that sleeps is the only one.",
        (
            Edit(
                "api/kerf_api/v1:allowed_disruptions",
                "(b.reasons is None or reason in b.reasons) and _active(b, now)",
                "b.reasons is None or reason in b.reasons",
            ),
        ),
    ),
    47: (
        "The loosest budget wins.",
        (
            Edit(
                "api/kerf_api/v1:allowed_disruptions",
                "min",
                "max",
            ),
        ),
    ),
    48: (
        "What cannot be read allows all.",
        (
            Edit(
                "api/kerf_api/v1:allowed_disruptions",
                "0",
                "UNLIMITED",
            ),
        ),
    ),
    49: (
        "Schedules are in the time zone of who asks.",
        (
            Edit(
                "api:Cron.after",
                "instant.astimezone(UTC)",
                "instant.replace(tzinfo=UTC)",
            ),
            Edit(
                "api/kerf_api/v1:_active",
                "hit <= now",
                "hit <= now.replace(tzinfo=hit.tzinfo)",
            ),
        ),
    ),
    50: (
        "A window is open an instant too long.",
        (
            Edit(
                "api/kerf_api/v1:_active",
                "now - durations.parse(budget.duration)",
                "now - durations.parse(budget.duration) - durations.parse('1m')",
            ),
        ),
    ),
    51: (
        "A number is no more than there are nodes.",
        (
            Edit(
                "api/kerf_api/v1:_count",
                "UNLIMITED",
                "nodes",
            ),
        ),
    ),
    52: (
        "One empty node goes in a plan.",
        (
            Edit(
                "reconciler/kerf/disruption:emptiness",
                "sorted(ready, key=by_savings)",
                "sorted(ready, key=by_savings)[:1]",
            ),
        ),
    ),
    53: (
        "An empty node goes as soon as anything has been said of it.",
        (
            Edit(
                "reconciler/kerf/disruption:_wish",
                "claim.is_true('Consolidatable') and next(rest_blockers(view, claim, pool), None) is None",
                "claim.condition('Consolidatable') is not None",
            ),
        ),
    ),
    54: (
        "Daemons keep their node.",
        (
            Edit(
                "reconciler/kerf/disruption:empty",
                "pods.reschedulable(pod) and eviction_cost(pod) > 0",
                "eviction_cost(pod) > 0",
            ),
        ),
    ),
    55: (
        "Every pod that ends keeps its node.",
        (Edit("reconciler/kerf/model:reschedulable", "terminating(pod) and of_stateful_set(pod)", "terminating(pod)"),),
    ),
    56: (
        "Drift comes before emptiness.",
        (
            Edit(
                "reconciler/kerf/disruption:METHODS",
                (
                    "(Method('expiration', retirement), Method('emptiness', emptiness), Method('static drift', "
                    "static_drift, frozenset({Source.NODE_CLASSES})), Method('drift', drift, "
                    "frozenset({Source.NODE_CLASSES})), Method('consolidation', consolidation))"
                ),
                (
                    "(Method('expiration', retirement), Method('static drift', static_drift, "
                    "frozenset({Source.NODE_CLASSES})), Method('drift', drift, frozenset({Source.NODE_CLASSES})), "
                    "Method('emptiness', emptiness), Method('consolidation', consolidation))"
                ),
            ),
        ),
    ),
    57: (
        "A pod that comes to an empty node goes with it.",
        (
            Edit(
                "reconciler/kerf/disruption:_stop_of",
                "if come:\n    return _Stop('PodArrived', f'{pods.named(come[0])} was bound to the node')",
                (
                    "if come and command.replacements:\n"
                    "    return _Stop('PodArrived', f'{pods.named(come[0])} was bound to the node')"
                ),
            ),
        ),
    ),
    58: (
        "An empty node goes at once.",
        (
            Edit(
                "reconciler/kerf/disruption:_empty_one",
                "quiet_since(found) + view.snapshot.settings.validation_delay",
                "quiet_since(found)",
            ),
        ),
    ),
    59: (
        "Nobody counts the nodes that were spared.",
        (
            Edit(
                "reconciler/kerf/telemetry:Telemetry._rolled_back",
                "self.metrics.failed_validations.labels(kind).inc()",
                "self.metrics.failed_validations.labels(kind)",
            ),
        ),
    ),
    60: (
        "Static pools are consolidated.",
        (Edit("reconciler/kerf/disruption:rest_blockers", "pool.static", "False"),),
    ),
    61: (
        "Room that is kept on one node keeps them all.",
        (
            Edit(
                "reconciler/kerf/disruption:_wish",
                "view.snapshot.buffer_pods.get(key, 0)",
                "sum(view.snapshot.buffer_pods.values())",
            ),
        ),
    ),
}
