"""Behaviours 1 to 129 of the scheduling catalogue, broken: from the loop to NodePools and minValues. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    5: (
        "A NodePool that is being deleted makes nodes.",
        (Edit("reconciler/scheduling/world.py", "return not pool.metadata.deleting and any(", "return any("),),
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
        (Edit("reconciler/model/pods.py", "peak = peak.maximum(sidecars + needs)", "peak = peak.maximum(needs)"),),
    ),
    60: (
        "Requests of the pod as a whole count only where its containers have none.",
        (
            Edit(
                "reconciler/model/pods.py",
                "Resources({**result, **Resources.parse(pod.spec.resources.requests)})",
                "Resources({**Resources.parse(pod.spec.resources.requests), **result})",
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
    64: (
        "A type is as cheap as its cheapest offering, whether it is allowed or not.",
        (
            Edit(
                "reconciler/scheduling/template.py",
                "price = self.table.price[:, markets].min(axis=1)",
                "price = self.table.price.min(axis=1)",
            ),
        ),
    ),
    67: (
        "Offerings that are not to be had count.",
        (Edit("reconciler/scheduling/types.py", "                elif o.available:\n", "                else:\n"),),
    ),
    71: (
        "A pod may go to a node of a zone that it does not want.",
        (
            Edit(
                "reconciler/scheduling/places.py",
                "all(row.has(value) for value in own.values)",
                "any(row.has(value) for value in own.values | row.values)",
            ),
        ),
    ),
    73: (
        "Labels of nodes that are there are not looked at.",
        (
            Edit(
                "reconciler/scheduling/places.py",
                "self.open & self.tolerating(demand.tolerations) & self._serving(demand.requirements)",
                "self.open & self.tolerating(demand.tolerations)",
            ),
        ),
    ),
    76: (
        "The taint of a node that is not ready yet keeps pods away while it starts.",
        (Edit("reconciler/model/snapshot.py", "if not labels.is_ephemeral_taint(t.key, t.effect) and", "if"),),
    ),
    77: (
        "A start-up taint keeps pods away from a node that is starting.",
        (Edit("reconciler/model/snapshot.py", " and not any(t.matches(s) for s in startup)", ""),),
    ),
    79: (
        "What the kubelet does not show yet is not there, whatever the claim promises.",
        (
            Edit(
                "reconciler/model/snapshot.py",
                "for name, value in own.items() if value}",
                "for name, value in own.items()}",
            ),
        ),
    ),
    80: (
        "Nodes that are still starting are tried first.",
        (
            Edit(
                "reconciler/scheduling/targets.py",
                "(not (site := self._sites[key]).initialized,",
                "((site := self._sites[key]).initialized,",
            ),
        ),
    ),
    83: (
        "Host ports count only where an address is given.",
        (Edit("reconciler/scheduling/ports.py", "if port.host_port\n", "if port.host_ip\n"),),
    ),
    91: (
        "A daemon set's template speaks for it, not its newest pod.",
        (Edit("reconciler/scheduling/daemons.py", "return living if living is not None else Pod(", "return Pod("),),
    ),
    93: (
        "A daemon set is kept away by a taint that is only soft.",
        (
            Edit(
                "reconciler/scheduling/daemons.py",
                "tolerates_all((*self.tolerations, _SOFT), taints)",
                "tolerates_all(self.tolerations, taints)",
            ),
        ),
    ),
    98: (
        "What daemon sets take is kept free although their pods are there.",
        (Edit("reconciler/scheduling/targets.py", " - vector(there.daemon_used), 0)", ", 0)"),),
    ),
    99: (
        "Daemons that take more than was expected of them leave more room than there is.",
        (
            Edit(
                "reconciler/scheduling/targets.py",
                "still = np.maximum(self._shares.on(site) - vector(there.daemon_used), 0)",
                "still = self._shares.on(site) - vector(there.daemon_used)",
            ),
        ),
    ),
    100: (
        "A daemon set that waits for an initialised node is not expected on a new one.",
        (
            Edit(
                "reconciler/scheduling/daemons.py",
                "for key in (labels.REGISTERED, labels.INITIALIZED))",
                "for key in (labels.REGISTERED,))",
            ),
        ),
    ),
    103: (
        "A claim's requests are those of its pods, without the daemons'.",
        (Edit("reconciler/scheduling/planned.py", "(done.used + listed.overhead).tolist()", "done.used.tolist()"),),
    ),
    105: (
        "The lightest NodePool comes first.",
        (Edit("reconciler/scheduling/world.py", "key=lambda pair: -pair[0]", "key=lambda pair: pair[0]"),),
    ),
    109: (
        "What a pass has planned does not count against limits.",
        (Edit("reconciler/scheduling/closing.py", "            template.deduct(types)\n", ""),),
    ),
    112: (
        "A NodePool counts as ready when it says anything of that.",
        (
            Edit(
                "reconciler/scheduling/world.py",
                'any(c.type == "Ready" and c.status == "True" for',
                'any(c.type == "Ready" for',
            ),
        ),
    ),
    113: (
        "A claim does not take over the pool's terminationGracePeriod.",
        (
            Edit(
                "reconciler/scheduling/claims.py",
                "            termination_grace_period=template.termination_grace_period,\n",
                "",
            ),
        ),
    ),
    121: (
        "One value is enough for minValues.",
        (Edit("reconciler/scheduling/template.py", "if count < wanted[key]}", "if not count}"),),
    ),
    125: (
        "The event does not say that minValues is why a NodePool is not used.",
        (Edit("reconciler/scheduling/world.py", 'f"{text} due to minValues incompatibility"', "text"),),
    ),
    127: (
        "BestEffort leaves the claim's minValues as they were.",
        (
            Edit(
                "reconciler/scheduling/planned.py",
                "requirements, relaxed = requirements.with_min_values(key, count or None), True",
                "relaxed = True",
            ),
        ),
    ),
    128: (
        "A NodePool that misses its minValues is passed over under BestEffort, too.",
        (
            Edit(
                "reconciler/scheduling/world.py",
                "if template.strict_min_values and template.shortfall(",
                "if template.shortfall(",
            ),
        ),
    ),
}
