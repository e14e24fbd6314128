"""Behaviours 1 to 34 of the disruption catalogue, broken: candidates, simulation, costs. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    1: (
        "What is left of a command that is no more stays.",
        (
            Edit(
                "reconciler/disruption/commands.py",
                "    return Plan(actions=(untaint(state.node, why),))",
                "    return NOTHING",
            ),
        ),
    ),
    2: (
        "A replacement that is lost goes unnoticed.",
        (
            Edit(
                "reconciler/disruption/commands.py",
                "    if len(living) < len(command.replacements):",
                "    if len(living) > len(command.replacements):",
            ),
        ),
    ),
    3: (
        "Nobody hears which pod is protected.",
        (Edit("reconciler/disruption/candidates.py", 'f"{pods.named(pod)} is annotated', 'f"a pod is annotated'),),
    ),
    4: (
        "A grace period waives the protection of pods whoever asks.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                "    return eventual and claim.spec.termination_grace_period is not None",
                "    return claim.spec.termination_grace_period is not None",
            ),
        ),
    ),
    5: (
        "Drift needs no grace period to pass over budgets.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                "    return eventual and claim.spec.termination_grace_period is not None",
                "    return eventual",
            ),
        ),
    ),
    6: (
        "Only pods that move elsewhere protect their node.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                "        elif labels.DO_NOT_DISRUPT in pod.metadata.annotations and",
                "        elif pods.reschedulable(pod) and labels.DO_NOT_DISRUPT in pod.metadata.annotations and",
            ),
        ),
    ),
    7: (
        "A pod that is over still protects its node.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                "pods.active(pod) and pods.protected(pod, now)",
                "pods.protected(pod, now)",
            ),
        ),
    ),
    8: (
        "PodDisruptionBudgets hold static and finished pods, and none of a DaemonSet.",
        (
            Edit(
                "reconciler/model/pdbs.py",
                "if found and pods.evictable(pod, now) else []",
                "if found and not pods.of_daemon_set(pod) else []",
            ),
        ),
    ),
    9: (
        "Two budgets that both allow it let a pod go.",
        (Edit("reconciler/model/pdbs.py", "        if len(found) > 1:\n", "        if len(found) > 9:\n"),),
    ),
    10: (
        "Whatever the annotation says protects the node.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                '    if state.annotations.get(labels.DO_NOT_DISRUPT) == "true":\n        yield',
                "    if labels.DO_NOT_DISRUPT in state.annotations:\n        yield",
            ),
        ),
    ),
    11: (
        "Nodes of other providers are ours.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                "    if state.claim is None or not state.claim.managed:\n        yield",
                "    if state.claim is None:\n        yield",
            ),
        ),
    ),
    12: (
        "A nomination holds for an instant too long.",
        (Edit("reconciler/disruption/candidates.py", "until > view.snapshot.now", "until >= view.snapshot.now"),),
    ),
    13: (
        "Only a Node that is deleted by itself is on its way.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                "    if state.deleting:\n",
                "    if state.node is not None and state.node.metadata.deleting:\n",
            ),
        ),
    ),
    14: (
        "Of a node without a NodePool nobody hears.",
        (
            Edit(
                "reconciler/disruption/standing.py", "        return _without_pool(view, key)", "        return NOTHING"
            ),
        ),
    ),
    15: (
        "One of two labels is enough to be consolidated.",
        (
            Edit(
                "reconciler/disruption/attraction.py",
                "    for label in (labels.ZONE, labels.CAPACITY_TYPE):\n",
                "    for label in (labels.ZONE,):\n",
            ),
            Edit(
                "reconciler/disruption/attraction.py",
                "    if type_ not in view.types_of(pool):\n",
                "    if False:\n",
            ),
        ),
    ),
    16: (
        "A node that a command is about is a candidate for another.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                "    if view.command(key) is not None:\n        yield",
                "    if view.command(key) is not None and state.deleting:\n        yield",
            ),
        ),
    ),
    17: (
        "A duration protects from then on.",
        (
            Edit(
                "reconciler/model/pods.py",
                "now - pod.status.start_time < lasts)",
                "now - pod.status.start_time > lasts)",
            ),
        ),
    ),
    18: (
        "That an annotation means nothing is no warning.",
        (
            Edit(
                "reconciler/disruption/standing.py",
                '"InvalidDoNotDisruptAnnotation", words, type_="Warning")',
                '"InvalidDoNotDisruptAnnotation", words)',
            ),
        ),
    ),
    19: (
        "A pod that has not started is not protected yet.",
        (
            Edit(
                "reconciler/model/pods.py",
                "(pod.status.start_time is None or now",
                "(pod.status.start_time is not None and now",
            ),
        ),
    ),
    20: (
        "Only the last pod is asked.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                "    for pod in on_node:\n        if pod.metadata.unreadable",
                "    for pod in on_node[-1:]:\n        if pod.metadata.unreadable",
            ),
        ),
    ),
    21: (
        "A place on a node that is not initialised is as good as any.",
        (
            Edit(
                "reconciler/disruption/simulation.py",
                '            lost[key] = f"would go to {state.name}, which is not initialized"',
                "            pass",
            ),
        ),
    ),
    22: (
        "Nodes that are still starting are tried first.",
        (
            Edit(
                "reconciler/scheduling/targets.py",
                "return not target.state.initialized,",
                "return target.state.initialized,",
            ),
        ),
    ),
    23: (
        "Nodes of somebody else take no pods.",
        (
            Edit(
                "reconciler/scheduling/sites.py",
                "    if state.deleting:",
                "    if state.claim is None or state.deleting:",
            ),
        ),
    ),
    24: (
        "A disk of the node itself keeps its pod there.",
        (
            Edit(
                "reconciler/scheduling/volumes.py",
                "    return volume.spec.local is not None or volume.spec.host_path is not None",
                "    return volume.spec.host_path is not None",
            ),
        ),
    ),
    25: (
        "Pods of a node that a command is about are bought another place at once.",
        (
            Edit(
                "reconciler/provisioning/pending.py",
                "        if not state.deleting or state.node is None:",
                '        about = state.claim is not None and "kerf.sh/command" in state.claim.metadata.annotations\n'
                "        if not (state.deleting or about) or state.node is None:",
            ),
        ),
    ),
    26: (
        "There is one command at a time.",
        (
            Edit(
                "reconciler/disruption/pacing.py",
                "    return all(command.created for command in view.commands.values())",
                "    return not view.commands",
            ),
        ),
    ),
    27: (
        "A NodePool without types holds up all others.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                "    elif not view.types_of(pool):",
                "    elif not all(view.types_of(each) for each in view.snapshot.node_pools.values()):",
            ),
        ),
    ),
    28: (
        "A pod that was stuck before keeps every node.",
        (
            Edit(
                "reconciler/disruption/simulation.py",
                "        _stranded(view, solution, staying),",
                "        _stranded(view, solution, wanted),",
            ),
        ),
    ),
    29: (
        "One pod without a place is no obstacle.",
        (
            Edit(
                "reconciler/disruption/simulation.py",
                "        if not self.stranded:",
                "        if len(self.stranded) < 2:",
            ),
        ),
    ),
    30: (
        "A proposal is used when it is two minutes old.",
        (
            Edit(
                "reconciler/disruption/proposals.py",
                "now - proposal.made_at >= FRESH",
                "now - proposal.made_at > FRESH",
            ),
        ),
    ),
    31: (
        "A dear pod is a cheap one.",
        (Edit("reconciler/disruption/costs.py", "ONE + _deletion_cost(pod) +", "ONE - _deletion_cost(pod) +"),),
    ),
    32: (
        "Pods that go gladly make their node cheaper.",
        (
            Edit(
                "reconciler/disruption/costs.py",
                "sum(max(0, eviction_cost(pod)) for pod",
                "sum(eviction_cost(pod) for pod",
            ),
        ),
    ),
    33: (
        "What is sold out has no price.",
        (
            Edit(
                "reconciler/disruption/candidates.py",
                "    price = costs.node_price(",
                "    price = 0 if view.snapshot.out_of_stock else costs.node_price(",
            ),
        ),
    ),
    34: (
        "What has no price costs a little.",
        (Edit("reconciler/disruption/costs.py", "(instance_type,)) or 0", "(instance_type,)) or 1"),),
    ),
}
