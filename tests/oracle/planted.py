"""Misreadings of the kube-scheduler's rules, as edits of the engine."""

from __future__ import annotations

from dataclasses import dataclass

from tests.mutations.edits import Edit


@dataclass(frozen=True, slots=True)
class Misreading:
    """A wrong rule: its name says it."""

    name: str
    edits: tuple[Edit, ...]


def _misread(name: str, place: str, old: str, new: str) -> Misreading:
    return Misreading(name, (Edit(place, old, new),))


MISREADINGS: tuple[Misreading, ...] = (
    # host ports
    _misread("sidecars have no host ports", "reconciler/kerf/pods:_ports", "'Always'", "'Never'"),
    _misread(
        "init containers keep host ports",
        "reconciler/kerf/pods:_ports",
        "if container.restart_policy == 'Always':\n    yield from container.ports",
        "yield from container.ports",
    ),
    _misread(
        "0.0.0.0 is one address",
        "reconciler/kerf/pods:HeldPorts.clash",
        "address == _ANY or _ANY in held or address in held",
        "address in held",
    ),
    _misread(
        "host ports of any protocol clash",
        "reconciler/kerf/pods:HeldPorts.clash",
        "self._addresses.get((number, protocol))",
        "tuple((a for key in self._addresses if key[0] == number for a in self._addresses[key])) or None",
    ),
    _misread(
        "host ports of any address clash",
        "reconciler/kerf/pods:HeldPorts.clash",
        "address == _ANY or _ANY in held or address in held",
        "True",
    ),
    # requests
    _misread("a resize does not count", "reconciler/kerf/model:reported", "not pod.spec.node_name", "True"),
    _misread(
        "an infeasible resize counts",
        "reconciler/kerf/model:resize_infeasible",
        "c.reason == 'Infeasible'",
        "False",
    ),
    _misread("no overhead", "reconciler/kerf/model:requests", "Resources.parse(pod.spec.overhead)", "Resources()"),
    _misread(
        "sidecars end",
        "reconciler/kerf/model:requests",
        "sidecars + total((_needs(c, by_name.get(c.name), infeasible) for c in pod.spec.containers))",
        "total((_needs(c, by_name.get(c.name), infeasible) for c in pod.spec.containers))",
    ),
    _misread(
        "init containers before sidecars",
        "reconciler/kerf/model:requests",
        "sidecars + _needs(container)",
        "_needs(container)",
    ),
    _misread("init containers take nothing", "reconciler/kerf/model:requests", "running.maximum(peak)", "running"),
    _misread(
        "pod-level requests do not count",
        "reconciler/kerf/model:requests",
        "pod.spec.resources is not None",
        "False",
    ),
    # nodes
    _misread(
        "cordoned nodes take pods",
        "reconciler/kerf/scheduling:_read",
        "state.node is not None and state.node.spec.unschedulable",
        "False",
    ),
    _misread(
        "nominated pods do not count",
        "reconciler/kerf/scheduling:residents",
        "(*snapshot.pods.on(node_name), *snapshot.pods.expected_on(node_name))",
        "(*snapshot.pods.on(node_name),)",
    ),
    _misread(
        "a pod nominated to a gone node waits",
        "reconciler/kerf/model:provisionable",
        "nodes is None or expected in nodes",
        "True",
    ),
    _misread(
        "an empty term matches every node",
        "reconciler/kerf/pods:filled",
        "[term for term in terms if term.match_expressions or term.match_fields]",
        "terms",
    ),
    _misread(
        "tolerations have no effect field",
        "reconciler/kerf/model:Toleration.tolerates",
        "self.effect and self.effect != taint.effect",
        "False",
    ),
    # volumes
    _misread("labels of volumes do not count", "reconciler/kerf/pods:_of_volume", "_labelled(volume)", "(EMPTY,)"),
    _misread(
        "node affinity of volumes does not count",
        "reconciler/kerf/pods:_affinity_terms",
        "required is None",
        "True",
    ),
    _misread(
        "allowedTopologies do not count", "reconciler/kerf/pods:_of_class", "tuple(terms) or (EMPTY,)", "(EMPTY,)"
    ),
    _misread(
        "attach limits do not count",
        "reconciler/kerf/scheduling:_attachable",
        "found.attachable if found is not None else {}",
        "{}",
    ),
    _misread(
        "ReadWriteOncePod is ReadWriteOnce",
        "reconciler/kerf/pods:_MODE",
        "'ReadWriteOncePod'",
        "'ReadWriteOncePods'",
    ),
    # spread
    _misread(
        "nodeAffinityPolicy is Ignore",
        "reconciler/kerf/pods:TopologyGroup.admits_node",
        "accepted(self.terms, node_labels)",
        "True",
    ),
    _misread(
        "terminating pods count for spreads",
        "reconciler/kerf/scheduling:Tallies._tally",
        "group.kind == SPREAD and terminating(pod)",
        "False",
    ),
    _misread(
        "minDomains does not count",
        "reconciler/kerf/scheduling:current",
        "not domains or len(domains) < constraint.min_domains",
        "not domains",
    ),
    _misread(
        "the skew may be one more",
        "reconciler/kerf/scheduling:bounds",
        "constraint.max_skew",
        "constraint.max_skew + 1",
    ),
    _misread(
        "a node that lacks a key of the spread counts",
        "reconciler/kerf/pods:TopologyGroup.admits_node",
        "not all((key in node_labels for key in self.keys))",
        "False",
    ),
    _misread(
        "nodes without pods are no domain",
        "reconciler/kerf/scheduling:Topology._standing",
        "counted | offered.keys() | self._coming[group.alike]",
        "counted",
    ),
    _misread(
        "domains of NodePools that the pod cannot use count",
        "reconciler/kerf/scheduling:Opening._pins_of",
        "found += self._open_pins(choice, cls, number, need)",
        "found += [((labels.ZONE, f'zone-{name}'),) for name in 'abc']\n"
        "found += self._open_pins(choice, cls, number, need)",
    ),
    _misread(
        "an empty selector of a spread counts every pod",
        "reconciler/kerf/scheduling:Topology._spread_group",
        "selector = Selector(nothing=True)",
        "pass",
    ),
    Misreading(
        "a spread counts no daemon pods of planned nodes",
        (
            Edit(
                "reconciler/kerf/scheduling:arriving",
                "sum((template.carries(daemon, served)[1] for daemon in group.daemons))",
                "0",
            ),
            Edit(
                "reconciler/kerf/scheduling:carried_daemons",
                "sum((bool(node.template.carrying(d, node.types).all()) for d in group.daemons))",
                "0",
            ),
        ),
    ),
    # company
    _misread(
        "a pod counts that one of several affinity terms selects",
        "reconciler/kerf/pods:terms_groups",
        "terms[1:]",
        "terms[:0]",
    ),
    _misread(
        "daemon pods keep no pod away from new nodes",
        "reconciler/kerf/scheduling:keeping_away",
        "(daemon.key for daemon in _apart(cls, relaxation) if template.carries(daemon, served)[0])",
        "(daemon.key for daemon in ())",
    ),
    _misread(
        "daemon pods are no company on new nodes",
        "reconciler/kerf/scheduling:beside_daemons",
        "constraint.group.kind == AFFINITY and any((everywhere for _, everywhere in runs))",
        "False",
    ),
    _misread(
        "a daemon pod comes to any node",
        "reconciler/kerf/scheduling:Arrivals.coming",
        "not lacks and self._admitted(daemon, found, domain_of, moving)",
        "True",
    ),
    _misread(
        "terminating pods keep no pod away",
        "reconciler/kerf/scheduling:Tallies._tally",
        "group.kind == SPREAD and terminating(pod)",
        "terminating(pod)",
    ),
    _misread(
        "anti-affinity of bound pods does not count",
        "reconciler/kerf/scheduling:Tallies.inverse",
        "not self._inverse",
        "True",
    ),
    _misread(
        "namespaces do not count",
        "reconciler/kerf/pods:_reach",
        "term.namespaces or (pod.metadata.namespace,)",
        "(pod.metadata.namespace,)",
    ),
    _misread(
        "an empty namespaceSelector selects no namespace",
        "reconciler/kerf/pods:_reach",
        "return None",
        "return frozenset(term.namespaces)",
    ),
)
