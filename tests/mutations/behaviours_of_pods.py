"""Behaviours 1 to 69 of the scheduling catalogue, broken: the loop, labels, wishes, instance types. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    5: (
        "A NodePool that is being deleted makes nodes.",
        (Edit("reconciler/scheduling/world.py", "return not pool.metadata.deleting and any(", "return any("),),
    ),
    7: (
        "A NodePool of which nobody knows yet whether it is ready makes nodes.",
        (
            Edit(
                "reconciler/scheduling/world.py",
                'c.type == "Ready" and c.status == "True" for',
                'c.type == "Ready" and c.status != "False" for',
            ),
        ),
    ),
    8: (
        "A static NodePool makes nodes for pods.",
        (Edit("reconciler/scheduling/world.py", "return ready(pool) and not pool.static", "return ready(pool)"),),
    ),
    10: (
        "Pods on a node that goes are not thought of.",
        (
            Edit(
                "reconciler/provisioning/pending.py",
                "if not state.deleting or state.node is None:",
                "if state.deleting or state.node is None:",
            ),
        ),
    ),
    14: (
        "Known capacity types are refused, unknown ones are not.",
        (
            Edit(
                "reconciler/scheduling/requirements_of.py",
                "if capacity is not None and not capacity.values &",
                "if capacity is not None and capacity.values &",
            ),
        ),
    ),
    16: (
        "A pod may want another value of a label than the NodePool gives.",
        (
            Edit(
                "reconciler/scheduling/template.py",
                "known = self.requirements.incompatible(wanted, labels.WELL_KNOWN) is None",
                "known = all(key in self.requirements or key in labels.WELL_KNOWN for key in wanted)",
            ),
            Edit(
                "reconciler/scheduling/template.py",
                "both = one & other if one.conflict(other) is None else None",
                "both = one & other",
            ),
        ),
    ),
    25: (
        "The heaviest preference is not held to.",
        (
            Edit(
                "reconciler/scheduling/requirements_of.py",
                "            requirements,\n            strict,",
                "            strict,\n            strict,",
            ),
        ),
    ),
    26: (
        "Restricted labels in a pod's selector are not noticed.",
        (Edit("reconciler/scheduling/requirements_of.py", "keys = set(pod.spec.node_selector)", "keys = set[str]()"),),
    ),
    29: (
        "Keys for which a NodePool leaves values open get no label.",
        (
            Edit(
                "reconciler/scheduling/claims.py", "if (key in defined or not row.complement)", "if not row.complement"
            ),
        ),
    ),
    30: (
        "Values are made up for well-known labels.",
        (Edit("reconciler/scheduling/claims.py", "        and key not in labels.WELL_KNOWN\n", ""),),
    ),
    32: (
        "Something is said about pods that have opted out.",
        (Edit("reconciler/scheduling/requirements_of.py", 'yield ""', 'yield "has opted out"'),),
    ),
    33: (
        "The last required term is given up, too.",
        (Edit("reconciler/scheduling/requirements_of.py", "if len(self.terms) > 1:", "if self.terms:"),),
    ),
    34: (
        "The alternatives between the first and the last are skipped.",
        (Edit("reconciler/scheduling/requirements_of.py", "terms=self.terms[1:]", "terms=self.terms[-1:]"),),
    ),
    36: (
        "Preferences for nodes are never given up.",
        (
            Edit(
                "reconciler/scheduling/requirements_of.py",
                '("affinity", "anti_affinity", "preferred", "soft_spreads")',
                '("affinity", "anti_affinity", "soft_spreads")',
            ),
        ),
    ),
    37: (
        "Of a pod's preferences the lightest is held to longest.",
        (
            Edit(
                "reconciler/scheduling/requirements_of.py",
                "sorted(node.preferred, key=lambda t: -t.weight)",
                "sorted(node.preferred, key=lambda t: t.weight)",
            ),
        ),
    ),
    38: (
        "A pod's node selector is forgotten.",
        (
            Edit(
                "reconciler/scheduling/requirements_of.py",
                "rows = (*self.selector, *(_rows(wishes.terms[0]) if wishes.terms else ()))",
                "rows = (*(_rows(wishes.terms[0]) if wishes.terms else ()),)",
            ),
        ),
    ),
    39: (
        "Of preferences the lightest comes first.",
        (
            Edit(
                "reconciler/scheduling/requirements_of.py",
                "_rows(wishes.preferred[0].preference)",
                "_rows(wishes.preferred[-1].preference)",
            ),
        ),
    ),
    40: (
        "A soft taint is never put up with.",
        (
            Edit(
                "reconciler/scheduling/requirements_of.py",
                "else (*self.tolerations, _SOFT)",
                "else self.tolerations",
            ),
        ),
    ),
    41: (
        "A soft taint is put up with at first, and avoided at last.",
        (
            Edit(
                "reconciler/scheduling/requirements_of.py",
                "self.tolerations if wishes.avoids_soft_taints else",
                "self.tolerations if not wishes.avoids_soft_taints else",
            ),
        ),
    ),
    43: (
        "PREFERENCE_POLICY Ignore leaves soft spreads in force.",
        (Edit("reconciler/scheduling/requirements_of.py", "soft if respect_preferences else ()", "soft"),),
    ),
    44: (
        "PREFERENCE_POLICY Ignore leaves preferred anti-affinity in force.",
        (
            Edit(
                "reconciler/scheduling/requirements_of.py",
                "_heaviest_first(far.preferred) if far is not None and respect_preferences else ()",
                "_heaviest_first(far.preferred) if far is not None else ()",
            ),
        ),
    ),
    57: (
        "The overhead of a runtime class is left out.",
        (Edit("reconciler/model/pods.py", "return result + Resources.parse(pod.spec.overhead) +", "return result +"),),
    ),
    59: (
        "An init container is reckoned without the sidecars that started before it.",
        (
            Edit(
                "reconciler/model/pods.py",
                "peak = peak.maximum(sidecars + _needs(container))",
                "peak = peak.maximum(_needs(container))",
            ),
        ),
    ),
    60: (
        "Requests of the pod as a whole count only where its containers have none.",
        (
            Edit(
                "reconciler/model/pods.py",
                "Resources({**result, **_pod_level(pod, result, infeasible)})",
                "Resources({**_pod_level(pod, result, infeasible), **result})",
            ),
        ),
    ),
    61: (
        "A request of 0 of something that nothing has cannot be met.",
        (Edit("reconciler/scheduling/types.py", "if value > 0 and name not in self._at", "if name not in self._at"),),
    ),
    62: (
        "A limit without a request asks for nothing.",
        (
            Edit(
                "reconciler/model/pods.py",
                "limits = Resources.parse(container.resources.limits)",
                "limits = Resources()",
            ),
        ),
    ),
    63: (
        "Types are listed by name, not by price.",
        (
            Edit(
                "reconciler/scheduling/template.py",
                'order = good[np.argsort(price[good], kind="stable")]',
                "order = good",
            ),
        ),
    ),
    64: (
        "A type is as cheap as its cheapest offering, whether it is allowed or not.",
        (
            Edit(
                "reconciler/scheduling/template.py",
                "least: Ints = self.table.price[:, markets].min(axis=1)",
                "least: Ints = self.table.price.min(axis=1)",
            ),
        ),
    ),
    67: (
        "Offerings that are not to be had count.",
        (Edit("reconciler/scheduling/types.py", "                elif o.available:\n", "                else:\n"),),
    ),
}
