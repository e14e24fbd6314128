"""The work to read the constraints of pods, in steps, before any of them is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from kerf.model.kubernetes.objects import LabelSelector, PodSpec
from kerf.scheduling.topology.solve_counts import TERMS_A_STEP

#: Those labels of a pod that some constraint looks at.
Marks = tuple[tuple[str, str], ...]
#: So many bytes of constraints are read in one step, and of node affinity, which needs no look at other pods; from so
#: many on, to relax them takes longer for each.
_BYTES_A_STEP: Final = 16
_NODE_BYTES_A_STEP: Final = 24
_LONG: Final = 20_000
#: So many pods are held against a term in one step.
_MATCHES_A_STEP: Final = 10
_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class Reading:
    """The steps to read the constraints of pods, and to find out which constraints count which pods.

    A term that asks for a label is held against the pods that have the label (`Topology.selecting`), any other term
    against all pods. `pods` counts those that differ in anything, `others` the terms that ask for no label; `matches`
    are pods that are held against a term that does.
    """

    pods: int
    own: int = 0
    others: int = 0
    matches: int = 0
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    marks: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def steps(self) -> int:
        """The steps so far."""
        return self.pods + self.own + (self.matches + self.others * self.pods) // _MATCHES_A_STEP

    def read(self, constraints: bytes, spec: PodSpec, marks: Marks) -> None:
        """Count the constraints and labels of a pod. Pods of which both are equal are read once."""
        size, node = len(constraints), _node_bytes(spec)
        plain = (size - node) // _BYTES_A_STEP + node // _NODE_BYTES_A_STEP
        self.own += plain * (1 + size // _LONG) + _terms_of_relaxations(spec) // TERMS_A_STEP
        for mark in marks:
            self.marks[mark] += 1
            self.matches += self.asked[mark]
        for selector, keys in _selectors(spec):
            if selector is None or not selector.match_labels or selector.match_expressions or keys:
                self.others += 1
            else:
                mark = min(selector.match_labels.items())
                self.asked[mark] += 1
                self.matches += self.marks[mark]


def _node_bytes(spec: PodSpec) -> int:
    """The bytes of the node affinity."""
    affinity = spec.affinity
    return len(_encode(affinity.node_affinity)) if affinity is not None and affinity.node_affinity is not None else 0


def _terms_of_relaxations(spec: PodSpec) -> int:
    """The terms about other pods on all relaxations after the first one: each relaxation gives up one preference."""
    spreads = spec.topology_spread_constraints
    soft = sum(spread.when_unsatisfiable == "ScheduleAnyway" for spread in spreads)
    hard = len(spreads) - soft
    if spec.affinity is not None:
        for affinity in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            if affinity is not None:
                soft, hard = soft + len(affinity.preferred), hard + len(affinity.required)
    return soft * hard + soft * (soft - 1) // 2


def _selectors(spec: PodSpec) -> Iterator[tuple[LabelSelector | None, Sequence[str]]]:
    """The selector of each term, with the keys of labels that the term takes from the pod."""
    for spread in spec.topology_spread_constraints:
        yield spread.label_selector, spread.match_label_keys
    if spec.affinity is not None:
        for affinity in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            if affinity is not None:
                terms = (*affinity.required, *(weighted.pod_affinity_term for weighted in affinity.preferred))
                yield from ((term.label_selector, ()) for term in terms)
