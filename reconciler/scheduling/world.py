"""A snapshot as the solver reads it: columns, type tables, templates in their order, targets, the census.

What does not depend on the pods is built once (`Ground`) and serves many solves of one snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from api import labels
from api.resources import Resources, total
from api.v1.nodepool import NodePool
from reconciler.model.snapshot import Snapshot, StateNode
from reconciler.scheduling import census
from reconciler.scheduling.census import Census
from reconciler.scheduling.daemons import Daemon, daemons_of
from reconciler.scheduling.solution import PodRefusal
from reconciler.scheduling.template import Template
from reconciler.scheduling.types import Columns, TypeTable

NO_TYPES = "NoCompatibleInstanceTypes"


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """What every solve of a snapshot shares."""

    columns: Columns
    tables: Mapping[str, TypeTable]
    census: Census
    daemons: tuple[Daemon, ...]


def survey(snapshot: Snapshot) -> Ground:
    """Read the snapshot's catalogues, pods and daemon sets. O(types + pods)."""
    names = {"cpu", "memory", "pods"}
    for catalogue in snapshot.catalogues.values():
        names.update(*(t.allocatable for t in catalogue))
    for state in snapshot.state_nodes.values():
        for source in (state.node, state.claim):
            names.update(source.status.allocatable if source is not None else ())
    columns = Columns(sorted(names))
    counted = census.take(snapshot)
    tables = {name: TypeTable(snapshot.catalogues[name], columns, snapshot) for name in sorted(snapshot.catalogues)}
    return Ground(columns, tables, counted, daemons_of(snapshot.daemon_sets, counted.newest_daemon_pod))


def usable(pool: NodePool) -> bool:
    """Ready, not going, and not static."""
    ready = any(c.type == "Ready" and c.status == "True" for c in pool.status.conditions)
    return ready and not pool.metadata.deleting and not pool.static


def templates_of(
    snapshot: Snapshot, ground: Ground, exclude: frozenset[str] = frozenset()
) -> tuple[tuple[Template, ...], dict[str, PodRefusal]]:
    """The usable NodePools, heaviest first (ties: the later name first), and why others are not usable.

    A pool with a malformed requirement or limit loses only itself. Nodes in `exclude` do not count against limits.
    """
    found: list[Template] = []
    problems: dict[str, PodRefusal] = {}
    for name in sorted(snapshot.node_pools, reverse=True):
        pool = snapshot.node_pools[name]
        if not usable(pool):
            continue
        try:
            template = _template(snapshot, ground, pool, exclude)
        except ValueError as error:
            problems[name] = PodRefusal("InvalidNodePool", str(error))
            continue
        problem = _emptiness(template)
        if problem is None:
            found.append(template)
        else:
            problems[name] = problem
    return tuple(sorted(found, key=lambda t: -t.pool.spec.weight)), problems


def _template(snapshot: Snapshot, ground: Ground, pool: NodePool, exclude: frozenset[str]) -> Template:
    table = ground.tables.get(pool.class_name)
    if table is None:
        table = TypeTable((), ground.columns, snapshot)
    used = _usage(snapshot, pool, table, exclude) if pool.limits is not None else Resources()
    strict = snapshot.settings.min_values_policy == "Strict"
    return Template(pool, pool.requirements(), table, ground.daemons, used, strict_min_values=strict)


def _emptiness(template: Template) -> PodRefusal | None:
    text = "NodePool requirements filtered out all compatible available instance types"
    shape = template.shape(template.requirements)
    if not len(shape.types):
        return PodRefusal(NO_TYPES, text)
    if template.strict_min_values and template.shortfall(shape.types):
        return PodRefusal(NO_TYPES, f"{text} due to minValues incompatibility")
    return None


def _usage(snapshot: Snapshot, pool: NodePool, table: TypeTable, exclude: frozenset[str]) -> Resources:
    """The capacity of the pool's nodes that are not going, and `nodes`."""
    members = [
        state
        for key, state in sorted(snapshot.state_nodes.items())
        if state.pool_name == pool.name and key not in exclude and not state.deleting
    ]
    return total(_capacity(state, table) for state in members)


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
