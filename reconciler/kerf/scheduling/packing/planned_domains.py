"""What the planned nodes of a pass bring to the spreads of all its pods: domains, and pods of DaemonSets.

A spread is measured over every node that it counts, so a node that is planned for other pods may bring a domain without
any pod of the spread, and pods of DaemonSets that the spread counts. Both are known only when all nodes are planned:
then the pass is planned again with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, NamedTuple

from kerf.pods.topology_constraints import SPREAD, TopologyConstraint, TopologyGroup
from kerf.scheduling.answers.nodeclaims import claim_labels
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.packing.finalize import Packed
from kerf.scheduling.placing.classes import PodClass
from kerf.scheduling.placing.planned_counting import counted_domains, counting
from kerf.scheduling.placing.routes import pin_requirements
from kerf.scheduling.topology import admits
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement

Brought = Callable[[TopologyGroup], frozenset[str]]
#: Stands for the hostname of a planned node.
_HOST = frozenset(("",))
#: Stands for hosts that are not there yet.
NEW_HOST: Final = "\0new"


def foresee(
    groups: Iterable[TopologyGroup], classes: Sequence[PodClass], templates: Sequence[NodeClaimTemplate]
) -> None:
    """Count pods of DaemonSets on the nodes that can be made for the pods of each spread over hostnames."""
    for group in groups:
        if group.kind == SPREAD and group.key == labels.HOSTNAME and group.daemons:
            usable = [one for one in templates if any(_usable(one, cls, group) for cls in classes)]
            _expect(group, min((_daemons(group, one, one.requirements) for one in usable), default=0))


def _usable(template: NodeClaimTemplate, cls: PodClass, group: TopologyGroup) -> bool:
    """Whether the NodePool can make nodes for the pods of a class that the spread binds."""
    binding = (
        relaxation.demand
        for relaxation in cls.relaxations
        if any(constraint.group is group for constraint in relaxation.spreads)
    )
    return any(one.tolerates(template.taints) and template.serve(one.requirements) is not None for one in binding)


def _daemons(group: TopologyGroup, template: NodeClaimTemplate, served: Requirements) -> int:
    return sum(template.carries(daemon, served)[1] for daemon in group.daemons)


def _expect(group: TopologyGroup, new: int) -> None:
    """So many pods of DaemonSets are on each new host."""
    there = (group.counts.get(host, 0) for host in group.standing())
    group.on_new_hosts = min([new, *there])
    if group.on_new_hosts:
        group.counts[NEW_HOST] = new


class Overlooked(NamedTuple):
    """Whether a plan was made without `domains` that matter, or with another number of DaemonSet pods (`daemons`)."""

    domains: bool
    daemons: bool


def overlooked(classes: Iterable[PodClass], packed: Sequence[Packed]) -> Overlooked:
    """Whether a spread may not hold with the domains and the DaemonSet pods of all planned nodes.

    Its group has them from then on.
    """
    named = _all_labelled(packed)
    nodes = dict.fromkeys((node.template, planned) for node, planned in zip(packed, named, strict=True))
    spread = [(cls, constraint) for cls in classes if cls.domains for constraint in _hard(cls)]
    perhaps = _brought(nodes)
    doubtful = [(cls, constraint) for cls, constraint in spread if _breaks(cls, constraint, perhaps)]
    brought = _brought(_listing(packed, named)) if doubtful else perhaps
    broken = {constraint.group for cls, constraint in doubtful if _breaks(cls, constraint, brought)}
    new = [group for group in broken if not brought(group) <= group.brought]
    for group in new:
        group.brought |= brought(group)
    emptier = [group for group in broken if group.key == labels.HOSTNAME and _emptier(group, nodes)]
    over_daemons = {group for cls, _ in spread for group in cls.daemon_spreads}
    other = [group for group in over_daemons if _arrive(group, packed, named)]
    return Overlooked(bool(new or emptier), bool(other))


def outdated(classes: Iterable[PodClass], packed: Sequence[Packed]) -> dict[TopologyGroup, frozenset[str]]:
    """The spreads of these classes that count on domains which no planned node brings, with those that one does bring.

    An earlier plan of the pass had a node for each.
    """
    groups = dict.fromkeys(constraint.group for cls in classes for row in cls.relaxations for constraint in row.spreads)
    counted = [group for group in groups if group.brought]
    if not counted:
        return {}
    brought = brought_by(packed)
    return {group: brought(group) for group in counted if not group.brought <= brought(group) | group.standing()}


def settled(classes: Iterable[PodClass], packed: Sequence[Packed]) -> list[TopologyGroup]:
    """The spreads of these classes that were in doubt about pods on nodes with open labels, which these nodes are not.

    From then on they count the pods on such nodes, or do not.
    """
    groups = dict.fromkeys(constraint.group for cls in classes for row in cls.relaxations for constraint in row.spreads)
    doubtful = [group for group in groups if group.unsure]
    named = _all_labelled(packed) if doubtful else ()
    return [group for group in doubtful if _settle(group, packed, named)]


def _settle(group: TopologyGroup, packed: Sequence[Packed], named: Sequence[Requirements]) -> bool:
    unsure, uncounted = Counter[str](), Counter[str]()
    for node, planned in zip(packed, named, strict=True):
        now = counting(group, node.template, planned)
        for stock, number in node.content:
            domain = dict(stock.item.pins).get(group.key)
            if domain is None or group not in stock.item.cls.counted:
                continue
            if not counting(group, node.template, stock.served).certain:
                unsure[domain] += 0 if now.certain else number
                uncounted[domain] += 0 if now.nodes else number
    if +unsure == +Counter(group.unsure):
        return False
    group.unsure = dict(+unsure)
    for domain, number in uncounted.items():
        group.count(domain, -number)
    return True


def count_alike(groups: Iterable[TopologyGroup], before: Sequence[Packed], after: Sequence[Packed]) -> bool:
    """Whether the spreads count pods on planned nodes as they did `before` more pods came to these nodes."""
    changed = [(one, other) for one, other in zip(before, after, strict=False) if one is not other]
    return all(_counted(group, one) == _counted(group, other) for group in groups for one, other in changed)


def _counted(group: TopologyGroup, node: Packed) -> tuple[bool, bool]:
    found = counting(group, node.template, labelled(node.template, node.requirements))
    return bool(found.nodes), found.certain


def brought_by(packed: Sequence[Packed]) -> Brought:
    """The domains that planned nodes bring to a spread, as one of the instance types that they list."""
    return _brought(_listing(packed, _all_labelled(packed)))


def _brought(nodes: Collection[tuple[NodeClaimTemplate, Requirements]]) -> Brought:
    """The domains that planned nodes bring to a spread; those that are alike have the same ones."""
    known: dict[object, frozenset[str]] = {}

    def brought(group: TopologyGroup) -> frozenset[str]:
        found = known.get(group.alike)
        if found is None:
            found = known[group.alike] = _domains_of(nodes, group)
        return found

    return brought


def _domains_of(nodes: Collection[tuple[NodeClaimTemplate, Requirements]], group: TopologyGroup) -> frozenset[str]:
    if group.key == labels.HOSTNAME:
        return _HOST if any(counting(group, *node).nodes for node in nodes) else frozenset()
    return frozenset[str]().union(*(counted_domains(group, *node) for node in nodes))


def _listing(
    packed: Sequence[Packed], named: Sequence[Requirements]
) -> Collection[tuple[NodeClaimTemplate, Requirements]]:
    """The planned nodes with the instance types that they list: not all that their requirements allow."""
    found: dict[tuple[NodeClaimTemplate, Requirements, bytes], Requirements] = {}
    for node, planned in zip(packed, named, strict=True):
        key = (node.template, planned, node.types.tobytes())
        if key not in found:
            found[key] = _listed(node, planned)
    return dict.fromkeys((template, listed) for (template, _, _), listed in found.items())


def _listed(node: Packed, planned: Requirements) -> Requirements:
    if len(node.types) == len(node.template.shape(planned).types):
        return planned
    names = sorted({node.template.table.names[int(place)] for place in node.types})
    types = Requirements((requirement(labels.INSTANCE_TYPE, IN, names),))
    return node.template.join(planned, types) or planned


def _all_labelled(packed: Sequence[Packed]) -> list[Requirements]:
    """The requirements of each planned node as of `labelled`; many nodes have the same ones."""
    kinds = {(id(node.template), id(node.requirements)): node for node in packed}
    known = {kind: labelled(node.template, node.requirements) for kind, node in kinds.items()}
    return [known[id(node.template), id(node.requirements)] for node in packed]


def labelled(template: NodeClaimTemplate, planned: Requirements) -> Requirements:
    """The requirements of a planned node with one value for each label to which its NodeClaim gives one.

    Labels that instance types or offerings have keep all their values.
    """
    several = [key for key, row in planned.items() if key not in labels.WELL_KNOWN and len(row.values) > 1]
    if not several:
        return planned
    chosen = claim_labels(template.pool, planned)
    for key in (key for key in several if key in chosen):
        joined = template.join(planned, pin_requirements(((key, chosen[key]),)))
        if joined is not None and len(template.shape(joined).types) == len(template.shape(planned).types):
            planned = joined
    return planned


def _emptier(group: TopologyGroup, nodes: Iterable[tuple[NodeClaimTemplate, Requirements]]) -> bool:
    """Whether a planned node has fewer pods of DaemonSets than each new host was counted with. Count so many then."""
    new = min((_daemons(group, *node) for node in nodes if counting(group, *node).nodes), default=group.on_new_hosts)
    if new >= group.on_new_hosts:
        return False
    group.on_new_hosts = new
    group.at_first[0].pop(NEW_HOST)
    if new:
        group.at_first[0][NEW_HOST] = new
    return True


def _arrive(group: TopologyGroup, packed: Sequence[Packed], named: Sequence[Requirements]) -> bool:
    """Count the DaemonSet pods of the planned nodes, by what their labels will be; whether the plan was made with other
    numbers."""
    found = Counter[str]()
    for node, planned in zip(packed, named, strict=True):
        domain, number = _carried(group, node, planned)
        if domain is not None:
            found[domain] += number
    differs = +found != +Counter(group.arriving)
    group.arriving = dict(found)
    return differs


def carried(group: TopologyGroup, node: Packed) -> tuple[str | None, int]:
    """The domain of a planned node in a spread, and the DaemonSet pods that the spread counts there; None where it
    counts none, or the domain is open."""
    return _carried(group, node, labelled(node.template, node.requirements))


def _carried(group: TopologyGroup, node: Packed, planned: Requirements) -> tuple[str | None, int]:
    domains = node.template.open_domains(group.key, planned)
    if len(domains) != 1 or not counting(group, node.template, planned).nodes:
        return None, 0
    return domains[0], carried_daemons(group, node)


def carried_daemons(group: TopologyGroup, node: Packed) -> int:
    """The DaemonSet pods that a spread selects and that a planned node carries, whichever of its types it becomes."""
    return sum(bool(node.template.carrying(d, node.types).all()) for d in group.daemons)


def _hard(cls: PodClass) -> list[TopologyConstraint]:
    """The spreads that hold whatever preferences were given up."""
    return [constraint for constraint in cls.relaxations[-1].spreads if constraint.group in cls.domains]


def _breaks(cls: PodClass, constraint: TopologyConstraint, brought: Brought) -> bool:
    """Whether a domain that got pods has too many, or hosts that will not be the only ones were counted.

    A spread that does not count its own pods may have them in any domain.
    A domain that the spread did not know may have been empty when the kube-scheduler comes to the pods.
    """
    group, measured = constraint.group, cls.measured.get(constraint.group, cls.domains[constraint.group])
    if group.key == labels.HOSTNAME:
        return bool(measured) and bool(brought(group))
    if brought(group) <= measured:
        return False
    before, grown = group.at_first[0], group.counts.items()
    filled = [number for domain, number in grown if number > before.get(domain, 0) or not constraint.self_match]
    if not filled:
        return False
    limits = admits.current(constraint, measured | brought(group))
    empty = admits.bounds(constraint, min(before.get(domain, 0) for domain in brought(group) - measured))
    return max(filled) - int(constraint.self_match) > min(limits.high, empty.high)
