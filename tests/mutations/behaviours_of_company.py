"""Behaviours 130 to 233 of the scheduling catalogue, broken: from volumes to the state of the cluster. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    130: (
        "A pod whose volume cannot be had is placed as if it had none.",
        (Edit("reconciler/kerf/scheduling:_volumes", "broken[pod.key] = error", "demands[pod.key] = (EMPTY,)"),),
    ),
    132: (
        "Where a storage class may make volumes is not looked at.",
        (Edit("reconciler/kerf/pods:_of_class", "tuple(terms) or (EMPTY,)", "(EMPTY,)"),),
    ),
    133: (
        "Only volumes of the node itself bind a pod to a place.",
        (
            Edit(
                "reconciler/kerf/pods:_affinity_terms",
                "[term.without(labels.HOSTNAME) for term in found] if _is_local(volume) else found",
                ("[term.without(labels.HOSTNAME) for term in found] if _is_local(volume) else [EMPTY for _ in found]"),
            ),
        ),
    ),
    134: (
        "A volume of a host path pins the host.",
        (
            Edit(
                "reconciler/kerf/pods:_is_local",
                "volume.spec.local is not None or volume.spec.host_path is not None",
                "volume.spec.local is not None",
            ),
        ),
    ),
    136: (
        "Of a volume's alternatives only the first is tried.",
        (Edit("reconciler/kerf/pods:volume_demands", "_MOST_ALTERNATIVES", "1"),),
    ),
    138: (
        "A node takes as many pods as it can attach volumes, whatever each brings.",
        (Edit("reconciler/kerf/scheduling:VolumeSlots.most", "left.clip(min=0) // own[driver]", "left.clip(min=0)"),),
    ),
    139: (
        "Of default classes the oldest counts.",
        (Edit("reconciler/kerf/pods:_default_class", "-1", "0"),),
    ),
    140: (
        "A volume that is being deleted can be had.",
        (
            Edit(
                "reconciler/kerf/pods:_of_volume",
                "volume is None or volume.metadata.deleting",
                "volume is None",
            ),
        ),
    ),
    142: (
        "All pods that terminate want another place, not only those of stateful sets.",
        (Edit("reconciler/kerf/model:reschedulable", "terminating(pod) and of_stateful_set(pod)", "terminating(pod)"),),
    ),
    143: (
        "Two budgets for one pod do not keep it from being moved.",
        (
            Edit(
                "reconciler/kerf/model:Pdbs.forbids",
                "len(found) > 1 or any((budget.closed and (not budget.frees(pod)) for budget in found))",
                "any((budget.closed and (not budget.frees(pod)) for budget in found))",
            ),
        ),
    ),
    146: (
        "A spread counts only pods on nodes that it does not count.",
        (
            Edit(
                "reconciler/kerf/scheduling:Tallies._tally",
                "admits(node)",
                "not admits(node)",
            ),
        ),
    ),
    150: (
        "Pods that terminate count in a spread.",
        (
            Edit(
                "reconciler/kerf/scheduling:Tallies._tally",
                "terminating(pod)",
                "not place(pod)",
            ),
        ),
    ),
    151: (
        "No selector selects everybody.",
        (Edit("reconciler/kerf/model:selector_of", "Selector(nothing=True)", "Selector()"),),
    ),
    153: (
        "minDomains is not looked at.",
        (Edit("reconciler/kerf/scheduling:Topology._spread_constraint", "constraint.min_domains or 0", "0"),),
    ),
    158: (
        "Only zones and capacity types are domains of a spread.",
        (
            Edit(
                "reconciler/kerf/scheduling:measured",
                "return group.standing().union(makeable.get(constraint.key, ()), group.brought)",
                (
                    "if constraint.key not in (labels.ZONE, labels.CAPACITY_TYPE):\n"
                    "    return frozenset()\n"
                    "return group.standing().union(makeable.get(constraint.key, ()), group.brought)"
                ),
            ),
        ),
    ),
    161: (
        "Values of a label that only the NodePool knows are no domains.",
        (
            Edit(
                "reconciler/kerf/scheduling:NodeClaimTemplate.open_domains",
                "self.table.values(key, mask) or (set() if row.complement else set(row.values))",
                "self.table.values(key, mask)",
            ),
        ),
    ),
    162: (
        "Domains of a NodePool at its limits count.",
        (
            Edit(
                "reconciler/kerf/scheduling:Opening._open_pins",
                "[route.pins for route in routes if route.affords(need)]",
                "[route.pins for route in routes]",
            ),
            Edit(
                "reconciler/kerf/scheduling:Opening._open_pins",
                "[route for route in routes if not self._full(cls, number, route.alternative, route.pins)]",
                "routes",
            ),
        ),
    ),
    163: (
        "matchLabelKeys is not looked at.",
        (Edit("reconciler/kerf/scheduling:Topology._spread_group", "constraint.match_label_keys", "()"),),
    ),
    165: (
        "New nodes are made from NodePools whose taints the pods do not tolerate.",
        (
            Edit(
                "reconciler/kerf/scheduling:Ways._routes_of",
                "not demand.tolerates(template.taints) or demand.requirements.conflict(volume)",
                "demand.requirements.conflict(volume)",
            ),
            Edit(
                "reconciler/kerf/scheduling:stocks_of",
                "left[item] and item.relaxation.demand.tolerates(template.taints)",
                "left[item]",
            ),
        ),
    ),
    167: (
        "nodeAffinityPolicy Ignore is not looked at on nodes that are there.",
        (
            Edit(
                "reconciler/kerf/pods:TopologyGroup.admits_node",
                "node_terms(self.filter_pod) if self.honors_affinity else NO_TERMS",
                "node_terms(self.filter_pod)",
            ),
        ),
    ),
    172: (
        "A pod that wants company on its host is seated without it.",
        (
            Edit(
                "reconciler/kerf/scheduling:_missing",
                "not any((constraint.group in s.item.cls.counted for s in others))",
                "any((constraint.group in s.item.cls.counted for s in others))",
            ),
        ),
    ),
    178: (
        "Of anti-affinity only what is preferred is looked at.",
        (
            Edit(
                "reconciler/kerf/pods:_Required.relaxation",
                "self.anti_affinity + tuple((w.pod_affinity_term for w in wishes.anti_affinity))",
                "tuple((w.pod_affinity_term for w in wishes.anti_affinity))",
            ),
        ),
    ),
    180: (
        "Anti-affinity that is only preferred keeps others away.",
        (
            Edit(
                "reconciler/kerf/scheduling:Topology._affinity_constraint",
                "TopologyConstraint(group, self_match, required=required)",
                "TopologyConstraint(group, self_match)",
            ),
        ),
    ),
    181: (
        "Pods that run keep nobody away whom they shun.",
        (
            Edit(
                "reconciler/kerf/scheduling:Tallies._count_owner",
                "key not in inverse.homes",
                "key in inverse.homes",
            ),
        ),
    ),
    184: (
        "Only pods that run are company, not those that are planned.",
        (
            Edit(
                "reconciler/kerf/scheduling:_Selecting.__call__",
                "entry[1].selects(namespace, own)",
                "entry[1].selects(namespace, own) and entry[1].kind != AFFINITY",
            ),
        ),
    ),
    186: (
        "A list of namespaces adds to the pod's own.",
        (
            Edit(
                "reconciler/kerf/pods:_reach",
                "term.namespaces or (pod.metadata.namespace,)",
                "(*term.namespaces, pod.metadata.namespace)",
            ),
        ),
    ),
    203: (
        "A share of a workload is rounded down.",
        (
            Edit(
                "reconciler/kerf/pods:size",
                "-(-max(workload_replicas, 0) * max(spec.percentage, 0) // 100)",
                "max(workload_replicas, 0) * max(spec.percentage, 0) // 100",
            ),
        ),
    ),
    206: (
        "Kept room is counted by the pods that exist, not by the virtual ones.",
        (
            Edit(
                "reconciler/kerf/provisioning:buffered",
                "key not in turn.snapshot.pods",
                "key in turn.snapshot.pods",
            ),
        ),
    ),
    208: (
        "Overlays of one weight that set the same price agree.",
        (
            Edit(
                "reconciler/kerf/model:_equal",
                "first.weight == reading.weight",
                "first.weight == reading.weight and first.price != reading.price",
            ),
        ),
    ),
    230: (
        "Who shares a claim is not kept on the node whose devices it has.",
        (
            Edit(
                "reconciler/kerf/scheduling:DeviceLedger.take",
                "any((pick.device.local or pick.reach.node for pick in own))",
                "False",
            ),
        ),
    ),
}
