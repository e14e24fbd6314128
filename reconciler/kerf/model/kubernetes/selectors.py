"""Label selectors as values that compare, with `matchLabelKeys` resolved against the pod that owns them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kerf.model.kubernetes.objects import Expression, LabelSelector

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


@dataclass(frozen=True, slots=True)
class Selector:
    """`pairs` must be there; `expressions` are (key, operator, sorted values). `nothing`: it selects no pod."""

    pairs: tuple[tuple[str, str], ...] = ()
    expressions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    nothing: bool = False

    def matches(self, pod_labels: Mapping[str, str]) -> bool:
        if self.nothing or any(pod_labels.get(key) != value for key, value in self.pairs):
            return False
        return all(_holds(pod_labels, *expression) for expression in self.expressions)

    def joined(self, others: Sequence[Selector]) -> Selector:
        """The selector of the pods that this one and all the others select."""
        pairs = set(self.pairs).union(*(other.pairs for other in others))
        expressions = set(self.expressions).union(*(other.expressions for other in others))
        nothing = self.nothing or any(other.nothing for other in others)
        return Selector(tuple(sorted(pairs)), tuple(sorted(expressions)), nothing)

    @property
    def keys(self) -> set[str]:
        """The label keys that it looks at."""
        return {key for key, _ in self.pairs} | {expression[0] for expression in self.expressions}


def selector_of(selector: LabelSelector | None, own_labels: Mapping[str, str], match_keys: Iterable[str]) -> Selector:
    """A selector of the API. Absent or malformed it selects nothing; an empty one selects all."""
    if selector is None or any(e.operator not in _OPERATORS for e in selector.match_expressions):
        return Selector(nothing=True)
    added = {key: own_labels[key] for key in match_keys if key in own_labels}
    single = {(e.key, e.values[0]) for e in selector.match_expressions if _is_pair(e)}
    pairs = sorted({*selector.match_labels.items(), *added.items(), *single})
    rows = {(e.key, e.operator, tuple(sorted(e.values))) for e in selector.match_expressions if not _is_pair(e)}
    return Selector(tuple(pairs), tuple(sorted(rows)))


def keys_of(selector: LabelSelector | None) -> Iterable[str]:
    """The label keys that a selector of the API looks at, perhaps more than once; none where it selects nothing."""
    if selector is None:
        return ()
    rows = selector.match_expressions
    if not rows:
        return selector.match_labels
    if any(e.operator not in _OPERATORS for e in rows):
        return ()
    return (*selector.match_labels, *(e.key for e in rows))


def _is_pair(expression: Expression) -> bool:
    """Whether it says no more than a pair does: then both are the same selector."""
    return expression.operator == "In" and len(expression.values) == 1


def _holds(pod_labels: Mapping[str, str], key: str, operator: str, values: tuple[str, ...]) -> bool:
    if operator == "Exists":
        return key in pod_labels
    if operator == "DoesNotExist":
        return key not in pod_labels
    return (pod_labels.get(key) in values) == (operator == "In")
