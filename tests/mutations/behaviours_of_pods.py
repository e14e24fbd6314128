"""Behaviours 1 to 69 of the scheduling catalogue, broken: the loop, labels, wishes, instance types. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    5: (
        "A NodePool that is being deleted makes nodes.",
        (
            Edit(
                "reconciler/kerf/scheduling:ready",
                (
                    "not pool.metadata.deleting and any((c.type == 'Ready' and c.status == 'True' for c in "
                    "pool.status.conditions))"
                ),
                "any((c.type == 'Ready' and c.status == 'True' for c in pool.status.conditions))",
            ),
        ),
    ),
    7: (
        "A NodePool of which nobody knows yet whether it is ready makes nodes.",
        (
            Edit(
                "reconciler/kerf/scheduling:ready",
                "c.status == 'True'",
                "c.status != 'False'",
            ),
        ),
    ),
    8: (
        "A static NodePool makes nodes for pods.",
        (Edit("reconciler/kerf/scheduling:usable", "ready(pool) and (not pool.static)", "ready(pool)"),),
    ),
    10: (
        "Pods on a node that goes are not thought of.",
        (
            Edit(
                "reconciler/kerf/provisioning:leaving_pods",
                "not state.deleting",
                "state.deleting",
            ),
        ),
    ),
    14: (
        "Known capacity types are refused, unknown ones are not.",
        (
            Edit(
                "reconciler/kerf/pods:_problems",
                "not capacity.values & {labels.ON_DEMAND, labels.SPOT, labels.RESERVED}",
                "capacity.values & {labels.ON_DEMAND, labels.SPOT, labels.RESERVED}",
            ),
        ),
    ),
    16: (
        "A pod may want another value of a label than the NodePool gives.",
        (
            Edit(
                "reconciler/kerf/scheduling:NodeClaimTemplate.serve",
                "self.requirements.incompatible(wanted, labels.WELL_KNOWN) is None",
                "all((key in self.requirements or key in labels.WELL_KNOWN for key in wanted))",
            ),
            Edit(
                "reconciler/kerf/scheduling:NodeClaimTemplate.join",
                "one.joined(other)",
                "one & other",
            ),
        ),
    ),
    25: (
        "The heaviest preference is not held to.",
        (
            Edit(
                "reconciler/kerf/pods:_Required._asked",
                "Requirements(every) if preferred else strict",
                "strict",
            ),
        ),
    ),
    26: (
        "Restricted labels in a pod's selector are not noticed.",
        (Edit("reconciler/kerf/pods:_problems_of_labels", "set(pod.spec.node_selector)", "set[str]()"),),
    ),
    29: (
        "Keys for which a NodePool leaves values open get no label.",
        (
            Edit(
                "reconciler/kerf/scheduling:claim_labels", "key in defined or not row.complement", "not row.complement"
            ),
        ),
    ),
    30: (
        "Values are made up for well-known labels.",
        (
            Edit(
                "reconciler/kerf/scheduling:claim_labels",
                (
                    "(key in defined or not row.complement) and key not in labels.WELL_KNOWN and (not "
                    "labels.is_restricted(key)) and ((value := row.any_value()) is not None)"
                ),
                (
                    "(key in defined or not row.complement) and (not labels.is_restricted(key)) and ((value := "
                    "row.any_value()) is not None)"
                ),
            ),
        ),
    ),
    32: (
        "Something is said about pods that have opted out.",
        (Edit("reconciler/kerf/pods:_problems_of_labels", "''", "'has opted out'"),),
    ),
    33: (
        "The last required term is given up, too.",
        (Edit("reconciler/kerf/pods:relaxations_of", "wishes.terms[-1:]", "()"),),
    ),
    34: (
        "The alternatives between the first and the last are skipped.",
        (Edit("reconciler/kerf/pods:_Required.by_term", "wishes.terms[1:]", "wishes.terms[-1:]"),),
    ),
    36: (
        "Preferences for nodes are never given up.",
        (
            Edit(
                "reconciler/kerf/pods:_Wishes.relaxed",
                "('affinity', 'anti_affinity', 'preferred', 'soft_spreads')",
                "('affinity', 'anti_affinity', 'soft_spreads')",
            ),
        ),
    ),
    37: (
        "Of a pod's preferences the lightest is held to longest.",
        (
            Edit(
                "reconciler/kerf/pods:_wishes",
                "-t.weight",
                "t.weight",
            ),
        ),
    ),
    38: (
        "A pod's node selector is forgotten.",
        (
            Edit(
                "reconciler/kerf/pods:_Required._asked",
                "(*self.selector, *_rows(term))",
                "(*_rows(term),)",
            ),
        ),
    ),
    39: (
        "Of preferences the lightest comes first.",
        (
            Edit(
                "reconciler/kerf/pods:_preferred_rows",
                "wishes.preferred[0]",
                "wishes.preferred[-1]",
            ),
        ),
    ),
    40: (
        "A soft taint is never put up with.",
        (
            Edit(
                "reconciler/kerf/pods:_Required.relaxation",
                "(*self.tolerations, _SOFT)",
                "self.tolerations",
            ),
        ),
    ),
    41: (
        "A soft taint is put up with at first, and avoided at last.",
        (
            Edit(
                "reconciler/kerf/pods:_Required.relaxation",
                "wishes.avoids_soft_taints",
                "not wishes.avoids_soft_taints",
            ),
        ),
    ),
    43: (
        "PREFERENCE_POLICY Ignore leaves soft spreads in force.",
        (Edit("reconciler/kerf/pods:_wishes", "soft if respect_preferences else ()", "soft"),),
    ),
    44: (
        "PREFERENCE_POLICY Ignore leaves preferred anti-affinity in force.",
        (
            Edit(
                "reconciler/kerf/pods:_wishes",
                "far is not None and respect_preferences",
                "far is not None",
            ),
        ),
    ),
    57: (
        "The overhead of a runtime class is left out.",
        (Edit("reconciler/kerf/model:requests", "result + Resources.parse(pod.spec.overhead)", "result"),),
    ),
    59: (
        "An init container is reckoned without the sidecars that started before it.",
        (
            Edit(
                "reconciler/kerf/model:requests",
                "sidecars + _needs(container)",
                "_needs(container)",
            ),
        ),
    ),
    60: (
        "Requests of the pod as a whole count only where its containers have none.",
        (
            Edit(
                "reconciler/kerf/model:requests",
                "{**result, **_pod_level(pod, result, infeasible)}",
                "{**_pod_level(pod, result, infeasible), **result}",
            ),
        ),
    ),
    61: (
        "A request of 0 of something that nothing has cannot be met.",
        (
            Edit(
                "reconciler/kerf/scheduling:Columns.unknown",
                "value > 0 and name not in self._at",
                "name not in self._at",
            ),
        ),
    ),
    62: (
        "A limit without a request asks for nothing.",
        (
            Edit(
                "reconciler/kerf/model:_needs",
                "Resources.parse(container.resources.limits)",
                "Resources()",
            ),
        ),
    ),
    63: (
        "Types are listed by name, not by price.",
        (
            Edit(
                "reconciler/kerf/scheduling:NodeClaimTemplate._shape",
                "good[np.argsort(price[good], kind='stable')]",
                "good",
            ),
        ),
    ),
    64: (
        "A type is as cheap as its cheapest offering, whether it is allowed or not.",
        (
            Edit(
                "reconciler/kerf/scheduling:NodeClaimTemplate._least",
                "self.table.price[:, markets]",
                "self.table.price",
            ),
        ),
    ),
    67: (
        "Offerings that are not to be had count.",
        (
            Edit(
                "reconciler/kerf/scheduling:TypeTable.__init__",
                "if o.available:\n    self.price[row, market] = o.price",
                "self.price[row, market] = o.price",
            ),
        ),
    ),
}
