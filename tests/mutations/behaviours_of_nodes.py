"""Behaviours 70 to 129 of the scheduling catalogue, broken: nodes, daemon sets, NodePools, minValues. By number."""

from __future__ import annotations

from tests.mutations.bug import Edit

BREAKS: dict[int, tuple[str, tuple[Edit, ...]]] = {
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
    72: (
        "Pods that are on a node take nothing of it.",
        (
            Edit(
                "reconciler/scheduling/targets.py",
                "vectors(site.allocatable for site in sites) - vectors(one.used or {} for one in there) - still",
                "vectors(site.allocatable for site in sites) - still",
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
    78: (
        "Taints of initialised nodes keep nobody away.",
        (
            Edit(
                "reconciler/model/snapshot.py",
                "return self.node.spec.taints if self.node is not None else ()",
                "return ()",
            ),
        ),
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
                "return not target.state.initialized,",
                "return target.state.initialized,",
            ),
        ),
    ),
    83: (
        "Host ports count only where an address is given.",
        (
            Edit(
                "reconciler/scheduling/ports.py",
                "(number := _number(pod, port)) > 0",
                "(number := _number(pod, port)) and port.host_ip",
            ),
        ),
    ),
    86: (
        "Daemon sets take nothing of new nodes.",
        (Edit("reconciler/scheduling/template.py", "self.overhead = shares", "self.overhead = np.zeros_like(shares)"),),
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
    94: (
        "A daemon set is expected where a label that it wants is not defined.",
        (
            Edit(
                "reconciler/scheduling/daemons.py",
                "if ready.compatible(term, labels.WELL_KNOWN)",
                "if ready.conflict(term) is None",
            ),
        ),
    ),
    95: (
        "Of a daemon set's alternatives only the first is looked at.",
        (
            Edit(
                "reconciler/scheduling/daemons.py",
                "tuple(base & term_requirements(term) for term in terms)",
                "tuple(base & term_requirements(term) for term in terms[:1])",
            ),
        ),
    ),
    96: (
        "Every type bears the daemons of all others.",
        (Edit("reconciler/scheduling/template.py", "shares[here] += ", "shares += "),),
    ),
    97: (
        "Host ports of daemons are taken on types where they do not run, too.",
        (
            Edit(
                "reconciler/scheduling/template.py", "for row in np.flatnonzero(here):", "for row in range(len(held)):"
            ),
        ),
    ),
    98: (
        "What daemon sets take is kept free although their pods are there.",
        (Edit("reconciler/scheduling/targets.py", " - vectors(one.daemon_used for one in there), 0)", ", 0)"),),
    ),
    99: (
        "Daemons that take more than was expected of them leave more room than there is.",
        (
            Edit(
                "reconciler/scheduling/targets.py",
                "still = np.maximum(shares - vectors(one.daemon_used for one in there), 0)",
                "still = shares - vectors(one.daemon_used for one in there)",
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
    106: (
        "What is in use does not count against limits.",
        (Edit("reconciler/scheduling/template.py", "self.limits[name] - used[name] for", "self.limits[name] for"),),
    ),
    107: (
        "The sum of what a NodePool's nodes use stays 0.",
        (Edit("reconciler/scheduling/world.py", "return Usage(each, total(each.values()))", "return Usage(each)"),),
    ),
    109: (
        "What a pass has planned does not count against limits.",
        (Edit("reconciler/scheduling/closing.py", "            template.deduct(types)\n", ""),),
    ),
    111: (
        "A node does not count against limits.nodes.",
        (Edit("reconciler/scheduling/types.py", '[1 if resource == "nodes" else', '[0 if resource == "nodes" else'),),
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
    114: (
        "Start-up taints of the template are not on the claim.",
        (Edit("reconciler/scheduling/claims.py", "            startup_taints=template.startup_taints,\n", ""),),
    ),
    116: (
        "The claim does not block the deletion of its NodePool.",
        (Edit("reconciler/scheduling/claims.py", "block_owner_deletion=True", "block_owner_deletion=False"),),
    ),
    121: (
        "One value is enough for minValues.",
        (Edit("reconciler/scheduling/template.py", "if count < wanted[key]}", "if not count}"),),
    ),
    125: (
        "The event does not say that minValues is why a NodePool is not used.",
        (Edit("reconciler/scheduling/world.py", 'f"{text} due to minValues incompatibility"', "text"),),
    ),
    126: (
        "The list of types is cut by price alone.",
        (
            Edit(
                "reconciler/scheduling/listing.py",
                "chosen = set(covering) | set(rest[: most - len(covering)])",
                "chosen = set(types[:most].tolist())",
            ),
        ),
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
    230: (
        "Pods that share a claim of a device that a node brings may go to different nodes.",
        (
            Edit(
                "reconciler/scheduling/devices/ledger.py",
                "elif (home.bound and home.host is not host) or not meets(",
                "elif not meets(",
            ),
        ),
    ),
}
