"""Behaviours 1 to 34 of the disruption catalogue, broken: candidates, simulation, costs. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    1: (
        "What is left of a command that is no more stays.",
        (
            Edit(
                "reconciler/kerf/disruption:_healed",
                "Plan(actions=(untaint(state.node, why),))",
                "NOTHING",
            ),
        ),
    ),
    2: (
        "A replacement that is lost goes unnoticed.",
        (
            Edit(
                "reconciler/kerf/disruption:_stop_for_replacements",
                "len(living) < len(command.replacements)",
                "len(living) > len(command.replacements)",
            ),
        ),
    ),
    3: (
        "Nobody hears which pod is protected.",
        (
            Edit(
                "reconciler/kerf/disruption:pod_blockers",
                "f'{pods.named(pod)} is annotated {labels.DO_NOT_DISRUPT}'",
                "f'a pod is annotated {labels.DO_NOT_DISRUPT}'",
            ),
        ),
    ),
    4: (
        "A grace period waives the protection of pods whoever asks.",
        (
            Edit(
                "reconciler/kerf/disruption:waived",
                "eventual and claim.spec.termination_grace_period is not None",
                "claim.spec.termination_grace_period is not None",
            ),
        ),
    ),
    5: (
        "Drift needs no grace period to pass over budgets.",
        (
            Edit(
                "reconciler/kerf/disruption:waived",
                "eventual and claim.spec.termination_grace_period is not None",
                "eventual",
            ),
        ),
    ),
    6: (
        "Only pods that move elsewhere protect their node.",
        (
            Edit(
                "reconciler/kerf/disruption:pod_blockers",
                "labels.DO_NOT_DISRUPT in pod.metadata.annotations and pods.active(pod) and pods.protected(pod, now)",
                (
                    "pods.reschedulable(pod) and labels.DO_NOT_DISRUPT in pod.metadata.annotations and "
                    "pods.active(pod) and pods.protected(pod, now)"
                ),
            ),
        ),
    ),
    7: (
        "A pod that is over still protects its node.",
        (
            Edit(
                "reconciler/kerf/disruption:pod_blockers",
                "labels.DO_NOT_DISRUPT in pod.metadata.annotations and pods.active(pod) and pods.protected(pod, now)",
                "labels.DO_NOT_DISRUPT in pod.metadata.annotations and pods.protected(pod, now)",
            ),
        ),
    ),
    8: (
        "PodDisruptionBudgets hold static and finished pods, and none of a DaemonSet.",
        (
            Edit(
                "reconciler/kerf/model:Pdbs._matching",
                "pods.evictable(pod, now)",
                "not pods.of_daemon_set(pod)",
            ),
        ),
    ),
    9: (
        "Two budgets that both allow it let a pod go.",
        (Edit("reconciler/kerf/model:Pdbs.blocking", "1", "9"),),
    ),
    10: (
        "Whatever the annotation says protects the node.",
        (
            Edit(
                "reconciler/kerf/disruption:_node_blockers",
                "state.annotations.get(labels.DO_NOT_DISRUPT) == 'true'",
                "labels.DO_NOT_DISRUPT in state.annotations",
            ),
        ),
    ),
    11: (
        "Nodes of other providers are ours.",
        (
            Edit(
                "reconciler/kerf/disruption:_node_blockers",
                "state.claim is None or not state.claim.managed",
                "state.claim is None",
            ),
        ),
    ),
    12: (
        "A nomination holds for an instant too long.",
        (Edit("reconciler/kerf/disruption:_node_blockers", "until > view.snapshot.now", "until >= view.snapshot.now"),),
    ),
    13: (
        "Only a Node that is deleted by itself is on its way.",
        (
            Edit(
                "reconciler/kerf/disruption:_node_blockers",
                "state.deleting",
                "state.node is not None and state.node.metadata.deleting",
            ),
        ),
    ),
    14: (
        "Of a node without a NodePool nobody hears.",
        (Edit("reconciler/kerf/disruption:_one", "_without_pool(view, key)", "NOTHING"),),
    ),
    15: (
        "One of two labels is enough to be consolidated.",
        (
            Edit(
                "reconciler/kerf/disruption:consolidation_blockers",
                "(labels.ZONE, labels.CAPACITY_TYPE)",
                "(labels.ZONE,)",
            ),
            Edit(
                "reconciler/kerf/disruption:consolidation_blockers",
                "type_ not in view.types_of(pool)",
                "False",
            ),
        ),
    ),
    16: (
        "A node that a command is about is a candidate for another.",
        (
            Edit(
                "reconciler/kerf/disruption:_node_blockers",
                "view.command(key) is not None",
                "view.command(key) is not None and state.deleting",
            ),
        ),
    ),
    17: (
        "A duration protects from then on.",
        (
            Edit(
                "reconciler/kerf/model:protected",
                "now - pod.status.start_time < lasts",
                "now - pod.status.start_time > lasts",
            ),
        ),
    ),
    18: (
        "That an annotation means nothing is no warning.",
        (
            Edit(
                "reconciler/kerf/disruption:_protections",
                "_event(pod, 'InvalidDoNotDisruptAnnotation', words, type_='Warning')",
                "_event(pod, 'InvalidDoNotDisruptAnnotation', words)",
            ),
        ),
    ),
    19: (
        "A pod that has not started is not protected yet.",
        (
            Edit(
                "reconciler/kerf/model:protected",
                "pod.status.start_time is None or now - pod.status.start_time < lasts",
                "pod.status.start_time is not None and now - pod.status.start_time < lasts",
            ),
        ),
    ),
    20: (
        "Only the last pod is asked.",
        (
            Edit(
                "reconciler/kerf/disruption:pod_blockers",
                (
                    "for pod in on_node:\n"
                    "    if pod.metadata.unreadable:\n"
                    "        yield Blocker('Unreadable', f'{pods.named(pod)} cannot be read: "
                    "{pod.metadata.unreadable}', pod=pod.key)\n"
                    "    elif labels.DO_NOT_DISRUPT in pod.metadata.annotations and pods.active(pod) and "
                    "pods.protected(pod, now):\n"
                    "        until = min(pods.protection_ends(pod), default=None)\n"
                    "        yield Blocker('PodDoNotDisrupt', f'{pods.named(pod)} is annotated "
                    "{labels.DO_NOT_DISRUPT}', until=until, pod=pod.key)"
                ),
                (
                    "for pod in on_node[-1:]:\n"
                    "    if pod.metadata.unreadable:\n"
                    "        yield Blocker('Unreadable', f'{pods.named(pod)} cannot be read: "
                    "{pod.metadata.unreadable}', pod=pod.key)\n"
                    "    elif labels.DO_NOT_DISRUPT in pod.metadata.annotations and pods.active(pod) and "
                    "pods.protected(pod, now):\n"
                    "        until = min(pods.protection_ends(pod), default=None)\n"
                    "        yield Blocker('PodDoNotDisrupt', f'{pods.named(pod)} is annotated "
                    "{labels.DO_NOT_DISRUPT}', until=until, pod=pod.key)"
                ),
            ),
        ),
    ),
    21: (
        "A place on a node that is not initialised is as good as any.",
        (
            Edit(
                "reconciler/kerf/disruption:_stranded",
                "lost[key] = f'would move to {state.name}, which is not initialized'",
                "pass",
            ),
        ),
    ),
    22: (
        "Nodes that are still starting are tried first.",
        (
            Edit(
                "reconciler/kerf/scheduling:tried",
                "not target.state.initialized",
                "target.state.initialized",
            ),
        ),
    ),
    23: (
        "Nodes of somebody else take no pods.",
        (
            Edit(
                "reconciler/kerf/scheduling:_open_site",
                "state.deleting",
                "state.claim is None or state.deleting",
            ),
        ),
    ),
    24: (
        "A disk of the node itself keeps its pod there.",
        (
            Edit(
                "reconciler/kerf/pods:_is_local",
                "volume.spec.local is not None or volume.spec.host_path is not None",
                "volume.spec.host_path is not None",
            ),
        ),
    ),
    25: (
        "Pods of a node that a command is about are bought another place at once.",
        (
            Edit(
                "reconciler/kerf/provisioning:leaving_pods",
                "if not state.deleting or state.node is None:\n    continue",
                (
                    "about = state.claim is not None and 'kerf.sh/command' in state.claim.metadata.annotations\n"
                    "if not (state.deleting or about) or state.node is None:\n"
                    "    continue"
                ),
            ),
        ),
    ),
    26: (
        "There is one command at a time.",
        (
            Edit(
                "reconciler/kerf/disruption:settled",
                "all((command.created for command in view.commands.values()))",
                "not view.commands",
            ),
        ),
    ),
    27: (
        "A NodePool without types holds up all others.",
        (
            Edit(
                "reconciler/kerf/disruption:_pool_blockers",
                "view.types_of(pool)",
                "all((view.types_of(each) for each in view.snapshot.node_pools.values()))",
            ),
        ),
    ),
    28: (
        "A pod that was stuck before keeps every node.",
        (
            Edit(
                "reconciler/kerf/disruption:_outcome",
                "_stranded(view, solution, staying)",
                "_stranded(view, solution, wanted)",
            ),
        ),
    ),
    29: (
        "One pod without a place is no obstacle.",
        (
            Edit(
                "reconciler/kerf/disruption:Outcome.blocker",
                "not self.stranded",
                "len(self.stranded) < 2",
            ),
        ),
    ),
    30: (
        "A proposal is used when it is two minutes old.",
        (
            Edit(
                "reconciler/kerf/disruption:timely",
                "now - proposal.made_at >= FRESH",
                "now - proposal.made_at > FRESH",
            ),
        ),
    ),
    31: (
        "A dear pod is a cheap one.",
        (Edit("reconciler/kerf/disruption:eviction_cost", "ONE + _deletion_cost(pod)", "ONE - _deletion_cost(pod)"),),
    ),
    32: (
        "Pods that go gladly make their node cheaper.",
        (
            Edit(
                "reconciler/kerf/disruption:reschedule_cost",
                "max(0, eviction_cost(pod))",
                "eviction_cost(pod)",
            ),
        ),
    ),
    33: (
        "What is sold out has no price.",
        (
            Edit(
                "reconciler/kerf/disruption:unblocked",
                "costs.node_price(types, state.labels)",
                "0 if view.snapshot.out_of_stock else costs.node_price(types, state.labels)",
            ),
        ),
    ),
    34: (
        "What has no price costs a little.",
        (Edit("reconciler/kerf/disruption:price", "0", "1"),),
    ),
}
