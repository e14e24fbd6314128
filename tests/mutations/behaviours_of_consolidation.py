"""Behaviours 62 to 86 of the disruption catalogue, broken: consolidation of nodes. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    62: (
        "A type that costs what the node does replaces it.",
        (
            Edit(
                "reconciler/kerf/disruption:_beats",
                "worst < price",
                "worst <= price",
            ),
        ),
    ),
    63: (
        "Sixteen types are sent for a spot node.",
        (Edit("reconciler/kerf/disruption:SPOT_TO_SPOT_TYPES", "15", "16"),),
    ),
    64: (
        "Fourteen cheaper types are enough for a spot node.",
        (Edit("reconciler/kerf/disruption:_cheaper", "len(kept) < least", "len(kept) < least - 1"),),
    ),
    65: (
        "A spot node goes for any cheaper type.",
        (
            Edit(
                "reconciler/kerf/disruption:_cheaper",
                "len(candidates) == 1",
                "not candidates",
            ),
        ),
    ),
    66: (
        "The fifteen types that come first by name are sent.",
        (
            Edit(
                "reconciler/kerf/disruption:_cheaper",
                "pick.instance_types",
                "sorted(pick.instance_types)",
            ),
        ),
    ),
    67: (
        "However many types minValues asks, all that are cheaper are sent.",
        (Edit("reconciler/kerf/disruption:_enough", "return kept[:count]", "return kept"),),
    ),
    68: (
        "Nobody looks at minValues once the dearer types are gone.",
        (Edit("reconciler/kerf/disruption:_cheaper", "missing is not None", "missing == ''"),),
    ),
    69: (
        "One type is enough for minValues.",
        (Edit("reconciler/kerf/disruption:_shortfall", "len(offered) < row.min_values", "not offered"),),
    ),
    70: (
        "What the node's owner says of it is not heard.",
        (
            Edit(
                "reconciler/kerf/disruption:_node_blockers",
                "'true'",
                "'always'",
            ),
        ),
    ),
    71: (
        "A budget holds pods that are not ready, whatever it says of those.",
        (Edit("reconciler/kerf/model:Budget.frees", "self.frees_unready and (not pods.ready(pod))", "False"),),
    ),
    72: (
        "A replacement counts as what its cheapest zone asks.",
        (Edit("reconciler/kerf/scheduling:worst_launch", "max", "min"),),
    ),
    73: (
        "What comes in place of a node may be bought on demand although it is cheaper as spot only.",
        (
            Edit(
                "reconciler/kerf/disruption:_cheaper",
                "labels.RESERVED not in new.capacity_types",
                "len(candidates) > 1",
            ),
        ),
    ),
    74: (
        "How many pods would be disturbed does not count.",
        (
            Edit(
                "reconciler/kerf/disruption:by_savings",
                "found.cost",
                "costs.ONE",
            ),
        ),
    ),
    75: (
        "Pods that nobody owns cost nothing.",
        (
            Edit(
                "reconciler/kerf/disruption:reschedule_cost",
                "pods.reschedulable(pod)",
                "pods.reschedulable(pod) and pod.metadata.owner_references",
            ),
        ),
    ),
    76: (
        "A grace period lets consolidation move protected pods.",
        (
            Edit(
                "reconciler/kerf/disruption:waived",
                "eventual and claim.spec.termination_grace_period is not None",
                "claim.spec.termination_grace_period is not None",
            ),
        ),
    ),
    77: (
        "A protection for some time never ends.",
        (
            Edit(
                "reconciler/kerf/model:protected",
                "pod.status.start_time is None or now - pod.status.start_time < lasts",
                "pod.status.start_time is not None",
            ),
        ),
    ),
    78: (
        "Pods are moved to nodes that have just come to rest.",
        (
            Edit(
                "reconciler/kerf/disruption:Scheduler._solved",
                "Manner.SPARING",
                "Manner.FREELY",
            ),
        ),
    ),
    79: (
        "Nodes of a pool that never consolidates take no pods.",
        (
            Edit(
                "reconciler/kerf/scheduling:_settles",
                "not pool.consolidate_after",
                "pool.consolidate_after is False",
            ),
        ),
    ),
    81: (
        "One node may be replaced by two.",
        (Edit("reconciler/kerf/disruption:replacements", "len(candidates)", "2 * len(candidates)"),),
    ),
    82: (
        "A move is carried out with other types than were found.",
        (
            Edit(
                "reconciler/kerf/disruption:_no_worse",
                "bool(proposed) and all((proposed <= set(new.instance_types) for new in move.new))",
                "bool(proposed)",
            ),
        ),
    ),
    83: (
        "Nodes are replaced in pairs only.",
        (
            Edit(
                "reconciler/kerf/disruption:_SIZES",
                "(2, 3, 4, 6, 8, 12, 16, 24, 32)",
                "(2, 32)",
            ),
        ),
    ),
    84: (
        "Two nodes are replaced by one like them, where one less would do.",
        (
            Edit(
                "reconciler/kerf/disruption:_cheaper",
                "len(candidates) > 1",
                "len(candidates) > 9",
            ),
        ),
    ),
    85: (
        "When the first move does not hold, nothing else is looked at.",
        (Edit("reconciler/kerf/disruption:consolidation", "_PROBES", "1"),),
    ),
    86: (
        "Nodes that go together are counted as if each went alone.",
        (
            Edit(
                "reconciler/kerf/telemetry:consolidation_type",
                "'multi' if command.get('peers') else 'single'",
                "'single'",
            ),
        ),
    ),
}
