"""A snapshot as the solver reads it: columns, type tables, NodePools in their order, targets, counts of bound pods.

What does not depend on the pods of one solve is worked out once (`SolveContext`) and serves all solves of one snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kerf.model import backoff
from kerf.model.boundaries import MALFORMED, broken
from kerf.model.claims import check_pool
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Memory, Step, Turn
from kerf.model.plan import INTERNAL_ERROR, Reason
from kerf.model.snapshot import Snapshot, StateNode
from kerf.pods.daemon_overhead import Daemon, daemons_of
from kerf.pods.default_constraints import DefaultSpread
from kerf.pods.sole_users import SoleUsers
from kerf.scheduling.answers.solution import PodRefusal
from kerf.scheduling.facts import bound_pods
from kerf.scheduling.facts.joining import NOT_REGISTERED, failing_pools, members_left
from kerf.scheduling.facts.nodes import sites, unread_sites
from kerf.scheduling.nodes.arrivals import Arrivals
from kerf.scheduling.nodes.existing import NodeReader, tried
from kerf.scheduling.nodes.table import ExistingNodes
from kerf.scheduling.offerings.instance_types import Columns, Tables, TypeTable
from kerf.scheduling.offerings.learned import labels_missing_for, taints_for
from kerf.scheduling.offerings.nodepools import NodeClaimTemplate
from kerf.scheduling.offerings.stock import out_of_stock
from kerf.scheduling.topology.counts import Tallies
from kerf.scheduling.work import Work
from kerf_api import labels
from kerf_api.requirements import Requirements
from kerf_api.resources import Resources, total
from kerf_api.v1 import conditions
from kerf_api.v1.meta import ObjectMeta
from kerf_api.v1.nodepool import NodePool

NO_TYPES = "NoCompatibleInstanceTypes"
BACK_OFF = "BackOff"


@dataclass(frozen=True, slots=True, eq=False)
class Usage:
    """What a NodePool's nodes that are not being removed count against its limits: each, and all together."""

    each: Mapping[str, Resources] = field(default_factory=dict)
    whole: Resources = field(default_factory=Resources)

    def without(self, exclude: Iterable[str]) -> Resources:
        rest = self.whole
        for key in exclude:
            rest = rest - self.each.get(key, {})
        return rest


@dataclass(frozen=True, slots=True, eq=False)
class SolveContext:
    """What every solve of a snapshot shares.

    `spread` gives pods the default spread constraints; `terminating` are the pods on nodes that terminate. `pools` are
    the usable NodePools, heaviest first (ties: the later name first), with their usage; `problems` say why others are
    not usable.
    """

    columns: Columns
    tallies: Tallies
    reader: NodeReader
    places: ExistingNodes
    spread: DefaultSpread
    pools: tuple[tuple[NodeClaimTemplate, Usage], ...]
    problems: Mapping[str, PodRefusal]
    daemons: tuple[Daemon, ...]
    sole_users: SoleUsers
    terminating: tuple[Pod, ...]
    #: Nodes that a bug keeps from being read, by key: no pod is placed there.
    unread: Mapping[str, Reason] = field(default_factory=dict)

    def beside(self, new: Mapping[str, StateNode]) -> SolveContext:
        """The same with nodes more, which are empty."""
        reader = self.reader.beside(new)
        targets = sorted((*self.places.targets, *reader.targets(new)), key=tried)
        tallies = self.tallies.beside([state.node for state in new.values() if state.node is not None])
        return replace(self, reader=reader, places=ExistingNodes.of(targets, self.columns), tallies=tallies)

    def filled(self, arriving: Mapping[str, Iterable[Pod]]) -> SolveContext:
        """The same with these pods on the places of these keys, as far as places know them: what they leave free."""
        places = self.places
        known = ((places.at[key], there) for key, there in sorted(arriving.items()) if key in places.at)
        now = (self.reader.filled(places.targets[place], there) for place, there in known)
        return replace(self, places=places.without((), now))

    def with_pool(self, pool: NodePool) -> SolveContext:
        """The same after an edit of one of the usable pools; its class and its nodes are what they were."""
        pairs = ((_edited(t, pool, self.daemons) if t.name == pool.name else t, usage) for t, usage in self.pools)
        return replace(self, pools=tuple(pairs))

    def without_pools(self, names: Collection[str]) -> SolveContext:
        """The same where these NodePools make no nodes."""
        return replace(self, pools=tuple(pair for pair in self.pools if pair[0].name not in names))

    def templates(self, exclude: frozenset[str], work: Work | None = None) -> tuple[NodeClaimTemplate, ...]:
        """The NodePools for one solve; nodes in `exclude` do not count against limits."""
        return tuple(template.within(usage.without(exclude), work) for template, usage in self.pools)

    def places_for(self, moving: Iterable[Pod], exclude: frozenset[str]) -> ExistingNodes:
        """The places for one solve: without `exclude`, and without what the `moving` pods take where they are now."""
        names, keys = {pod.spec.node_name for pod in moving}, frozenset(pod.key for pod in moving)
        left = [self.places.targets[self.places.at_node[name]] for name in sorted(names & self.places.at_node.keys())]
        anew = (self.reader.without(t.key, keys) for t in left if t.key not in exclude)
        return self.places.without(exclude, (target for target in anew if target is not None))


