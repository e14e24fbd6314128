"""The order of a plan: on each new node, pods come after those that they must be near.

Pods on new nodes are ordered by the first half of a solve, which knows no nodes yet: of an affinity over hostnames it
knows only that some pod of the group is on a new node. Here the nodes are known. A pod whose company has a later turn
gets it earlier, where no other constraint depends on the turn of that company. Else the pod waits, and so do the pods
on its node that its spreads over hostnames count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from kerf.pods.topology_constraints import AFFINITY, ANTI, SPREAD, TopologyConstraint, TopologyGroup
from kerf.scheduling.answers.solution import NewNode
from kerf.scheduling.packing.draft import PoolDemand
from kerf.scheduling.packing.finalize import Packed
from kerf.scheduling.placing.classes import PodClass
from kerf_api import labels


def after_company(
    order: Sequence[str],
    nodes: Sequence[NewNode],
    packed: Sequence[Packed],
    classes: Iterable[PodClass],
    groups: Iterable[TopologyGroup],
) -> list[str]:
    """The same pods; one whose required affinity over hostnames is not met yet comes after its company.

    Args:
        packed: the same nodes as `nodes`, with the relaxations at which their pods are planned.
        groups: those of the solve.
    """
    near = _near(packed) if any(map(_over_hosts, groups)) else {}
    if not near:
        return list(order)
    ordered = _Order(order, nodes, packed, near, classes)
    ordered.come_in_order(order)
    left = (pod for waiting in ordered.waiting.values() for pod in waiting if pod not in ordered.done)
    return [*ordered.done, *left]


def _over_hosts(group: TopologyGroup) -> bool:
    return group.kind == AFFINITY and group.key == labels.HOSTNAME


def _near(packed: Sequence[Packed]) -> dict[PoolDemand, list[TopologyConstraint]]:
    """The required affinities over hostnames of the pods on new nodes; those that DaemonSets meet are none."""
    found: dict[PoolDemand, list[TopologyConstraint]] = {}
    for stock in (stock for one in packed for stock, _ in one.content if stock.hosts):
        own = [constraint for constraint in stock.hosts if _over_hosts(constraint.group) and constraint.required]
        if own:
            found[stock] = own
    return found


def _stocks(nodes: Sequence[NewNode], packed: Sequence[Packed]) -> Iterator[tuple[str, PoolDemand]]:
    for node, one in zip(nodes, packed, strict=True):
        stocks = (stock for stock, number in one.content for _ in range(number))
        yield from zip(node.pods, stocks, strict=True)


class _Order:
    """`done` are the pods that have had their turn, `waiting` those that have not, by the node of each."""

    def __init__(
        self,
        order: Sequence[str],
        nodes: Sequence[NewNode],
        packed: Sequence[Packed],
        near: Mapping[PoolDemand, Sequence[TopologyConstraint]],
        classes: Iterable[PodClass],
    ) -> None:
        self.done: dict[str, None] = {}
        self.waiting: dict[int, list[str]] = {}
        self._near, self._stock = near, dict(_stocks(nodes, packed))
        self._node = {pod: number for number, node in enumerate(nodes) for pod in node.pods}
        turns = {pod: turn for turn, pod in enumerate(order)}
        self._pods = [sorted(node.pods, key=lambda pod: turns.get(pod, len(turns))) for node in nodes]
        self._groups: dict[str, list[TopologyGroup]] = {}
        #: The affinities that a pod of their own may begin.
        self._begun_by_own = set[TopologyGroup]()
        for cls in classes:
            groups = [group for group in cls.counted if group.kind == AFFINITY]
            self._groups.update((pod.key, groups) for pod in cls.members)
            self._begun_by_own.update(one.group for one in cls.relaxations[-1].others if one.self_match)
        self._here = Counter[tuple[int, TopologyGroup]]()
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
            own = {constraint.group for constraint in self._constraints(pod)}
            others.update((self._node.get(pod), group) for group in groups if group not in own)
        beside = {group for _, group in others}
        found: dict[TopologyGroup, str] = {}
        for pod in order:
            constraints = [
                constraint
                for constraint in self._constraints(pod)
                if constraint.group in beside and constraint.group not in found and self._first(constraint)
            ]
            if constraints and all((self._node[pod], constraint.group) not in others for constraint in constraints):
                found.update((constraint.group, pod) for constraint in constraints)
        return found

    def come(self, pod: str) -> None:
        """The pod has its turn, and so have those that waited for it; or it waits."""
        node = self._node.get(pod)
        if pod in self.done:
            return
        if node is None:
            self._place(pod, node)
        elif not self._has_company(pod, node) or self._disturbs(pod, node):
            self.waiting.setdefault(node, []).append(pod)
        else:
            self._place(pod, node)
            waiting = self.waiting.pop(node, ())
            for other in waiting:
                self.come(other)

    def _constraints(self, pod: str) -> Sequence[TopologyConstraint]:
        return self._near.get(self._stock[pod], ()) if pod in self._stock else ()

    # --- company ------------------------------------------------------------------------------------------------
    def _has_company(self, pod: str, node: int) -> bool:
        """Whether those are on the node that the pod must be near; the company that may come earlier comes now."""
        found: dict[str, None] = {}
        for group in self._missing(pod, node):
            company = next((one for one in self._pods[node] if self._may_come_now(one, node, pod, group)), None)
            if company is None:
                return False
            found[company] = None
        for company in found:
            self._place(company, node)
        return True

    def _missing(self, pod: str, node: int) -> list[TopologyGroup]:
        """The groups that the pod must be near and that have no pod on the node."""
        return [
            constraint.group
            for constraint in self._constraints(pod)
            if not self._here[node, constraint.group] and not self._first(constraint)
        ]

    def _may_come_now(self, pod: str, node: int, follower: str, missing: TopologyGroup) -> bool:
        """Whether the pod is company that the follower misses, and no other constraint depends on its turn."""
        if pod in self.done or pod == follower or missing not in self._groups.get(pod, ()):
            return False
        item = self._stock[pod].item
        own = (one.group for one in item.relaxation.constraints)
        if any(group.kind != ANTI and not _over_hosts(group) for group in own) or self._missing(pod, node):
            return False
        if any(group in self._begun_by_own and not self._begun(group) for group in self._groups[pod]):
            return False
        counted = {group for group in item.cls.counted if group.kind == SPREAD}
        return not counted or self._spreads_admit(counted, node, follower)

    def _spreads_admit(self, counted: Set[TopologyGroup], node: int, follower: str) -> bool:
        """Whether a pod that these spreads count may come to the node before the follower, whose own admit that."""
        if any(group.key != labels.HOSTNAME for group in counted):
            return False
        rest = {self._stock[pod] for pod in self._pods[node] if pod not in self.done and pod != follower}
        stock = self._stock[follower]
        own = ((group, most - int(group in stock.counted)) for group, most in stock.limits if group in counted)
        return all(self._here[node, group] < most for group, most in own) and not any(
            group in counted for other in rest for group, _ in other.limits
        )

    def _disturbs(self, pod: str, node: int) -> bool:
        """Whether spreads over hostnames count the pod whose own pods wait, and none of those waits for it."""
        waiting = self.waiting.get(node, ())
        if not waiting:
            return False
        counted, groups = self._stock[pod].counted, self._groups.get(pod, ())
        binding = any(group in counted for other in waiting for group, _ in self._stock[other].limits)
        return binding and not any(group in groups for other in waiting for group in self._missing(other, node))

    def _begun(self, group: TopologyGroup) -> bool:
        """Whether a pod of the group is anywhere."""
        return group in self._anywhere or any(group.at_first[0].values())

    def _first(self, constraint: TopologyConstraint) -> bool:
        """Whether the pod may be the first of those that it must be near."""
        return constraint.self_match and not any(map(self._begun, constraint.together or (constraint.group,)))

    def _place(self, pod: str, node: int | None) -> None:
        self.done[pod] = None
        groups = self._groups.get(pod, ())
        self._anywhere.update(groups)
        if node is not None:
            self._here.update((node, group) for group in {*groups, *self._stock[pod].counted})
