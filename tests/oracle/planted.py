"""Misreadings of the kube-scheduler's rules, as edits of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.mutations.bug import Edit

_PORTS: Final = "reconciler/scheduling/ports.py"
_PODS: Final = "reconciler/model/pods.py"
_VOLUMES: Final = "reconciler/scheduling/volumes.py"
_SITES: Final = "reconciler/scheduling/sites.py"
_GROUPS: Final = "reconciler/scheduling/groups.py"
_ADMITS: Final = "reconciler/scheduling/admits.py"
_TALLIES: Final = "reconciler/scheduling/tallies.py"
_TOPOLOGY: Final = "reconciler/scheduling/topology.py"
_OPENING: Final = "reconciler/scheduling/opening.py"
_DEMANDS: Final = "reconciler/scheduling/requirements_of.py"
_SIDECAR_PORTS: Final = 'if container.restart_policy == "Always":\n            yield from container.ports'


@dataclass(frozen=True, slots=True)
class Misreading:
    """A wrong rule: its name says it."""

    name: str
    edits: tuple[Edit, ...]


def _misread(name: str, file: str, old: str, new: str) -> Misreading:
    return Misreading(name, (Edit(file, old, new),))


MISREADINGS: tuple[Misreading, ...] = (
    # host ports
    _misread("sidecars have no host ports", _PORTS, _SIDECAR_PORTS, _SIDECAR_PORTS.replace('"Always"', '"Never"')),
    _misread("init containers keep host ports", _PORTS, _SIDECAR_PORTS, "yield from container.ports"),
    _misread(
        "0.0.0.0 is one address", _PORTS, "(address == _ANY or _ANY in held or address in held)", "address in held"
    ),
    _misread(
        "host ports of any protocol clash",
        _PORTS,
        "held = self._addresses.get((number, protocol))",
        "held = tuple(a for key in self._addresses if key[0] == number for a in self._addresses[key]) or None",
    ),
    _misread("host ports of any address clash", _PORTS, "(address == _ANY or _ANY in held or address in held)", "True"),
    # requests
    _misread("a resize does not count", _PODS, "if not pod.spec.node_name or not (status.", "if True or not (status."),
    _misread(
        "an infeasible resize counts",
        _PODS,
        'return next((c.reason == "Infeasible" for c',
        "return next((False for c",
    ),
    _misread("no overhead", _PODS, "return result + Resources.parse(pod.spec.overhead)", "return result + Resources()"),
    _misread("sidecars end", _PODS, "running = sidecars + total(", "running = total("),
    _misread(
        "init containers before sidecars",
        _PODS,
        "peak.maximum(sidecars + _needs(container))",
        "peak.maximum(_needs(container))",
    ),
    _misread("init containers take nothing", _PODS, "result = running.maximum(peak)", "result = running"),
    _misread(
        "pod-level requests do not count",
        _PODS,
        "if pod.spec.resources is not None:\n        result",
        "if False:\n        result",
    ),
    # nodes
    _misread("cordoned nodes take pods", _SITES, "state.node is not None and state.node.spec.unschedulable", "False"),
    _misread(
        "nominated pods do not count",
        _SITES,
        "(*snapshot.pods.on(node_name), *snapshot.pods.expected_on(node_name))",
        "(*snapshot.pods.on(node_name),)",
    ),
    _misread("a pod nominated to a gone node waits", _PODS, "(nodes is None or expected in nodes)", "True"),
    _misread(
        "an empty term matches every node",
        _DEMANDS,
        "tuple(term for term in terms if term.match_expressions or term.match_fields)",
        "tuple(terms)",
    ),
    _misread(
        "tolerations have no effect field",
        "reconciler/model/objects.py",
        "if self.effect and self.effect != taint.effect:",
        "if False:",
    ),
    # volumes
    _misread("labels of volumes do not count", _VOLUMES, "places = _labelled(volume)", "places = (EMPTY,)"),
    _misread("node affinity of volumes does not count", _VOLUMES, "if required is None:", "if True:"),
    _misread("allowedTopologies do not count", _VOLUMES, "return tuple(terms) or (EMPTY,)", "return (EMPTY,)"),
    _misread("attach limits do not count", _SITES, "return found.attachable if found is not None else {}", "return {}"),
    _misread(
        "ReadWriteOncePod is ReadWriteOnce",
        "reconciler/scheduling/sole_users.py",
        '"ReadWriteOncePod"',
        '"ReadWriteOncePods"',
    ),
    # spread
    _misread(
        "nodeAffinityPolicy is Ignore",
        _GROUPS,
        "return not self.honors_affinity or accepted_by_node(self.filter_pod, node_labels)",
        "return True",
    ),
    _misread(
        "terminating pods count for spreads", _TALLIES, "if group.kind == SPREAD and terminating(pod):", "if False:"
    ),
    _misread(
        "minDomains does not count",
        _ADMITS,
        "few = not domains or len(domains) < bond.min_domains",
        "few = not domains",
    ),
    _misread(
        "the skew may be one more",
        _ADMITS,
        "return Bounds(0, bond.max_skew + least - int(bond.self_match), bond.self_match)",
        "return Bounds(0, bond.max_skew + 1 + least - int(bond.self_match), bond.self_match)",
    ),
    _misread(
        "a node that lacks a key of the spread counts",
        _GROUPS,
        "if not self.keys <= node_labels.keys():",
        "if False:",
    ),
    _misread(
        "nodes without pods are no domain",
        _TOPOLOGY,
        "return counted | offered.keys() | frozenset(self._on_coming_nodes(group))",
        "return counted",
    ),
    _misread(
        "domains of NodePools that the pod cannot use count",
        _OPENING,
        "if rung.demand.possible else ():",
        "if rung.demand.possible else ():\n"
        '                    found += [((labels.ZONE, f"zone-{name}"),) for name in "abc"]',
    ),
    _misread(
        "an empty selector of a spread counts every pod",
        _TOPOLOGY,
        "selector = Selector(nothing=True)",
        "pass",
    ),
    _misread(
        "a spread counts no daemon pods of planned nodes",
        "reconciler/scheduling/routes.py",
        "    return sum(template.carries(daemon, served)[1] for daemon in group.daemons)",
        "    return 0",
    ),
    # company
    _misread(
        "a pod counts that one of several affinity terms selects",
        _GROUPS,
        "for other in terms[1:]:",
        "for other in terms[:0]:",
    ),
    _misread(
        "daemon pods keep no pod away from new nodes",
        "reconciler/scheduling/daemon_company.py",
        "for daemon in _apart(cls, rung) if template.carries(daemon, served)[0])",
        "for daemon in ())",
    ),
    _misread(
        "daemon pods are no company on new nodes",
        "reconciler/scheduling/daemon_company.py",
        "if bond.group.kind == AFFINITY and any(everywhere for _, everywhere in runs):",
        "if False:",
    ),
    _misread(
        "a daemon pod comes to any node",
        "reconciler/scheduling/arrivals.py",
        "if not lacks and self._admitted(daemon, found, domain_of, moving):",
        "if True:",
    ),
    _misread(
        "terminating pods keep no pod away",
        _TALLIES,
        "if group.kind == SPREAD and terminating(pod):",
        "if terminating(pod):",
    ),
    _misread(
        "anti-affinity of bound pods does not count", _TALLIES, "        if not self._shuns:\n", "        if True:\n"
    ),
    _misread(
        "namespaces do not count",
        _GROUPS,
        "frozenset(term.namespaces or (pod.metadata.namespace,))",
        "frozenset((pod.metadata.namespace,))",
    ),
    _misread(
        "an empty namespaceSelector selects no namespace",
        _GROUPS,
        "        return None\n    chosen",
        "        return frozenset(term.namespaces)\n    chosen",
    ),
)
