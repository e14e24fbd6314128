"""Behaviours 130 to 233 of the scheduling catalogue, broken: from volumes to the state of the cluster. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    130: (
        "A pod whose volume cannot be had is placed as if it had none.",
        (Edit("reconciler/scheduling/solve.py", "broken[pod.key] = error", "demands[pod.key] = (EMPTY,)"),),
    ),
    132: (
        "Where a storage class may make volumes is not looked at.",
        (Edit("reconciler/scheduling/volumes.py", "return tuple(terms) or (EMPTY,)", "return (EMPTY,)"),),
    ),
    133: (
        "Only volumes of the node itself bind a pod to a place.",
        (
            Edit(
                "reconciler/scheduling/volumes.py",
                "if _is_local(volume) else found",
                "if _is_local(volume) else [EMPTY for _ in found]",
            ),
        ),
    ),
    134: (
        "A volume of a host path pins the host.",
        (
            Edit(
                "reconciler/scheduling/volumes.py",
                "return volume.spec.local is not None or volume.spec.host_path is not None",
                "return volume.spec.local is not None",
            ),
        ),
    ),
    136: (
        "Of a volume's alternatives only the first is tried.",
        (Edit("reconciler/scheduling/volumes.py", "good[:_MOST_ALTERNATIVES]", "good[:1]"),),
    ),
    138: (
        "A node takes as many pods as it can attach volumes, whatever each brings.",
        (Edit("reconciler/scheduling/attachments.py", "left.clip(min=0) // own[driver]", "left.clip(min=0)"),),
    ),
    139: (
        "Of default classes the oldest counts.",
        (Edit("reconciler/scheduling/volumes.py", "ordered[-1] if ordered", "ordered[0] if ordered"),),
    ),
    140: (
        "A volume that is being deleted can be had.",
        (
            Edit(
                "reconciler/scheduling/volumes.py",
                "if volume is None or volume.metadata.deleting:",
                "if volume is None:",
            ),
        ),
    ),
    142: (
        "All pods that terminate want another place, not only those of stateful sets.",
        (Edit("reconciler/model/pods.py", "(terminating(pod) and of_stateful_set(pod))", "terminating(pod)"),),
    ),
    143: (
        "Two budgets for one pod do not keep it from being moved.",
        (Edit("reconciler/model/pdbs.py", "return len(found) > 1 or any(", "return any("),),
    ),
    146: (
        "A spread counts only pods on nodes that it does not count.",
        (
            Edit(
                "reconciler/scheduling/tallies.py",
                "if domain is not None and admits(node):",
                "if domain is not None and not admits(node):",
            ),
        ),
    ),
    150: (
        "Pods that terminate count in a spread.",
        (
            Edit(
                "reconciler/scheduling/tallies.py",
                "if group.kind == SPREAD and terminating(pod):",
                "if group.kind == SPREAD and not place(pod):",
            ),
        ),
    ),
    151: (
        "No selector selects everybody.",
        (Edit("reconciler/model/selectors.py", "return Selector(nothing=True)", "return Selector()"),),
    ),
    153: (
        "minDomains is not looked at.",
        (Edit("reconciler/scheduling/topology.py", "constraint.min_domains or 0", "0"),),
    ),
    158: (
        "Only zones and capacity types are domains of a spread.",
        (
            Edit(
                "reconciler/scheduling/admits.py",
                "    return group.standing().union(",
                "    if bond.key not in (labels.ZONE, labels.CAPACITY_TYPE):\n"
                "        return frozenset()\n"
                "    return group.standing().union(",
            ),
        ),
    ),
    161: (
        "Values of a label that only the NodePool knows are no domains.",
        (
            Edit(
                "reconciler/scheduling/template.py",
                "values = self.table.values(key, mask) or (set() if row.complement else set(row.values))",
                "values = self.table.values(key, mask)",
            ),
        ),
    ),
    162: (
        "Domains of a NodePool at its limits count.",
        (
            Edit(
                "reconciler/scheduling/opening.py",
                "if r.template.remaining is None or r.template.affords(r.served, need)]",
                "]",
            ),
            Edit(
                "reconciler/scheduling/opening.py",
                "for way in choice.ways if not self._caps or self._room(way.key) != 0]",
                "for way in choice.ways]",
            ),
        ),
    ),
    163: (
        "matchLabelKeys is not looked at.",
        (Edit("reconciler/scheduling/topology.py", "constraint.match_label_keys)", "())"),),
    ),
    165: (
        "New nodes are made from NodePools whose taints the pods do not tolerate.",
        (
            Edit(
                "reconciler/scheduling/opening.py",
                "if not rung.demand.tolerates(template.taints) or rung",
                "if rung",
            ),
            Edit(
                "reconciler/scheduling/pack.py",
                "if left[item] and item.rung.demand.tolerates(template.taints):",
                "if left[item]:",
            ),
        ),
    ),
    167: (
        "nodeAffinityPolicy Ignore is not looked at on nodes that are there.",
        (
            Edit(
                "reconciler/scheduling/groups.py",
                "return not self.honors_affinity or accepted_by_node(self.filter_pod, node_labels)",
                "return accepted_by_node(self.filter_pod, node_labels)",
            ),
        ),
    ),
    172: (
        "A pod that wants company on its host is seated without it.",
        (Edit("reconciler/scheduling/company.py", "if not first and not any(", "if not first and any("),),
    ),
    178: (
        "Of anti-affinity only what is preferred is looked at.",
        (
            Edit(
                "reconciler/scheduling/requirements_of.py",
                "self.anti_affinity + tuple(w.pod_affinity_term for w in wishes.anti_affinity)",
                "tuple(w.pod_affinity_term for w in wishes.anti_affinity)",
            ),
        ),
    ),
    180: (
        "Anti-affinity that is only preferred keeps others away.",
        (Edit("reconciler/scheduling/topology.py", ", required=required)", ")"),),
    ),
    181: (
        "Pods that run keep nobody away whom they shun.",
        (
            Edit(
                "reconciler/scheduling/tallies.py",
                "if domain is not None and key not in shun.homes:",
                "if domain is not None and key in shun.homes:",
            ),
        ),
    ),
    184: (
        "Only pods that run are company, not those that are planned.",
        (
            Edit(
                "reconciler/scheduling/topology.py",
                "if entry[1].selects(namespace, own)]",
                "if entry[1].selects(namespace, own) and entry[1].kind != AFFINITY]",
            ),
        ),
    ),
    186: (
        "A list of namespaces adds to the pod's own.",
        (
            Edit(
                "reconciler/scheduling/groups.py",
                "frozenset(term.namespaces or (pod.metadata.namespace,))",
                "frozenset((*term.namespaces, pod.metadata.namespace))",
            ),
        ),
    ),
    203: (
        "A share of a workload is rounded down.",
        (
            Edit(
                "reconciler/scheduling/buffers.py",
                "-(-max(workload_replicas, 0) * max(spec.percentage, 0) // 100)",
                "max(workload_replicas, 0) * max(spec.percentage, 0) // 100",
            ),
        ),
    ),
    206: (
        "Kept room is counted by the pods that exist, not by the virtual ones.",
        (
            Edit(
                "reconciler/provisioning/buffers.py",
                "if key not in turn.snapshot.pods)",
                "if key in turn.snapshot.pods)",
            ),
        ),
    ),
    208: (
        "Overlays of one weight that set the same price agree.",
        (
            Edit(
                "reconciler/model/overlays.py",
                "if first.weight == reading.weight)",
                "if first.weight == reading.weight and first.price != reading.price)",
            ),
        ),
    ),
    230: (
        "Who shares a claim is not kept on the node whose devices it has.",
        (
            Edit(
                "reconciler/scheduling/devices/ledger.py",
                "bound = any(pick.device.local or pick.reach.node for pick in own)",
                "bound = False",
            ),
        ),
    ),
}
