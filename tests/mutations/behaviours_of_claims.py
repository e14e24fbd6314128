"""Behaviours 136 to 154 of the disruption catalogue, broken: pools, commands, a claim from launch to end. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    136: (
        "A claim has an instant more.",
        (Edit("reconciler/lifecycle/liveness.py", "    if snapshot.now < due:", "    if snapshot.now <= due:"),),
    ),
    137: (
        "Three must fail.",
        (Edit("reconciler/lifecycle/registration_health.py", "_KEPT, _TOO_MANY = 4, 2", "_KEPT, _TOO_MANY = 4, 3"),),
    ),
    138: (
        "A change of the class changes nothing.",
        (
            Edit(
                "reconciler/lifecycle/node_pools.py",
                "    return _class_generation(pool, node_class) != pool.status.node_class_observed_generation",
                "    return False",
            ),
        ),
    ),
    139: (
        "A class that goes is as good as any.",
        (
            Edit(
                "reconciler/lifecycle/node_pools.py",
                "    if node_class.metadata.deleting:\n        return FALSE",
                "    if node_class.metadata.deleting and not node_class.status.conditions:\n        return FALSE",
            ),
        ),
    ),
    140: (
        "Nodes that commands are about are counted.",
        (
            Edit(
                "reconciler/lifecycle/node_pools.py",
                "        if not commanded:\n            amounts.setdefault(pool, dict(_ALWAYS))[name] = amount",
                "        amounts.setdefault(pool, dict(_ALWAYS))[name] = amounts[pool].get(name, 0) + amount",
            ),
        ),
    ),
    141: (
        "One replacement is awaited.",
        (
            Edit(
                "reconciler/disruption/commands.py",
                "    return [claims[name] for name in command.replacements if name in claims]",
                "    return [claims[name] for name in command.replacements[:1] if name in claims]",
            ),
        ),
    ),
    142: (
        "A command has twice its time.",
        (
            Edit(
                "reconciler/disruption/commands.py",
                "    if age > _time_limit(view):",
                "    if age > 2 * _time_limit(view):",
            ),
        ),
    ),
    143: (
        "One command goes on at a time.",
        (
            Edit(
                "reconciler/disruption/commands.py",
                "for name in sorted(view.commands))",
                "for name in sorted(view.commands)[:1])",
            ),
        ),
    ),
    144: (
        "Each command adds next to no time.",
        (Edit("reconciler/disruption/commands.py", "timedelta(milliseconds=80)", "timedelta(milliseconds=8)"),),
    ),
    145: (
        "A claim is launched without a finalizer.",
        (
            Edit(
                "reconciler/lifecycle/launch.py",
                "    if labels.TERMINATION_FINALIZER not in claim.metadata.finalizers:",
                "    if claim.metadata.unreadable:",
            ),
        ),
    ),
    146: (
        "Where there is nothing to be had the claim waits.",
        (
            Edit(
                "reconciler/lifecycle/launch.py",
                "    if outcomes.out_of_capacity(failure):\n        return _no_capacity(claim, message)",
                "    if outcomes.out_of_capacity(failure):\n        return _wait(view, claim, reason, message)",
            ),
        ),
    ),
    147: (
        "Whatever the label says is an opt-out.",
        (
            Edit(
                "reconciler/lifecycle/registration.py",
                '    if node.metadata.labels.get(labels.DO_NOT_SYNC_TAINTS) == "true":',
                "    if labels.DO_NOT_SYNC_TAINTS in node.metadata.labels:",
            ),
        ),
    ),
    148: (
        "That the taint was missing is not told.",
        (
            Edit(
                "reconciler/lifecycle/registration.py",
                '(warning(claim, "UnregisteredTaintMissing", _MISSING),) if missing else ()',
                "()",
            ),
        ),
    ),
    149: (
        "The unregistered taint stays.",
        (
            Edit(
                "reconciler/lifecycle/registration.py",
                "    kept = [taint for taint in node.spec.taints if not _unregistered(taint)]",
                "    kept = [*node.spec.taints]",
            ),
        ),
    ),
    150: (
        "A resource of which nothing was asked must be there.",
        (
            Edit(
                "reconciler/lifecycle/initialization.py",
                "for name, value in claim.requests().items() if value and not allocatable[name])",
                "for name in claim.requests() if not allocatable[name])",
            ),
        ),
    ),
    151: (
        "One driver is enough.",
        (
            Edit(
                "reconciler/lifecycle/initialization.py",
                "    return sorted({driver.strip()",
                "    return [] if own else sorted({driver.strip()",
            ),
        ),
    ),
    152: (
        "The first of several nodes to go takes the instance with it.",
        (
            Edit(
                "reconciler/lifecycle/termination.py",
                "    if held and len(going) == len(nodes):\n        return _stages(progress, held)",
                "    if held:\n        return _stages(progress, held[:1])",
            ),
        ),
    ),
    153: (
        "A termination is asked for once.",
        (
            Edit(
                "reconciler/lifecycle/instance_end.py",
                "    alive_still = instance is not None and listed",
                "    alive_still = False",
            ),
        ),
    ),
    154: (
        "A deadline that is there is written anew.",
        (
            Edit(
                "reconciler/lifecycle/termination.py",
                "    if grace is None or since is None or _has_deadline(claim):",
                "    if grace is None or since is None:",
            ),
        ),
    ),
}
