"""Behaviours 62 to 86 of the disruption catalogue, broken: consolidation of nodes. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    62: (
        "A type that costs what the node does replaces it.",
        (
            Edit(
                "reconciler/disruption/moves.py",
                "worst is not None and worst < price",
                "worst is not None and worst <= price",
            ),
        ),
    ),
    63: (
        "Sixteen types are sent for a spot node.",
        (Edit("reconciler/disruption/moves.py", "SPOT_TO_SPOT_TYPES: Final = 15", "SPOT_TO_SPOT_TYPES: Final = 16"),),
    ),
    64: (
        "Fourteen cheaper types are enough for a spot node.",
        (Edit("reconciler/disruption/moves.py", "    if len(kept) < least:\n", "    if len(kept) < least - 1:\n"),),
    ),
    65: (
        "A spot node goes for any cheaper type.",
        (
            Edit(
                "reconciler/disruption/moves.py",
                "if spot_to_spot and len(candidates) == 1 else 1",
                "if spot_to_spot and not candidates else 1",
            ),
        ),
    ),
    66: (
        "The fifteen types that come first by name are sent.",
        (
            Edit(
                "reconciler/disruption/moves.py",
                "kept = [n for n in pick.instance_types if",
                "kept = [n for n in sorted(pick.instance_types) if",
            ),
        ),
    ),
    67: (
        "However many types minValues asks, all that are cheaper are sent.",
        (Edit("reconciler/disruption/moves.py", "    return kept[:count]", "    return kept"),),
    ),
    68: (
        "Nobody looks at minValues once the dearer types are gone.",
        (Edit("reconciler/disruption/moves.py", "    if missing is not None:\n", '    if missing == "":\n'),),
    ),
    69: (
        "One type is enough for minValues.",
        (Edit("reconciler/disruption/moves.py", "if len(offered) < row.min_values:", "if not offered:"),),
    ),
    70: (
        "What the node's owner says of it is not heard.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                'if state.annotations.get(labels.DO_NOT_DISRUPT) == "true":',
                'if state.annotations.get(labels.DO_NOT_DISRUPT) == "always":',
            ),
        ),
    ),
    71: (
        "A budget holds pods that are not ready, whatever it says of those.",
        (Edit("reconciler/model/pdbs.py", "self.frees_unready and not pods.ready(pod)", "False"),),
    ),
    72: (
        "A replacement counts as what its cheapest zone asks.",
        (Edit("reconciler/scheduling/prices.py", "            return max(prices)", "            return min(prices)"),),
    ),
    73: (
        "What comes in place of a node may be bought on demand although it is cheaper as spot only.",
        (
            Edit(
                "reconciler/disruption/moves.py",
                "if labels.SPOT in new.capacity_types and labels.RESERVED not in new.capacity_types:",
                "if labels.SPOT in new.capacity_types and len(candidates) > 1:",
            ),
        ),
    ),
    74: (
        "How many pods would be disturbed does not count.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "costs.savings_ratio(found.price, found.cost)",
                "costs.savings_ratio(found.price, costs.ONE)",
            ),
        ),
    ),
    75: (
        "Pods that nobody owns cost nothing.",
        (
            Edit(
                "reconciler/disruption/costs.py",
                "for pod in node_pods if pods.reschedulable(pod))\n\n\ndef empty",
                "for pod in node_pods if pods.reschedulable(pod) and pod.metadata.owner_references)\n\n\ndef empty",
            ),
        ),
    ),
    76: (
        "A grace period lets consolidation move protected pods.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                "return eventual and claim.spec.termination_grace_period is not None",
                "return claim.spec.termination_grace_period is not None",
            ),
        ),
    ),
    77: (
        "A protection for some time never ends.",
        (
            Edit(
                "reconciler/model/pods.py",
                "(pod.status.start_time is None or now - pod.status.start_time < lasts)",
                "pod.status.start_time is not None",
            ),
        ),
    ),
    78: (
        "Pods are moved to nodes that have just come to rest.",
        (
            Edit(
                "reconciler/disruption/simulation.py",
                "respect_consolidate_after=manner is Manner.SPARING",
                "respect_consolidate_after=manner is Manner.FREELY",
            ),
        ),
    ),
    79: (
        "Nodes of a pool that never consolidates take no pods.",
        (
            Edit(
                "reconciler/scheduling/sites.py",
                "claim is None or not pool.consolidate_after:",
                "claim is None or pool.consolidate_after is False:",
            ),
        ),
    ),
    81: (
        "One node may be replaced by two.",
        (
            Edit(
                "reconciler/disruption/moves.py", "if len(new) > len(candidates):", "if len(new) > 2 * len(candidates):"
            ),
        ),
    ),
    82: (
        "A move is carried out with other types than were found.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "return bool(proposed) and all(proposed <= set(new.instance_types) for new in move.new)",
                "return bool(proposed)",
            ),
        ),
    ),
    83: (
        "Nodes are replaced in pairs only.",
        (
            Edit(
                "reconciler/disruption/search.py",
                "_SIZES: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32)",
                "_SIZES: Final = (2, 32)",
            ),
        ),
    ),
    84: (
        "Two nodes are replaced by one like them, where one less would do.",
        (
            Edit(
                "reconciler/disruption/moves.py",
                "if alone and len(candidates) > 1 else None",
                "if alone and len(candidates) > 9 else None",
            ),
        ),
    ),
    85: (
        "When the first move does not hold, nothing else is looked at.",
        (Edit("reconciler/disruption/methods.py", "for proposal in late[:_PROBES]:", "for proposal in late[:1]:"),),
    ),
    86: (
        "Nodes that go together are counted as if each went alone.",
        (
            Edit(
                "reconciler/telemetry/disrupting.py",
                'return "multi" if command.get("peers") else "single"',
                'return "single"',
            ),
        ),
    ),
}
