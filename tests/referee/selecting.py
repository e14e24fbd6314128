"""Labels against what selects them: node selectors and affinity terms, taints and tolerations, label selectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kerf.model.kubernetes.objects import Expression, LabelSelector, NodeSelector, NodeSelectorTerm, Pod, Toleration
from kerf_api import labels
from kerf_api.v1.meta import Taint


def selector_holds(pod: Pod, node_labels: Mapping[str, str]) -> bool:
    """The pod's nodeSelector."""
    return all(node_labels.get(labels.normalise(k)) == v for k, v in pod.spec.node_selector.items())


def affinity_holds(pod: Pod, node_name: str, node_labels: Mapping[str, str]) -> bool:
    """The pod's required node affinity: one of its terms."""
    required = required_affinity(pod)
    return required is None or any(term_holds(term, node_name, node_labels) for term in required.node_selector_terms)


def required_affinity(pod: Pod) -> NodeSelector | None:
    """The pod's required node affinity, if it has one."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    return affinity.required if affinity is not None else None


def term_holds(term: NodeSelectorTerm, node_name: str, node_labels: Mapping[str, str]) -> bool:
    """Every expression and every field of a term; an empty term selects nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node_name}
    return all(holds(node_labels, labels.normalise(e.key), e.operator, e.values) for e in term.match_expressions) and (
        all(holds(fields, e.key, e.operator, e.values) for e in term.match_fields)
    )


def expressions_hold(rows: Iterable[Expression], found: Mapping[str, str]) -> bool:
    """Every one of these expressions."""
    return all(holds(found, labels.normalise(e.key), e.operator, e.values) for e in rows)


def holds(found: Mapping[str, str], key: str, operator: str, values: Sequence[str]) -> bool:
    """One expression of the API."""
    value = found.get(key)
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    if value is None or not value.isdigit():
        return False
    number, bound = int(value), int(values[0])
    return {"Gt": number > bound, "Lt": number < bound, "Gte": number >= bound, "Lte": number <= bound}[operator]


def matches(selector: LabelSelector | None, found: Mapping[str, str]) -> bool:
    """A selector of pods or namespaces; an absent one selects nothing."""
    if selector is None:
        return False
    if any(found.get(k) != v for k, v in selector.match_labels.items()):
        return False
    return all(holds(found, e.key, e.operator, e.values) for e in selector.match_expressions)


def tolerates(pod: Pod, taint: Taint) -> bool:
    return any(_tolerated(t, taint) for t in pod.spec.tolerations)


def _tolerated(one: Toleration, taint: Taint) -> bool:
    if one.effect not in ("", taint.effect):
        return False
    if one.operator == "Exists":
        return one.key in ("", taint.key)
    return one.key == taint.key and one.value == taint.value


def untolerated(pod: Pod, taints: Iterable[Taint]) -> list[Taint]:
    """The taints that keep the pod away; soft ones never do."""
    return [t for t in taints if t.effect != "PreferNoSchedule" and not tolerates(pod, t)]
