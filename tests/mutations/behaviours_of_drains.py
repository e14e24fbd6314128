"""Behaviours 155 to 169 of the disruption catalogue, broken: drains, evictions, static NodePools. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    155: (
        "A node without a claim stays for ever.",
        (
            Edit(
                "reconciler/kerf/lifecycle:end_node",
                "_end_orphan(view, node) if labels.NODECLASS in node.metadata.labels else NOTHING",
                "NOTHING",
            ),
        ),
    ),
    156: (
        "A node that goes stays in its load balancers.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_tainted",
                "labels.EXCLUDE_BALANCERS not in node.metadata.labels",
                "labels.EXCLUDE_BALANCERS in node.metadata.labels",
            ),
        ),
    ),
    157: (
        "Finished pods hold up a drain.",
        (
            Edit(
                "reconciler/kerf/model:waits_for_eviction",
                "drainable(pod, now) and (not terminal(pod))",
                "drainable(pod, now)",
            ),
        ),
    ),
    158: (
        "A pod that a budget keeps is asked again at once.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_was_refused",
                "wait is not None and wait > view.snapshot.now",
                "False",
            ),
        ),
    ),
    159: (
        "Critical pods go first.",
        (
            Edit(
                "reconciler/kerf/lifecycle:drain",
                "min",
                "max",
            ),
        ),
    ),
    160: (
        "A node without a machine is not drained though its kubelet lives.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_lost",
                "node.ready or not node.spec.provider_id or view.instance(node.spec.provider_id) is not None",
                "not node.spec.provider_id or view.instance(node.spec.provider_id) is not None",
            ),
        ),
    ),
    161: (
        "A pod that hangs is waited for a minute longer.",
        (Edit("reconciler/kerf/model:STUCK_AFTER", "1", "2"),),
    ),
    162: (
        "An eviction is about whoever has the name.",
        (
            Edit(
                "reconciler/kerf/runtime:_",
                "kube.evict(action.ref, uid=action.uid)",
                "kube.evict(action.ref)",
            ),
        ),
    ),
    163: (
        "A pod that ends too late has its time.",
        (
            Edit(
                "reconciler/kerf/lifecycle:must_go",
                "pod.metadata.deletion_timestamp > max(deadline, now + _SECOND)",
                "False",
            ),
        ),
    ),
    164: (
        "Pods whose time is over wait for their wave.",
        (
            Edit(
                "reconciler/kerf/lifecycle:drain",
                "[pod for pod in waiting if must_go(pod, now, deadline)]",
                "[pod for pod in waiting if must_go(pod, now, deadline) and _wave(pod) == wave]",
            ),
        ),
    ),
    165: (
        "A pod may have no time at all.",
        (Edit("reconciler/kerf/lifecycle:_force", "1", "0"),),
    ),
    166: (
        "Volumes are waited for beyond the deadline.",
        (
            Edit(
                "reconciler/kerf/lifecycle:_volume_stage",
                "view.snapshot.now >= deadline",
                "view.snapshot.now >= deadline + _NODE_WAIT",
            ),
        ),
    ),
    167: (
        "Two budgets answer like one.",
        (
            Edit(
                "reconciler/kerf/telemetry:Telemetry.done",
                "isinstance(error, SeveralBudgets)",
                "False",
            ),
        ),
    ),
    168: (
        "What a command replaces is made a second time.",
        (
            Edit(
                "reconciler/kerf/provisioning:_shortfall",
                "replicas - len(own.active) - len(own.disrupted)",
                "replicas - len(own.active)",
            ),
        ),
    ),
    169: (
        "Protected pods count like all others.",
        (
            Edit(
                "reconciler/kerf/disruption:_rank",
                "_PROTECTED if guarded_by_pod else _USED",
                "_USED",
            ),
        ),
    ),
}