def context_of(snapshot: Snapshot, turn: Turn | None = None) -> SolveContext:
    """Read the snapshot's catalogues, nodes, pods and daemon sets; with the turn of a memory only what has changed."""
    columns = _columns(snapshot)
    turn = turn or Memory().turn(snapshot)
    found, residents = sites(turn)
    counted = bound_pods.take(snapshot, residents)
    tables = Tables(snapshot, columns)
    ignore_devices = snapshot.settings.ignore_dra_requests
    daemons = daemons_of(snapshot.daemon_sets, counted.newest_daemon_pod, ignore_devices=ignore_devices)
    there = [(s, s.node) for s in snapshot.state_nodes.values() if s.node is not None]
    coming = {node.name: s.taints for s, node in there if not s.initialized}
    tallies = Tallies(counted, [node for s, node in there if not s.deleting], coming, daemons)
    arrivals = Arrivals(columns, daemons, tallies)
    reader = NodeReader(snapshot, columns, tables, daemons, found, residents, arrivals)
    pools, problems = _pools(snapshot, turn, columns, tables, daemons, failing_pools(turn))
    places = ExistingNodes.of(reader.targets(), columns)
    unread = {**unread_sites(turn), **reader.unread}
    bugs = {key: reason for key, reason in sorted(unread.items()) if reason.code == INTERNAL_ERROR}
    return SolveContext(
        columns,
        tallies,
        reader,
        places,
        DefaultSpread(snapshot),
        pools,
        problems,
        daemons,
        SoleUsers(snapshot),
        tuple(pod for _, pod in counted.terminating),
        bugs,
    )


def restocked(context: SolveContext, snapshot: Snapshot, turn: Turn) -> SolveContext:
    """The same for a snapshot that differs in the offerings that can be had, or in NodePools, from that of the turn."""
    columns = context.columns
    tables = Tables(snapshot, columns)
    pools, problems = _pools(snapshot, turn, columns, tables, context.daemons, failing_pools(turn))
    return replace(context, pools=pools, problems=problems)


def _columns(snapshot: Snapshot) -> Columns:
    names = {"cpu", "memory", "pods"}
    for catalogue in (*snapshot.catalogues.values(), *snapshot.overlaid.values()):
        names.update(*(t.allocatable for t in catalogue))
        names.update(*(o.capacity for t in catalogue for o in t.offerings if o.capacity is not None))
    for state in snapshot.state_nodes.values():
        for source in (state.node, state.claim):
            names.update(source.status.allocatable if source is not None else ())
    return Columns(sorted(names))


def ready(pool: NodePool) -> bool:
    """Whether nodes may be made from the pool: it is Ready, and not being removed."""
    return not pool.metadata.deleting and any(c.type == "Ready" and c.status == "True" for c in pool.status.conditions)


def usable(pool: NodePool) -> bool:
    """Whether pods may have nodes made from it: a static one has its number, and no more."""
    return ready(pool) and not pool.static


def _required(view: Snapshot, name: str) -> tuple[Requirements, None]:
    return NodePool(metadata=ObjectMeta(name=name), spec=view.pool_specs[name]).requirements(), None


#: The requirements of NodePools. Lists of thousands of values are read when a spec changes.
REQUIREMENTS: Step[Snapshot, Requirements] = Step(
    "requirements of NodePools", "pool_specs", _required, speaks=lambda requirements: False
)


def _pools(
    snapshot: Snapshot,
    turn: Turn,
    columns: Columns,
    tables: Tables,
    daemons: Sequence[Daemon],
    failing: Collection[str],
) -> tuple[tuple[tuple[NodeClaimTemplate, Usage], ...], dict[str, PodRefusal]]:
    """A pool with a malformed requirement or limit, or with a class at fault, loses only itself."""
    found: list[tuple[NodeClaimTemplate, Usage]] = []
    problems: dict[str, PodRefusal] = {}
    for name in sorted(snapshot.node_pools, reverse=True):
        try:
            made = _pool(snapshot, turn, columns, tables, daemons, name, failing=name in failing)
        except Exception as error:
            made = _invalid(error)
        if isinstance(made, PodRefusal):
            problems[name] = made
        elif made is not None:
            found.append(made)
    return tuple(sorted(found, key=lambda pair: -pair[0].pool.spec.weight)), problems


