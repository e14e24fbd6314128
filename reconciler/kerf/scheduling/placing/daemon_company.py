"""Topology constraints of pods against the DaemonSet pods that each new node of a NodePool carries.

These are on the node before any pod is bound there. So they satisfy affinity, forbid anti-affinity in both directions,
and take their part of a hostname spread. Of a DaemonSet that runs on some of the instance types only, nodes for pods
get the types that suit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from kerf.pods.daemon_overhead import Daemon
from kerf.pods.topology_constraints import AFFINITY, ANTI, SPREAD, TopologyConstraint
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.placing.classes import PodClass, Relaxation
from kerf.scheduling.topology.admits import bounds
from kerf_api import labels
from kerf_api.requirements import EMPTY, IN, Requirements, requirement


class BesideDaemons(NamedTuple):
    """The constraints that remain for pods on new nodes: `hosts` those of hostnames, `served` those that DaemonSet pods
    satisfy on each node. Of each of `company` one DaemonSet must have its pods there."""

    hosts: tuple[TopologyConstraint, ...]
    served: frozenset[TopologyConstraint] = frozenset()
    company: tuple[tuple[Daemon, ...], ...] = ()


def beside_daemons(
    template: NodeClaimTemplate, served: Requirements, cls: PodClass, relaxation: Relaxation
) -> BesideDaemons | None:
    """The constraints of a class on new nodes of a NodePool; None when DaemonSet pods there keep its pods away.

    Args:
        served: the NodePool's requirements narrowed to the nodes in question.
    """
    if not cls.beside_daemons:
        return BesideDaemons(relaxation.hosts)
    if keeping_away(template, served, cls, relaxation):
        return None
    hosts: list[TopologyConstraint] = []
    satisfied: dict[TopologyConstraint, tuple[Daemon, ...]] = {}
    for constraint in relaxation.constraints:
        runs = [template.carries(daemon, served) for daemon in constraint.group.daemons]
        if constraint.group.kind == AFFINITY and any(everywhere for _, everywhere in runs):
            pairs = zip(constraint.group.daemons, runs, strict=True)
            satisfied[constraint] = tuple(daemon for daemon, (_, everywhere) in pairs if everywhere)
        elif constraint.key == labels.HOSTNAME:
            here = sum(somewhere for somewhere, _ in runs) if constraint.group.kind == SPREAD else 0
            left = _beside(constraint, here)
            if constraint.group.kind == SPREAD and not bounds(left).admits(0):
                return None
            hosts.append(left)
    company = tuple(satisfied.values()) if cls.keep_company_away else ()
    return BesideDaemons(tuple(hosts), frozenset(satisfied), company)


def suited(template: NodeClaimTemplate, served: Requirements, cls: PodClass, relaxation: Relaxation) -> Requirements:
    """The instance types whose nodes suit the pods, where a DaemonSet runs on some types only.

    Those without a DaemonSet that keeps the pods off its hosts (in a wider domain other nodes may carry it), or that a
    spread over hostnames counts where it leaves no place for them; and those with one that they must be beside, if no
    pod of their affinity is there yet, or it is over hostnames. Nothing when all types suit, or none does.
    """
    if not cls.beside_daemons:
        return EMPTY
    every = template.type_names(served)
    types = every
    for daemon in _apart(cls, relaxation, over_hosts=True):
        if template.carries(daemon, served) == (True, False):
            types = types - template.carriers(daemon, served)
    for constraint in (one for one in relaxation.spreads if one.key == labels.HOSTNAME):
        found = {daemon: template.carries(daemon, served) for daemon in constraint.group.daemons}
        if not bounds(_beside(constraint, sum(somewhere for somewhere, _ in found.values()))).admits(0):
            for daemon in (one for one, runs in found.items() if runs == (True, False)):
                types = types - template.carriers(daemon, served)
    for constraint in relaxation.constraints:
        wanted = constraint.group.kind == AFFINITY and (
            constraint.key == labels.HOSTNAME or not any(constraint.group.counts.values())
        )
        runs = [template.carries(daemon, served) for daemon in constraint.group.daemons] if wanted else []
        if any(somewhere for somewhere, _ in runs) and not any(everywhere for _, everywhere in runs):
            types = types & {name for daemon in constraint.group.daemons for name in template.carriers(daemon, served)}
    if not types or types == every:
        return EMPTY
    return Requirements((requirement(labels.INSTANCE_TYPE, IN, sorted(types)),))


def _beside(constraint: TopologyConstraint, daemons: int) -> TopologyConstraint:
    """A spread over hostnames on a new node with so many DaemonSet pods that it counts."""
    return (
        replace(constraint, max_skew=constraint.max_skew - daemons + constraint.group.on_new_hosts)
        if daemons
        else constraint
    )


def far_from_domain(template: NodeClaimTemplate, served: Requirements, cls: PodClass, relaxation: Relaxation) -> bool:
    """Whether anti-affinity over more than hosts keeps pods of a class out of a domain where a node of the NodePool may
    carry the DaemonSet pods in question, though not the nodes that `suited` chooses.

    Args:
        served: the NodePool's requirements narrowed to the domain.
    """
    if not cls.beside_daemons:
        return False
    return any(template.carries(daemon, served)[0] for daemon in _apart(cls, relaxation, over_hosts=False))


def _apart(cls: PodClass, relaxation: Relaxation, *, over_hosts: bool | None = None) -> set[Daemon]:
    """The DaemonSets whose pods anti-affinity keeps the pods away from: theirs or that of the DaemonSets' pods.

    Args:
        over_hosts: only anti-affinity over hostnames, or only that over other keys; by default any.
    """
    own = [constraint.group for constraint in relaxation.constraints if constraint.group.kind == ANTI]
    others = list(cls.keep_away)
    if over_hosts is not None:
        own, others = ([g for g in some if (g.key == labels.HOSTNAME) is over_hosts] for some in (own, others))
    return {d for group in own for d in group.daemons} | {d for group in others for d in group.owner_daemons}


def keeping_away(
    template: NodeClaimTemplate, served: Requirements, cls: PodClass, relaxation: Relaxation
) -> tuple[str, ...]:
    """The keys of DaemonSets on new nodes that anti-affinity, of the pods or of theirs, keeps the pods away from."""
    found = (daemon.key for daemon in _apart(cls, relaxation) if template.carries(daemon, served)[0])
    return tuple(sorted(found))
