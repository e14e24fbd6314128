"""The order of a plan: on each new node, pods come after those that they must be near.

Pods on new nodes are ordered by the first half of a solve, which knows no nodes yet: of an affinity over hostnames it
knows only that some pod of the group is on a new node. Here the nodes are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kerf.scheduling.answers.solution import NewNode
from kerf.scheduling.packing.finalize import Packed
from kerf.scheduling.placing.classes import PodClass
from kerf.scheduling.pods.topology_constraints import AFFINITY, TopologyConstraint, TopologyGroup
from kerf_api import labels


def after_company(
    order: Sequence[str],
    nodes: Sequence[NewNode],
    packed: Sequence[Packed],
    classes: Iterable[PodClass],
    groups: Iterable[TopologyGroup],
) -> list[str]:
    """The same pods; one whose required affinity over hostnames is not met yet waits for its company.

    Args:
        packed: the same nodes as `nodes`, with the relaxations at which their pods are planned.
        groups: those of the solve.
    """
    constraints = _constraints(nodes, packed) if any(map(_over_hosts, groups)) else {}
    if not constraints:
        return list(order)
    ordered = _Order(nodes, constraints, classes)
    ordered.come_in_order(order)
    return [*ordered.done, *(pod for waiting in ordered.waiting.values() for pod in waiting)]


def _over_hosts(group: TopologyGroup) -> bool:
    return group.kind == AFFINITY and group.key == labels.HOSTNAME


def _constraints(nodes: Sequence[NewNode], packed: Sequence[Packed]) -> dict[str, list[TopologyConstraint]]:
    """The required affinities over hostnames of the pods on new nodes; those that DaemonSets meet are none."""
    found: dict[str, list[TopologyConstraint]] = {}
    for node, one in zip(nodes, packed, strict=True):
        start = 0
        for stock, number in one.content:
            if stock.hosts:
                own = [
                    constraint
                    for constraint in stock.hosts
                    if constraint.group.kind == AFFINITY and constraint.required
                ]
                found.update(dict.fromkeys(node.pods[start : start + number], own) if own else ())
            start += number
    return found


class _Order:
    """`done` are the pods that have had their turn, `waiting` those that have not, by the node of each."""

    def __init__(
        self,
        nodes: Sequence[NewNode],
        constraints: Mapping[str, Sequence[TopologyConstraint]],
        classes: Iterable[PodClass],
    ) -> None:
        self.done: list[str] = []
        self.waiting: dict[int, list[str]] = {}
        self._constraints = constraints
        self._node = {pod: number for number, node in enumerate(nodes) for pod in node.pods}
        self._groups = {
            pod.key: [group for group in cls.counted if group.kind == AFFINITY]
            for cls in classes
            for pod in cls.members
        }
        self._here: set[tuple[int, TopologyGroup]] = set()
        self._anywhere: set[TopologyGroup] = set()

    def come_in_order(self, order: Sequence[str]) -> None:
        """Give all pods their turns. A founder comes just before the first pod of its group.

        It comes no sooner: a spread may count it, and pods that the spread binds are planned before it.
        """
        founders, came = self._founders(order), set[str]()
        for pod in order:
            first = [founders[group] for group in self._groups.get(pod, ()) if group in founders]
            for one in (*first, pod):
                if one not in came:
                    came.add(one)
                    self.come(one)

    def _founders(self, order: Sequence[str]) -> dict[TopologyGroup, str]:
        """The pods that must be the first of those that they must be near, by the group that counts these: no other of
        them is on the node."""
        others: set[tuple[int | None, TopologyGroup]] = set()
        for pod, groups in self._groups.items():
            own = {constraint.group for constraint in self._constraints.get(pod, ())}
            others.update((self._node.get(pod), group) for group in groups if group not in own)
        beside = {group for _, group in others}
        found: dict[TopologyGroup, str] = {}
        for pod in order:
            constraints = [
                constraint
                for constraint in self._constraints.get(pod, ())
                if constraint.group in beside and constraint.group not in found and self._first(constraint)
            ]
            if constraints and all((self._node[pod], constraint.group) not in others for constraint in constraints):
                found.update((constraint.group, pod) for constraint in constraints)
        return found

    def come(self, pod: str) -> None:
        """The pod has its turn, and so have those that waited for it; or it waits."""
        node = self._node.get(pod)
        if node is None:
            self._place(pod, node)
        elif not self._admitted(pod, node):
            self.waiting.setdefault(node, []).append(pod)
        else:
            self._place(pod, node)
            waiting = self.waiting.pop(node, ())
            for other in waiting:
                self.come(other)

    def _admitted(self, pod: str, node: int) -> bool:
        return all(
            (node, constraint.group) in self._here or self._first(constraint)
            for constraint in self._constraints.get(pod, ())
        )

    def _first(self, constraint: TopologyConstraint) -> bool:
        """Whether the pod may be the first of those that it must be near."""
        groups = constraint.together or (constraint.group,)
        return constraint.self_match and not any(sum(g.at_first[0].values()) or g in self._anywhere for g in groups)

    def _place(self, pod: str, node: int | None) -> None:
        self.done.append(pod)
        groups = self._groups.get(pod, ())
        self._anywhere.update(groups)
        if node is not None:
            self._here.update((node, group) for group in groups)