def _pool(
    snapshot: Snapshot,
    turn: Turn,
    columns: Columns,
    tables: Tables,
    daemons: Sequence[Daemon],
    name: str,
    *,
    failing: bool,
) -> tuple[NodeClaimTemplate, Usage] | PodRefusal | None:
    """What the pool gives nodes from; or why none are to be had of it, or (None) are to be made."""
    pool = snapshot.node_pools[name]
    if pool.metadata.unreadable:
        return PodRefusal(MALFORMED, f"the NodePool cannot be read: {pool.metadata.unreadable}")
    if not usable(pool):
        return None
    table = tables.of(name, pool.class_name) or TypeTable((), columns)
    if isinstance(table, Exception):
        return _invalid(table)
    check_pool(pool)
    usage = _usage(snapshot, pool, table) if pool.limits is not None else Usage()
    known = turn.snapshot.pool_specs.get(name) is pool.spec  # a trial may have another spec
    required = turn.one(REQUIREMENTS, turn.noted, name) if known else pool.requirements()
    template = NodeClaimTemplate(
        pool,
        required.without(*labels_missing_for(snapshot, pool)),
        table,
        daemons,
        strict_min_values=snapshot.settings.min_values_policy == "Strict",
        learned_taints=taints_for(snapshot, pool),
    )
    problem = held(pool, snapshot) or (not_joining(pool, snapshot) if failing else None) or _emptiness(template)
    return problem if problem is not None else (template, usage)


def _edited(template: NodeClaimTemplate, pool: NodePool, daemons: Sequence[Daemon]) -> NodeClaimTemplate:
    return NodeClaimTemplate(
        pool,
        pool.requirements(),
        template.table,
        daemons,
        strict_min_values=template.strict_min_values,
        learned_taints=template.learned_taints,
    )


def set_aside(snapshot: Snapshot) -> dict[str, str]:
    """Why NodePools that may be sound are not asked for nodes, by name."""
    return {name: _why_aside(pool) for name, pool in sorted(snapshot.node_pools.items()) if not usable(pool)}


def _why_aside(pool: NodePool) -> str:
    if pool.metadata.deleting:
        return "is being deleted"
    if pool.static:
        return "is static: it has a fixed number of nodes, independent of pending pods"
    found = [c for c in pool.status.conditions if c.type == "Ready"]
    said = [text for c in found for text in (c.reason, c.message) if text]
    first = conditions.first_broken(pool.status.conditions, conditions.NODEPOOL_DEPENDENTS)
    if first is not None:  # Ready only lists the types of such conditions
        return f"is not ready: {conditions.words(first)}"
    return f"is not ready{': ' if said else ' yet'}{', '.join(said)}"


def _invalid(error: Exception) -> PodRefusal:
    reason = broken(error)
    return PodRefusal("InvalidNodePool" if reason.code == MALFORMED else reason.code, reason.text)


def held(pool: NodePool, snapshot: Snapshot) -> PodRefusal | None:
    """Why no node may be made from the pool for a while: its latest launches failed, or its claims were refused."""
    until = snapshot.not_before.get(f"nodepool/{pool.name}")
    own = backoff.until(pool, snapshot.now)
    end = max((at for at in (until, own) if at is not None and at > snapshot.now), default=None)
    return PodRefusal(BACK_OFF, f"left alone until {end:%H:%M:%S} UTC after failures") if end is not None else None


def not_joining(pool: NodePool, snapshot: Snapshot) -> PodRefusal | None:
    """Why no node may be made from the pool until one of its nodes joins."""
    if members_left(snapshot, pool) != 0:
        return None
    text = "the latest nodes of the NodePool have not joined: Kerf launches one at a time until one does"
    return PodRefusal(NOT_REGISTERED, text)


def _emptiness(template: NodeClaimTemplate) -> PodRefusal | None:
    text = "NodePool requirements filtered out all compatible available instance types"
    types = template.offered()
    if not len(types):
        table, own = template.table, template.requirements
        gone = out_of_stock(table, table.masks(own)[:, None] & table.market_mask(own)[None, :])
        return PodRefusal(NO_TYPES, f"{text} ({gone})" if gone else text)
    if template.strict_min_values and template.shortfall(types):
        return PodRefusal(NO_TYPES, f"{text} due to minValues incompatibility")
    return None


def _usage(snapshot: Snapshot, pool: NodePool, table: TypeTable) -> Usage:
    """The capacity of the pool's nodes that are not being removed, and `nodes`."""
    each = {
        key: _capacity(state, table)
        for key, state in sorted(snapshot.state_nodes.items())
        if state.pool_name == pool.name and not state.deleting
    }
    return Usage(each, total(each.values()))


def _capacity(state: StateNode, table: TypeTable) -> Resources:
    """A node's capacity; of a claim that has not been launched, the largest that it may get."""
    known: Sequence[Mapping[str, int]] = [state.capacity]
    if not state.capacity and state.claim is not None:
        allowed = state.claim.requirements().allowed(labels.INSTANCE_TYPE)
        known = [table.types[int(i)].capacity for i in np.flatnonzero(table.mask(allowed))]
    largest = Resources()
    for capacity in known:
        largest = largest.maximum(capacity)
    return Resources({**largest, "nodes": 1})
