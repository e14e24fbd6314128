"""Behaviours 87 to 109 of the disruption catalogue, broken: places, devices, Balanced. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    87: (
        "A replacement may come up in any zone.",
        (
            Edit(
                "reconciler/kerf/scheduling:claim_entries",
                "node.requirements.without(labels.INSTANCE_TYPE, labels.HOSTNAME, labels.CAPACITY_TYPE)",
                "node.requirements.without(labels.INSTANCE_TYPE, labels.HOSTNAME, labels.CAPACITY_TYPE, labels.ZONE)",
            ),
        ),
    ),
    90: (
        "A spot node is not replaced by a reserved one.",
        (
            Edit(
                "reconciler/kerf/disruption:_cheaper",
                "labels.SPOT in new.capacity_types and all((_capacity_type(c) == labels.SPOT for c in candidates))",
                "all((_capacity_type(c) == labels.SPOT for c in candidates))",
            ),
        ),
    ),
    91: (
        "Wishes count, whatever the settings say.",
        (
            Edit(
                "reconciler/kerf/scheduling:_queue",
                "snapshot.settings.preference_policy != 'Ignore'",
                "True",
            ),
        ),
    ),
    92: (
        "A pool that only lets empty nodes go says nothing.",
        (
            Edit(
                "reconciler/kerf/disruption:_SAID",
                (
                    "{'ConsolidationDisabled', 'WhenEmpty', 'UnknownInstanceType', 'NoLabel', 'InvalidAnnotation', "
                    "'TooYoung'}"
                ),
                "{'ConsolidationDisabled', 'UnknownInstanceType', 'NoLabel', 'InvalidAnnotation', 'TooYoung'}",
            ),
        ),
    ),
    93: (
        "Nodes of static pools are marked as consolidatable.",
        (Edit("reconciler/kerf/disruption:_consolidatable", "if pool.static:\n    return (wanted, None)", ""),),
    ),
    94: (
        "All nodes of a pool come before those of the next.",
        (
            Edit(
                "reconciler/kerf/disruption:interleaved",
                "[one for row in zip_longest(*columns) for one in row if one is not None]",
                "[one for row in columns for one in row if zip_longest]",
            ),
        ),
    ),
    95: (
        "A pod that moves keeps its devices where they are.",
        (
            Edit(
                "reconciler/kerf/scheduling:Holders._lives",
                "same and pod is not None and pods.active(pod) and (key not in self._moving)",
                "same and pod is not None and pods.active(pod)",
            ),
        ),
    ),
    96: (
        "A node for which a pending pod was meant goes.",
        (
            Edit(
                "reconciler/kerf/disruption:_node_blockers",
                "until > view.snapshot.now",
                "until < view.snapshot.now",
            ),
        ),
    ),
    97: (
        "Only the money counts, not how little is disturbed.",
        (
            Edit(
                "reconciler/kerf/disruption:Totals.approves",
                "K * saving * self.cost >= cost * self.price",
                "K * saving >= self.price",
            ),
        ),
    ),
    98: (
        "Savings may be three times smaller than the disruption.",
        (Edit("reconciler/kerf/disruption:K", "2", "3"),),
    ),
    99: (
        "What is just worth it is not worth it.",
        (
            Edit(
                "reconciler/kerf/disruption:Totals.approves",
                "K * saving * self.cost >= cost * self.price",
                "K * saving * self.cost > cost * self.price",
            ),
        ),
    ),
    100: (
        "Every node is disturbed as much as any other.",
        (
            Edit(
                "reconciler/kerf/disruption:Policy._shares",
                "sum((one.cost for one in mine))",
                "costs.ONE * len(mine)",
            ),
        ),
    ),
    101: (
        "A pool's disruption is that of its heaviest node.",
        (
            Edit(
                "reconciler/kerf/disruption:totals",
                "sum((_cost(view, state) for state in members))",
                "max((_cost(view, state) for state in members))",
            ),
        ),
    ),
    102: (
        "In a pool that costs nothing everything is worth it.",
        (
            Edit(
                "reconciler/kerf/disruption:Totals.approves",
                "saving <= 0 or self.price <= 0 or self.cost <= 0",
                "saving <= 0 or self.cost <= 0",
            ),
        ),
    ),
    103: (
        "It is enough that one pool finds it worth the disruption.",
        (
            Edit(
                "reconciler/kerf/disruption:Policy.approves",
                "all",
                "any",
            ),
        ),
    ),
    104: (
        "Pools of other policies have a say.",
        (
            Edit(
                "reconciler/kerf/disruption:Policy._shares",
                "one.pool.spec.disruption.consolidation_policy == BALANCED",
                "one.pool.spec.disruption.consolidation_policy",
            ),
        ),
    ),
    105: (
        "Pools share what is saved equally.",
        (
            Edit(
                "reconciler/kerf/disruption:Policy._shares",
                "Fraction(saving * sum((one.price for one in mine)), price)",
                "Fraction(saving, len(by_pool))",
            ),
        ),
    ),
    106: (
        "What cannot be bought counts as what would be saved.",
        (
            Edit(
                "reconciler/kerf/disruption:_cheaper",
                "prices.cheapest(types[kept[0]], pick.requirements, view.snapshot)",
                "min((offer.price for offer in types[kept[0]].offerings))",
            ),
        ),
    ),
    107: (
        "All nodes of a pool together are not worth what they cost.",
        (
            Edit(
                "reconciler/kerf/disruption:totals",
                "price",
                "3 * price",
            ),
        ),
    ),
    108: (
        "Nodes in use go before empty ones.",
        (
            Edit(
                "reconciler/kerf/disruption:METHODS",
                (
                    "(Method('expiration', retirement), Method('emptiness', emptiness), Method('static drift', "
                    "static_drift, frozenset({Source.NODE_CLASSES})), Method('drift', drift, "
                    "frozenset({Source.NODE_CLASSES})), Method('consolidation', consolidation))"
                ),
                (
                    "(Method('expiration', retirement), Method('consolidation', consolidation), Method('emptiness', "
                    "emptiness), Method('static drift', static_drift, frozenset({Source.NODE_CLASSES})), "
                    "Method('drift', drift, frozenset({Source.NODE_CLASSES})), Method('consolidation', "
                    "consolidation))"
                ),
            ),
        ),
    ),
    109: (
        "What a pool approved for several nodes is said of each.",
        (Edit("reconciler/kerf/disruption:approved", "len(candidates) == 1", "candidates"),),
    ),
}
