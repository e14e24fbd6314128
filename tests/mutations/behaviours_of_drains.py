"""Behaviours 155 to 169 of the disruption catalogue, broken: drains, evictions, static NodePools. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    155: (
        "A node without a claim stays for ever.",
        (
            Edit(
                "reconciler/lifecycle/termination.py",
                "        return _end_orphan(view, node) if labels.NODECLASS in node.metadata.labels else NOTHING",
                "        return NOTHING",
            ),
        ),
    ),
    156: (
        "A node that goes stays in its load balancers.",
        (
            Edit(
                "reconciler/lifecycle/termination.py",
                "    if labels.EXCLUDE_BALANCERS not in node.metadata.labels:",
                "    if labels.EXCLUDE_BALANCERS in node.metadata.labels:",
            ),
        ),
    ),
    157: (
        "Finished pods hold up a drain.",
        (
            Edit(
                "reconciler/model/pods.py",
                "    return drainable(pod, now) and not terminal(pod)",
                "    return drainable(pod, now)",
            ),
        ),
    ),
    158: (
        "A pod that a budget keeps is asked again at once.",
        (
            Edit(
                "reconciler/lifecycle/drain.py",
                "    return wait is not None and wait > view.snapshot.now",
                "    return False",
            ),
        ),
    ),
    159: (
        "Critical pods go first.",
        (
            Edit(
                "reconciler/lifecycle/drain.py",
                "    wave = min((wave_of(pod) for pod in rest), default=0)",
                "    wave = max((wave_of(pod) for pod in rest), default=0)",
            ),
        ),
    ),
    160: (
        "A node without a machine is not drained though its kubelet lives.",
        (
            Edit(
                "reconciler/lifecycle/termination.py",
                "    if node.ready or not node.spec.provider_id or view",
                "    if not node.spec.provider_id or view",
            ),
        ),
    ),
    161: (
        "A pod that hangs is waited for a minute longer.",
        (Edit("reconciler/model/pods.py", "STUCK_AFTER = timedelta(minutes=1)", "STUCK_AFTER = timedelta(minutes=2)"),),
    ),
    162: (
        "An eviction is about whoever has the name.",
        (
            Edit(
                "reconciler/runtime/performing.py",
                "    kube.evict(action.ref, uid=action.uid)",
                "    kube.evict(action.ref)",
            ),
        ),
    ),
    163: (
        "A pod that ends too late has its time.",
        (
            Edit(
                "reconciler/lifecycle/drain.py",
                "        return pod.metadata.deletion_timestamp > max(deadline, now + _SECOND)",
                "        return False",
            ),
        ),
    ),
    164: (
        "Pods whose time is over wait for their wave.",
        (
            Edit(
                "reconciler/lifecycle/drain.py",
                "_force([pod for pod in waiting if must_go(pod, now, deadline)]",
                "_force([pod for pod in waiting if must_go(pod, now, deadline) and _wave(pod) == wave]",
            ),
        ),
    ),
    165: (
        "A pod may have no time at all.",
        (Edit("reconciler/lifecycle/drain.py", "    seconds = max(1, int(", "    seconds = max(0, int("),),
    ),
    166: (
        "Volumes are waited for beyond the deadline.",
        (
            Edit(
                "reconciler/lifecycle/termination.py",
                "    if deadline is not None and view.snapshot.now >= deadline:",
                "    if deadline is not None and view.snapshot.now >= deadline + _NODE_WAIT:",
            ),
        ),
    ),
    167: (
        "Two budgets answer like one.",
        (
            Edit(
                "reconciler/telemetry/telemetry.py",
                "            several = isinstance(error, SeveralBudgets)",
                "            several = False",
            ),
        ),
    ),
    168: (
        "What a command replaces is made a second time.",
        (
            Edit(
                "reconciler/provisioning/static.py",
                "    return max(0, replicas - len(own.active) - len(own.disrupted))",
                "    return max(0, replicas - len(own.active))",
            ),
        ),
    ),
    169: (
        "Protected pods count like all others.",
        (
            Edit(
                "reconciler/disruption/surplus.py",
                "    return (_PROTECTED if guarded_by_pod else _USED), cost, claim.name",
                "    return _USED, cost, claim.name",
            ),
        ),
    ),
}
