"""The rules between a pod and the pods of other nodes: hard topology spread, required pod (anti-)affinity.

Source: Kubernetes, plugins PodTopologySpread and InterPodAffinity of the kube-scheduler. Pods that are being deleted
count for (anti-)affinity and never for a spread. Pods of a node that is gone count for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kerf.sandbox.scheduling.demand import Demand, Spread, Term
from kerf.sandbox.scheduling.node_views import NodeView, NodeViews, Resident

#: Why a pod may not go to a node for the sake of other pods, beside guests that are expected there; empty if it may.
Objection = Callable[[NodeView, Sequence[Resident]], str]


def objections(demand: Demand, nodes: NodeViews) -> list[Objection]:
    """The rules that hold for pods of this shape now."""
    rules: list[Objection] = [_spread(demand, row, nodes) for row in demand.spreads]
    if demand.affinity:
        rules.append(_affinity(demand, nodes))
    rules += [_away(demand, term, nodes) for term in demand.anti_affinity]
    return rules + _unwelcome(demand, nodes)


def _spread(demand: Demand, spread: Spread, nodes: NodeViews) -> Objection:
    key, keys = spread.term.topology_key, [row.term.topology_key for row in demand.spreads]
    counts = nodes.counts((spread.term,), terminating=False) if spread.counts else {}
    own = int(spread.term.selects(demand.namespace, demand.labels))

    def counted(node: NodeView) -> bool:
        """A node without one of the pod's keys counts for none of them."""
        return (
            all(one in node.labels for one in keys)
            and (not spread.honor_affinity or demand.likes(node.name, node.labels))
            and (not spread.honor_taints or demand.tolerates(node.taints))
        )

    totals: dict[str, int] = {}
    for node in nodes.known():
        if counted(node):
            totals[node.labels[key]] = totals.get(node.labels[key], 0) + counts.get(node.name, 0)
    least = min(totals.values(), default=0) if len(totals) >= spread.min_domains else 0

    def objection(node: NodeView, guests: Sequence[Resident]) -> str:
        if key not in node.labels:
            return "node(s) didn't match pod topology spread constraints (missing required label)"
        domain, lowest = node.labels[key], least
        here = totals.get(domain, 0)
        if guests and counted(node):
            here += sum(not guest.terminating and guest.selected_by((spread.term,)) for guest in guests)
            lowest = min([here, *(n for name, n in totals.items() if name != domain)])
            lowest = lowest if len(totals) >= spread.min_domains else 0
        return "" if here + own - lowest <= spread.max_skew else "node(s) didn't match pod topology spread constraints"

    return objection


def _affinity(demand: Demand, nodes: NodeViews) -> Objection:
    """Each term needs a pod in the node's domain that all terms select. The first of a kind needs none."""
    terms = demand.affinity
    counts = nodes.counts(terms, terminating=True)
    there = [nodes.by_name[name].labels for name, count in counts.items() if count and nodes.by_name[name].known]
    domains = {(t.topology_key, labels[t.topology_key]) for t in terms for labels in there if t.topology_key in labels}
    own = all(term.selects(demand.namespace, demand.labels) for term in terms)

    def objection(node: NodeView, guests: Sequence[Resident]) -> str:
        near = {(term.topology_key, node.labels.get(term.topology_key)) for term in terms}
        met = set(domains)
        if any(guest.selected_by(terms) for guest in guests):
            met |= {(key, value) for key, value in near if value is not None}
        if all(value is not None for _, value in near) and (near <= met or (not met and own)):
            return ""
        return "node(s) didn't match pod affinity rules"

    return objection


def _away(demand: Demand, term: Term, nodes: NodeViews) -> Objection:
    """No pod that the term selects may be in the node's domain."""
    domains = _domains(term, nodes.counts((term,), terminating=True), nodes)

    def objection(node: NodeView, guests: Sequence[Resident]) -> str:
        domain = node.labels.get(term.topology_key)
        if domain is None or (domain not in domains and not any(guest.selected_by((term,)) for guest in guests)):
            return ""
        return "node(s) didn't match pod anti-affinity rules"

    return objection


def _unwelcome(demand: Demand, nodes: NodeViews) -> list[Objection]:
    """No pod whose anti-affinity selects this one may be in the node's domain.

    If the pod has no terms itself and no bound pod keeps it away from any domain, the kube-scheduler skips the whole
    plugin: then the terms of guests do not count either.
    """
    taken: dict[str, set[str]] = {}
    for term, counts in nodes.forbidding.values():
        if term.selects(demand.namespace, demand.labels):
            taken.setdefault(term.topology_key, set()).update(_domains(term, counts, nodes))
    if not demand.affinity and not demand.anti_affinity and not any(taken.values()):
        return []

    def objection(node: NodeView, guests: Sequence[Resident]) -> str:
        against = (term for guest in guests for term in guest.demand.anti_affinity)
        keys = {term.topology_key for term in against if term.selects(demand.namespace, demand.labels)}
        near = any(node.labels.get(key) in values for key, values in taken.items())
        if near or any(key in node.labels for key in keys):
            return "node(s) didn't satisfy existing pods anti-affinity rules"
        return ""

    return [objection]


def _domains(term: Term, counts: Mapping[str, int], nodes: NodeViews) -> set[str]:
    """The domains in which at least one counted pod is on a node that exists."""
    views = (nodes.by_name[name] for name, count in counts.items() if count)
    return {v.labels[term.topology_key] for v in views if v.known and term.topology_key in v.labels}
