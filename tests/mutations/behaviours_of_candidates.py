"""Behaviours 1 to 61 of the disruption catalogue, broken: candidates, costs, budgets, emptiness. By number."""

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
        (Edit("reconciler/disruption/candidates.py", 'f"pod {pod.key} is annotated', 'f"a pod is annotated'),),
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
                "        if labels.DO_NOT_DISRUPT in pod.metadata.annotations and",
                "        if pods.reschedulable(pod) and labels.DO_NOT_DISRUPT in pod.metadata.annotations and",
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
                "reconciler/disruption/proposals.py",
                "    return labels.ZONE in state.labels and labels.CAPACITY_TYPE in state.labels",
                "    return labels.ZONE in state.labels or labels.CAPACITY_TYPE in state.labels",
            ),
            Edit(
                "reconciler/disruption/proposals.py",
                "    known = state.labels.get(labels.INSTANCE_TYPE) in view.types_of(pool)",
                "    known = True",
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
                "(not (site := self._sites[key]).initialized,",
                "((site := self._sites[key]).initialized,",
            ),
        ),
    ),
    23: (
        "Nodes of somebody else take no pods.",
        (
            Edit(
                "reconciler/scheduling/sites.py",
                "    if state.deleting or (state.node is not None and state.node.spec.unschedulable):",
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
                "reconciler/disruption/methods.py",
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
                "    price = costs.price(",
                "    price = 0 if view.snapshot.out_of_stock else costs.price(",
            ),
        ),
    ),
    34: (
        "What has no price costs a little.",
        (Edit("reconciler/disruption/costs.py", "(instance_type,)) or 0", "(instance_type,)) or 1"),),
    ),
    35: (
        "A pool that allows nothing is not told so.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "        if budget.nodes and not budget.allowed[reason]:",
                "        if not budget.nodes:",
            ),
        ),
    ),
    36: (
        "Nodes that commands are about use up no budget.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "labels.COMMAND in meta.annotations or not state.node.ready",
                "not state.node.ready",
            ),
        ),
    ),
    37: (
        "Nodes that wait for their replacements use up no budget.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "labels.COMMAND in meta.annotations or not state.node.ready",
                "not state.node.ready",
            ),
        ),
    ),
    38: (
        "Of what a plan starts in a pool only one node counts.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "self._started[pool] = self._started.get(pool, 0) + 1",
                "self._started[pool] = 1",
            ),
        ),
    ),
    39: (
        "Empty nodes go whatever the budget says.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "    if not ledger.remaining(found.pool.name, EMPTY):",
                "    if ledger.remaining(found.pool.name, EMPTY) < 0:",
            ),
        ),
    ),
    40: (
        "Nodes whose instances are ending count.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                ' and state.initialized and not claim.is_true("InstanceTerminating")',
                " and state.initialized",
            ),
        ),
    ),
    41: (
        "What remains may be less than nothing.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "        return max(0, self.allowed[reason] - self.disrupting)",
                "        return self.allowed[reason] - self.disrupting",
            ),
        ),
    ),
    42: (
        "A node that is not ready uses up no budget.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "labels.COMMAND in meta.annotations or not state.node.ready",
                "labels.COMMAND in meta.annotations",
            ),
        ),
    ),
    43: (
        "Drift asks no budget.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "    return found if ledger.remaining(found.pool.name, DRIFTED) else _no_budget(view, state, DRIFTED)",
                "    return found",
            ),
        ),
    ),
    44: (
        "Drifted nodes that are on their way use up no budget.",
        (
            Edit(
                "reconciler/disruption/budgets.py",
                "labels.COMMAND in meta.annotations or not state.node.ready",
                "not state.node.ready",
            ),
        ),
    ),
    45: (
        "A budget that sleeps holds.",
        (Edit("api/v1/budgets.py", "    return hit is not None and hit <= now", "    return hit is not None"),),
    ),
    46: (
        "A scoped budget that sleeps is the only one.",
        (Edit("api/v1/budgets.py", "reason in b.reasons) and _active(b, now)]", "reason in b.reasons)]"),),
    ),
    47: (
        "The loosest budget wins.",
        (
            Edit(
                "api/v1/budgets.py",
                "    return min((_count(b.nodes, nodes) for b in holding), default=UNLIMITED)",
                "    return max((_count(b.nodes, nodes) for b in holding), default=UNLIMITED)",
            ),
        ),
    ),
    48: (
        "What cannot be read allows all.",
        (
            Edit(
                "api/v1/budgets.py",
                "    if problems(given):\n        return 0",
                "    if problems(given):\n        return UNLIMITED",
            ),
        ),
    ),
    49: (
        "Schedules are in the time zone of who asks.",
        (
            Edit(
                "api/cron.py",
                "        start = instant.astimezone(UTC)\n",
                "        start = instant.replace(tzinfo=UTC)\n",
            ),
            Edit(
                "api/v1/budgets.py",
                "hit is not None and hit <= now",
                "hit is not None and hit <= now.replace(tzinfo=hit.tzinfo)",
            ),
        ),
    ),
    50: (
        "A window is open an instant too long.",
        (
            Edit(
                "api/v1/budgets.py",
                "next_after(now - durations.parse(budget.duration))",
                'next_after(now - durations.parse(budget.duration) - durations.parse("1m"))',
            ),
        ),
    ),
    51: (
        "A number is no more than there are nodes.",
        (
            Edit(
                "api/v1/budgets.py",
                "    return min(int(allowance), UNLIMITED)",
                "    return min(int(allowance), nodes)",
            ),
        ),
    ),
    52: (
        "One empty node goes in a plan.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "        for found in sorted(ready, key=by_savings)\n",
                "        for found in sorted(ready, key=by_savings)[:1]\n",
            ),
        ),
    ),
    53: (
        "An empty node goes as soon as anything has been said of it.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                'empty = claim.is_true("Consolidatable") and',
                'empty = claim.condition("Consolidatable") is not None and',
            ),
        ),
    ),
    54: (
        "Daemons keep their node.",
        (
            Edit(
                "reconciler/disruption/costs.py",
                "    return not any(pods.reschedulable(pod) and eviction_cost(pod) > 0",
                "    return not any(eviction_cost(pod) > 0",
            ),
        ),
    ),
    55: (
        "Every pod that ends keeps its node.",
        (Edit("reconciler/model/pods.py", "(terminating(pod) and of_stateful_set(pod))", "terminating(pod)"),),
    ),
    56: (
        "Drift comes before emptiness.",
        (
            Edit("reconciler/disruption/methods.py", '    Method("emptiness", emptiness),\n', ""),
            Edit(
                "reconciler/disruption/methods.py",
                '    Method("consolidation", consolidation),\n',
                '    Method("emptiness", emptiness),\n    Method("consolidation", consolidation),\n',
            ),
        ),
    ),
    57: (
        "A pod that comes to an empty node goes with it.",
        (Edit("reconciler/disruption/commands.py", "    if come:\n", "    if come and command.replacements:\n"),),
    ),
    58: (
        "An empty node goes at once.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "    due = _quiet_since(found) + view.snapshot.settings.validation_delay",
                "    due = _quiet_since(found)",
            ),
        ),
    ),
    59: (
        "Nobody counts the nodes that were spared.",
        (
            Edit(
                "reconciler/telemetry/telemetry.py",
                "                self.metrics.failed_validations.labels(kind).inc()",
                "                self.metrics.failed_validations.labels(kind)",
            ),
        ),
    ),
    60: (
        "Static pools are consolidated.",
        (Edit("reconciler/disruption/methods.py", "    if pool.static:\n        return False\n", ""),),
    ),
    61: (
        "Room that is kept on one node keeps them all.",
        (
            Edit(
                "reconciler/disruption/methods.py",
                "view.snapshot.buffer_pods.get(key, 0) if empty",
                "sum(view.snapshot.buffer_pods.values()) if empty",
            ),
        ),
    ),
}
