"""Planned hosts as the last pods of a pass find them: with the pods that the nodes are made for.

A spread over hostnames is measured against a host without pods as long as a node is planned or can be made. Pods that
have no place after all others, and for which no node can be made, come when the planned hosts have their pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from kerf.pods.topology_constraints import TopologyGroup
from kerf.scheduling.packing.finalize import Packed
from kerf.scheduling.packing.planned_domains import NEW_HOST, carried_daemons, labelled
from kerf.scheduling.placing.assign import Assignment
from kerf.scheduling.placing.planned_counting import counting
from kerf.scheduling.placing.second_tries import on_existing_nodes
from kerf_api import labels

#: Planned nodes that are looked through in one step.
_NODES_A_STEP: Final = 16


def beside_filled_hosts(assignment: Assignment, packed: Sequence[Packed]) -> None:
    """Place pods that have no place on existing nodes, where their spreads over hostnames admit them after all others.

    Args:
        packed: the planned nodes. All their pods come first.
    """
    left = {cls.number: cls for cls, _ in assignment.left.values()}.values() if packed else ()
    spreads = [one for cls in left for row in cls.relaxations for one in row.spreads if one.key == labels.HOSTNAME]
    if not spreads:
        return
    assignment.work.charge(len(packed) // _NODES_A_STEP)
    hosts = _filled({constraint.group for constraint in spreads}, packed)
    wanted = max(1, *(constraint.min_domains for constraint in spreads))
    before = [(group, group.on_new_hosts, group.counts.pop(NEW_HOST, 0)) for group in hosts]
    for group, numbers in hosts.items():
        group.on_new_hosts = min(numbers)
        group.counts.update((f"{NEW_HOST}{place}", min(numbers)) for place in range(min(len(numbers), wanted)))
    on_existing_nodes(assignment, hosts.keys())
    for group, on_new_hosts, number in before:
        group.on_new_hosts = on_new_hosts
        for place in range(min(len(hosts[group]), wanted)):
            del group.counts[f"{NEW_HOST}{place}"]
        if number:
            group.counts[NEW_HOST] = number


def _filled(groups: Iterable[TopologyGroup], packed: Sequence[Packed]) -> dict[TopologyGroup, list[int]]:
    """The pods on each planned host that a spread counts; only of spreads that count some on each of their hosts."""
    found: dict[TopologyGroup, list[int]] = {group: [] for group in groups}
    for node in packed:
        here, planned = Counter[TopologyGroup](), labelled(node.template, node.requirements)
        for stock, number in node.content:
            here.update(dict.fromkeys(stock.counted, number))
        for group in list(found):
            nodes, number = counting(group, node.template, planned), here[group] + carried_daemons(group, node)
            if nodes.nodes and nodes.certain and number:
                found[group].append(number)
            elif nodes.nodes:
                del found[group]
        if not found:
            break
    return {group: numbers for group, numbers in found.items() if numbers}
