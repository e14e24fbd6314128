"""Behaviours 70 to 129 of the scheduling catalogue, broken: nodes, daemon sets, NodePools, minValues. By number."""

from __future__ import annotations

from tests.mutations.edits import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
    71: (
        "A pod may go to a node of a zone that it does not want.",
        (
            Edit(
                "reconciler/kerf/scheduling:serves",
                "all((row.has(value) for value in own.values))",
                "any((row.has(value) for value in own.values | row.values))",
            ),
        ),
    ),
    72: (
        "Pods that are on a node take nothing of it.",
        (
            Edit(
                "reconciler/kerf/scheduling:NodeReader._rooms",
                "vectors((site.allocatable for site in sites)) - vectors((one.used or {} for one in there))",
                "vectors((site.allocatable for site in sites))",
            ),
        ),
    ),
    73: (
        "Labels of nodes that are there are not looked at.",
        (
            Edit(
                "reconciler/kerf/scheduling:ExistingNodes.suiting",
                "self.open & self.tolerating(demand.tolerations) & self._serving(demand.requirements)",
                "self.open & self.tolerating(demand.tolerations)",
            ),
        ),
    ),
    76: (
        "The taint of a node that is not ready yet keeps pods away while it starts.",
        (
            Edit(
                "reconciler/kerf/model:StateNode.taints",
                "not labels.is_ephemeral_taint(t.key, t.effect) and (not any((t.matches(s) for s in startup)))",
                "not any((t.matches(s) for s in startup))",
            ),
        ),
    ),
    77: (
        "A start-up taint keeps pods away from a node that is starting.",
        (
            Edit(
                "reconciler/kerf/model:StateNode.taints",
                "not labels.is_ephemeral_taint(t.key, t.effect) and (not any((t.matches(s) for s in startup)))",
                "not labels.is_ephemeral_taint(t.key, t.effect)",
            ),
        ),
    ),
    78: (
        "Taints of initialised nodes keep nobody away.",
        (
            Edit(
                "reconciler/kerf/model:StateNode.taints",
                "self.node.spec.taints if self.node is not None else ()",
                "()",
            ),
        ),
    ),
    79: (
        "What the kubelet does not show yet is not there, whatever the claim promises.",
        (
            Edit(
                "reconciler/kerf/model:StateNode._resources",
                "{name: value for name, value in own.items() if value}",
                "{name: value for name, value in own.items()}",
            ),
        ),
    ),
    80: (
        "Nodes that are still starting are tried first.",
        (
            Edit(
                "reconciler/kerf/scheduling:tried",
                "not target.state.initialized",
                "target.state.initialized",
            ),
        ),
    ),
    83: (
        "Host ports count only where an address is given.",
        (
            Edit(
                "reconciler/kerf/pods:host_ports",
                "(number := _number(pod, port)) > 0",
                "(number := _number(pod, port)) and port.host_ip",
            ),
        ),
    ),
    86: (
        "Daemon sets take nothing of new nodes.",
        (
            Edit(
                "reconciler/kerf/scheduling:NodeClaimTemplate._overheads",
                "self.overhead = shares",
                "self.overhead = np.zeros_like(shares)",
            ),
        ),
    ),
    91: (
        "A daemon set's template speaks for it, not its newest pod.",
        (
            Edit(
                "reconciler/kerf/pods:_speaker",
                "living if living is not None else Pod(metadata=template.metadata, spec=template.spec)",
                "Pod(metadata=template.metadata, spec=template.spec)",
            ),
        ),
    ),
    93: (
        "A daemon set is kept away by a taint that is only soft.",
        (
            Edit(
                "reconciler/kerf/pods:Daemon.accepts",
                "(*self.tolerations, _SOFT)",
                "self.tolerations",
            ),
        ),
    ),
    94: (
        "A daemon set is expected where a label that it wants is not defined.",
        (
            Edit(
                "reconciler/kerf/pods:Daemon.terms_for",
                "ready.compatible(term, labels.WELL_KNOWN)",
                "ready.conflict(term) is None",
            ),
        ),
    ),
    95: (
        "Of a daemon set's alternatives only the first is looked at.",
        (
            Edit(
                "reconciler/kerf/pods:_daemon",
                "terms",
                "terms[:1]",
            ),
        ),
    ),
    96: (
        "Every type bears the daemons of all others.",
        (
            Edit(
                "reconciler/kerf/scheduling:NodeClaimTemplate._overheads",
                "shares[here] += self.table.columns.vector(daemon.requests)",
                "shares += self.table.columns.vector(daemon.requests)",
            ),
        ),
    ),
    97: (
        "Host ports of daemons are taken on types where they do not run, too.",
        (Edit("reconciler/kerf/scheduling:NodeClaimTemplate._overheads", "np.flatnonzero(here)", "range(len(held))"),),
    ),
    98: (
        "What daemon sets take is kept free although their pods are there.",
        (
            Edit(
                "reconciler/kerf/scheduling:NodeReader._rooms",
                "shares - vectors((one.daemon_used for one in there))",
                "shares",
            ),
        ),
    ),
    99: (
        "Daemons that take more than was expected of them leave more room than there is.",
        (
            Edit(
                "reconciler/kerf/scheduling:NodeReader._rooms",
                "np.maximum(shares - vectors((one.daemon_used for one in there)), 0)",
                "shares - vectors((one.daemon_used for one in there))",
            ),
        ),
    ),
    100: (
        "A daemon set that waits for an initialised node is not expected on a new one.",
        (
            Edit(
                "reconciler/kerf/pods:_GROWN_UP",
                "(labels.REGISTERED, labels.INITIALIZED)",
                "(labels.REGISTERED,)",
            ),
        ),
    ),
    103: (
        "A claim's requests are those of its pods, without the daemons'.",
        (Edit("reconciler/kerf/scheduling:_new_node", "done.used + listed.overhead", "done.used"),),
    ),
    105: (
        "The lightest NodePool comes first.",
        (Edit("reconciler/kerf/scheduling:_pools", "-pair[0].pool.spec.weight", "pair[0].pool.spec.weight"),),
    ),
    106: (
        "What is in use does not count against limits.",
        (
            Edit(
                "reconciler/kerf/scheduling:NodeClaimTemplate.within",
                "self.limits[name] - used[name]",
                "self.limits[name]",
            ),
        ),
    ),
    107: (
        "The sum of what a NodePool's nodes use stays 0.",
        (Edit("reconciler/kerf/scheduling:_usage", "Usage(each, total(each.values()))", "Usage(each)"),),
    ),
    109: (
        "What a pass has planned does not count against limits.",
        (Edit("reconciler/kerf/scheduling:close", "template.deduct(types)", ""),),
    ),
    111: (
        "A node does not count against limits.nodes.",
        (Edit("reconciler/kerf/scheduling:TypeTable.capacity", "1", "0"),),
    ),
    112: (
        "A NodePool counts as ready when it says anything of that.",
        (
            Edit(
                "reconciler/kerf/scheduling:ready",
                "c.type == 'Ready' and c.status == 'True'",
                "c.type == 'Ready'",
            ),
        ),
    ),
    113: (
        "A claim does not take over the pool's terminationGracePeriod.",
        (
            Edit(
                "reconciler/kerf/scheduling:_claim",
                (
                    "NodeClaimSpec(node_class_ref=template.node_class_ref, requirements=entries, "
                    "taints=template.taints, startup_taints=template.startup_taints, "
                    "expire_after=template.expire_after, termination_grace_period=template.termination_grace_period)"
                ),
                (
                    "NodeClaimSpec(node_class_ref=template.node_class_ref, requirements=entries, "
                    "taints=template.taints, startup_taints=template.startup_taints, "
                    "expire_after=template.expire_after)"
                ),
            ),
        ),
    ),
    114: (
        "Start-up taints of the template are not on the claim.",
        (
            Edit(
                "reconciler/kerf/scheduling:_claim",
                (
                    "NodeClaimSpec(node_class_ref=template.node_class_ref, requirements=entries, "
                    "taints=template.taints, startup_taints=template.startup_taints, "
                    "expire_after=template.expire_after, termination_grace_period=template.termination_grace_period)"
                ),
                (
                    "NodeClaimSpec(node_class_ref=template.node_class_ref, requirements=entries, "
                    "taints=template.taints, expire_after=template.expire_after, "
                    "termination_grace_period=template.termination_grace_period)"
                ),
            ),
        ),
    ),
    116: (
        "The claim does not block the deletion of its NodePool.",
        (Edit("reconciler/kerf/scheduling:owner_reference", "True", "False"),),
    ),
    121: (
        "One value is enough for minValues.",
        (Edit("reconciler/kerf/scheduling:NodeClaimTemplate.shortfall", "count < wanted[key]", "not count"),),
    ),
    125: (
        "The event does not say that minValues is why a NodePool is not used.",
        (Edit("reconciler/kerf/scheduling:_emptiness", "f'{text} due to minValues incompatibility'", "text"),),
    ),
    126: (
        "The list of types is cut by price alone.",
        (
            Edit(
                "reconciler/kerf/scheduling:listing",
                "set(covering) | set(rest[:most - len(covering)])",
                "set(types[:most].tolist())",
            ),
        ),
    ),
    127: (
        "BestEffort leaves the claim's minValues as they were.",
        (
            Edit(
                "reconciler/kerf/scheduling:_listed",
                "requirements, relaxed = (requirements.with_min_values(key, count or None), True)",
                "relaxed = True",
            ),
        ),
    ),
    128: (
        "A NodePool that misses its minValues is passed over under BestEffort, too.",
        (
            Edit(
                "reconciler/kerf/scheduling:_emptiness",
                "template.strict_min_values and template.shortfall(types)",
                "template.shortfall(types)",
            ),
        ),
    ),
    230: (
        "Pods that share a claim of a device that a node brings may go to different nodes.",
        (
            Edit(
                "reconciler/kerf/scheduling/devices/ledger.py",
                "elif (home.bound and home.host is not host) or not meets(",
                "elif not meets(",
            ),
        ),
    ),
}
