"""Behaviours 136 to 154 of the disruption catalogue, broken: pools, commands, a claim from launch to end. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    136: (
        "A claim has an instant more.",
        (Edit("reconciler/kerf/lifecycle:_expire", "snapshot.now < due", "snapshot.now <= due"),),
    ),
    137: (
        "Three must fail.",
        (Edit("reconciler/kerf/lifecycle:_TOO_MANY", "2", "3"),),
    ),
    138: (
        "A change of the class changes nothing.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_is_news",
                "_class_generation(pool, node_class) != pool.status.node_class_observed_generation",
                "False",
            ),
        ),
    ),
    139: (
        "A class that goes is as good as any.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_class_readiness",
                "node_class.metadata.deleting",
                "node_class.metadata.deleting and (not node_class.status.conditions)",
            ),
        ),
    ),
    140: (
        "Nodes that commands are about are counted.",
        (
            Edit(
                "reconciler/kerf/lifecycle:held",
                "if not commanded:\n    amounts.setdefault(pool, dict(_ALWAYS))[name] = amount",
                "amounts.setdefault(pool, dict(_ALWAYS))[name] = amounts[pool].get(name, 0) + amount",
            ),
        ),
    ),
    141: (
        "One replacement is awaited.",
        (
            Edit(
                "reconciler/kerf/disruption:replacements",
                "command.replacements",
                "command.replacements[:1]",
            ),
        ),
    ),
    142: (
        "A command has twice its time.",
        (
            Edit(
                "reconciler/kerf/disruption:_stop_for_replacements",
                "age > limit",
                "age > 2 * limit",
            ),
        ),
    ),
    143: (
        "One command goes on at a time.",
        (
            Edit(
                "reconciler/kerf/disruption:progress",
                "sorted(view.commands)",
                "sorted(view.commands)[:1]",
            ),
        ),
    ),
    144: (
        "Each command adds next to no time.",
        (Edit("reconciler/kerf/disruption:_EACH", "80", "8"),),
    ),
    145: (
        "A claim is launched without a finalizer.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_settled",
                "labels.TERMINATION_FINALIZER not in claim.metadata.finalizers",
                "claim.metadata.unreadable",
            ),
        ),
    ),
    146: (
        "Where there is nothing to be had the claim waits.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_failed",
                "_no_capacity(claim, message)",
                "_wait(view, claim, reason, message)",
            ),
        ),
    ),
    147: (
        "Whatever the label says is an opt-out.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_taints",
                "node.metadata.labels.get(labels.DO_NOT_SYNC_TAINTS) == 'true'",
                "labels.DO_NOT_SYNC_TAINTS in node.metadata.labels",
            ),
        ),
    ),
    148: (
        "That the taint was missing is not told.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_join",
                "(warning(claim, 'UnregisteredTaintMissing', _MISSING),) if missing else ()",
                "()",
            ),
        ),
    ),
    149: (
        "The unregistered taint stays.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_taints",
                "[taint for taint in node.spec.taints if not _unregistered(taint)]",
                "[*node.spec.taints]",
            ),
        ),
    ),
    150: (
        "A resource of which nothing was asked must be there.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_lacking",
                "(name for name, value in claim.requests().items() if value and (not allocatable[name]))",
                "(name for name in claim.requests() if not allocatable[name])",
            ),
        ),
    ),
    151: (
        "One driver is enough.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_silent_drivers",
                "sorted({driver.strip() for driver in wanted.split(',')} - own - {''})",
                "[] if own else sorted({driver.strip() for driver in wanted.split(',')} - own - {''})",
            ),
        ),
    ),
    152: (
        "The first of several nodes to go takes the instance with it.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_end_nodes",
                "if held and len(going) == len(nodes):\n    return _stages(progress, held)",
                "if held:\n    return _stages(progress, held[:1])",
            ),
        ),
    ),
    153: (
        "A termination is asked for once.",
        (
            Edit(
                "reconciler/kerf/lifecycle:terminate",
                "instance is not None and listed",
                "False",
            ),
        ),
    ),
    154: (
        "A deadline that is there is written anew.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_with_deadline",
                "grace is None or since is None or _has_deadline(claim)",
                "grace is None or since is None",
            ),
        ),
    ),
}
