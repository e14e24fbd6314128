"""Behaviours 87 to 109 of the disruption catalogue, broken: places, devices, Balanced. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    87: (
        "A replacement may come up in any zone.",
        (
            Edit(
                "reconciler/scheduling/claims.py",
                "node.requirements.without(labels.INSTANCE_TYPE, labels.HOSTNAME, labels.CAPACITY_TYPE)",
                "node.requirements.without(labels.INSTANCE_TYPE, labels.HOSTNAME, labels.CAPACITY_TYPE, labels.ZONE)",
            ),
        ),
    ),
    90: (
        "A spot node is not replaced by a reserved one.",
        (
            Edit(
                "reconciler/disruption/moves.py",
                "spot_to_spot = labels.SPOT in new.capacity_types and all(",
                "spot_to_spot = all(",
            ),
        ),
    ),
    91: (
        "Wishes count, whatever the settings say.",
        (
            Edit(
                "reconciler/scheduling/solve.py",
                'respect_preferences=snapshot.settings.preference_policy != "Ignore"',
                "respect_preferences=True",
            ),
        ),
    ),
    92: (
        "A pool that only lets empty nodes go says nothing.",
        (
            Edit(
                "reconciler/disruption/announcing.py",
                '{"ConsolidationDisabled", "WhenEmpty", ',
                '{"ConsolidationDisabled", ',
            ),
        ),
    ),
    93: (
        "Nodes of static pools are marked as consolidatable.",
        (Edit("reconciler/disruption/conditions.py", "    if pool.static:\n        return wanted, None\n", ""),),
    ),
    94: (
        "All nodes of a pool come before those of the next.",
        (
            Edit(
                "reconciler/disruption/propose.py",
                "[one for row in zip_longest(*columns) for one in row if one is not None]",
                "[one for row in columns for one in row if zip_longest]",
            ),
        ),
    ),
    95: (
        "A pod that moves keeps its devices where they are.",
        (
            Edit(
                "reconciler/scheduling/devices/claiming.py",
                "pods.active(pod) and key not in self._moving",
                "pods.active(pod)",
            ),
        ),
    ),
    96: (
        "A node for which a pending pod was meant goes.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                "elif until is not None and until > view.snapshot.now:",
                "elif until is not None and until < view.snapshot.now:",
            ),
        ),
    ),
    97: (
        "Only the money counts, not how little is disturbed.",
        (
            Edit(
                "reconciler/disruption/balanced.py",
                "return K * saving * self.cost >= cost * self.price",
                "return K * saving >= self.price",
            ),
        ),
    ),
    98: (
        "Savings may be three times smaller than the disruption.",
        (Edit("reconciler/disruption/balanced.py", "\nK = 2\n", "\nK = 3\n"),),
    ),
    99: (
        "What is just worth it is not worth it.",
        (
            Edit(
                "reconciler/disruption/balanced.py",
                "return K * saving * self.cost >= cost * self.price",
                "return K * saving * self.cost > cost * self.price",
            ),
        ),
    ),
    100: (
        "Every node is disturbed as much as any other.",
        (
            Edit(
                "reconciler/disruption/balanced.py",
                "share, sum(one.cost for one in mine)",
                "share, costs.ONE * len(mine)",
            ),
        ),
    ),
    101: (
        "A pool's disruption is that of its heaviest node.",
        (
            Edit(
                "reconciler/disruption/balanced.py",
                "return Totals(price, sum(_cost(view, state) for state in members))",
                "return Totals(price, max(_cost(view, state) for state in members))",
            ),
        ),
    ),
    102: (
        "In a pool that costs nothing everything is worth it.",
        (
            Edit(
                "reconciler/disruption/balanced.py",
                "if saving <= 0 or self.price <= 0 or self.cost <= 0:",
                "if saving <= 0 or self.cost <= 0:",
            ),
        ),
    ),
    103: (
        "It is enough that one pool finds it worth the disruption.",
        (
            Edit(
                "reconciler/disruption/balanced.py",
                "return all(whole.approves(share, cost) for",
                "return any(whole.approves(share, cost) for",
            ),
        ),
    ),
    104: (
        "Pools of other policies have a say.",
        (
            Edit(
                "reconciler/disruption/balanced.py",
                "if one.pool.spec.disruption.consolidation_policy == BALANCED:",
                "if one.pool.spec.disruption.consolidation_policy:",
            ),
        ),
    ),
    105: (
        "Pools share what is saved equally.",
        (
            Edit(
                "reconciler/disruption/balanced.py",
                "Fraction(saving * sum(one.price for one in mine), price) if price else Fraction(0)",
                "Fraction(saving, len(by_pool)) if price else Fraction(0)",
            ),
        ),
    ),
    106: (
        "What cannot be bought counts as what would be saved.",
        (
            Edit(
                "reconciler/disruption/moves.py",
                "    first = prices.cheapest(types[kept[0]], pick.requirements, view.snapshot)\n",
                "    first = min(offer.price for offer in types[kept[0]].offerings)\n",
            ),
        ),
    ),
    107: (
        "All nodes of a pool together are not worth what they cost.",
        (
            Edit(
                "reconciler/disruption/balanced.py",
                "    return Totals(price, sum(",
                "    return Totals(3 * price, sum(",
            ),
        ),
    ),
    108: (
        "Nodes in use go before empty ones.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                '    Method("emptiness", emptiness),\n',
                '    Method("consolidation", consolidation),\n    Method("emptiness", emptiness),\n',
            ),
        ),
    ),
    109: (
        "What a pool approved for several nodes is said of each.",
        (
            Edit(
                "reconciler/disruption/announcing.py", "        if len(candidates) == 1:\n", "        if candidates:\n"
            ),
        ),
    ),
}
