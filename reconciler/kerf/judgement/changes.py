"""Single changes that may let a node go: of pods, of a NodePool, of a PodDisruptionBudget, of the node, of a setting.

A change is a value: it makes of a snapshot the one that there would be after that change. So it can be tried by
the very rules that hold the node before it is reported (`trials`). Edits of pods and of pools are those that
give pods a place (`scheduling/edits`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from kerf.disruption.drift.conditions import CONSOLIDATABLE
from kerf.model.changes.indexes import PodIndex
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.edits import PodEdit, PoolEdit
from kerf_api import labels
from kerf_api.v1 import conditions
from kerf_api.v1.meta import Condition, ObjectMeta
from kerf_api.v1.nodepool import Budget


@dataclass(frozen=True, slots=True)
class Change:
    """Base. `made` is the snapshot after the change, an equal one when there is nothing to change."""

    def made(self, snapshot: Snapshot) -> Snapshot:
        raise NotImplementedError


# --- of pods ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class OfPods(Change):
    """An edit of pods of one node; `whose` are they, for a person."""

    whose: str
    node: str
    pods: frozenset[str]
    edit: PodEdit

    def made(self, snapshot: Snapshot) -> Snapshot:
        return _with_pods(snapshot, self.node, self.pods, self.edit.made)

    def __str__(self) -> str:
        return f"{self.whose}: {self.edit}"


@dataclass(frozen=True, slots=True)
class Unmark(Change):
    """Pods of one node without the annotation that protects them."""

    whose: str
    node: str
    pods: frozenset[str]

    def made(self, snapshot: Snapshot) -> Snapshot:
        return _with_pods(snapshot, self.node, self.pods, _unmarked)

    def __str__(self) -> str:
        return f"{self.whose}: remove the annotation {labels.DO_NOT_DISRUPT}"


def _unmarked(pod: Pod) -> Pod:
    return replace(pod, metadata=_unprotected(pod.metadata))


def _unprotected(meta: ObjectMeta) -> ObjectMeta:
    kept = {key: value for key, value in meta.annotations.items() if key != labels.DO_NOT_DISRUPT}
    return replace(meta, annotations=kept)


def _with_pods(snapshot: Snapshot, node: str, keys: frozenset[str], made: Callable[[Pod], Pod]) -> Snapshot:
    index = snapshot.pods
    here = {key: made(pod) if key in keys else pod for key, pod in index.by_node.get(node, {}).items()}
    by_key, by_node = {**index.by_key, **here}, {**index.by_node, node: here}
    return dataclasses.replace(snapshot, pods=PodIndex(by_key, by_node, index.pending, index.nominated))


@dataclass(frozen=True, slots=True)
class Permit(Change):
    """A PodDisruptionBudget (`namespace/name`) that lets a pod go."""

    key: str

    def made(self, snapshot: Snapshot) -> Snapshot:
        open_ = dataclasses.replace(snapshot.pdb_budgets[self.key], allows=True, closed=False)
        return dataclasses.replace(snapshot, pdb_budgets={**snapshot.pdb_budgets, self.key: open_})

    def __str__(self) -> str:
        return f"PodDisruptionBudget {self.key}: let one pod go"


# --- of the node, of settings -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class UnmarkNode(Change):
    """The node of this key of `state_nodes`, without the annotation that protects it."""

    key: str
    name: str

    def made(self, snapshot: Snapshot) -> Snapshot:
        state = snapshot.state_nodes[self.key]
        assert state.node is not None
        bare = dataclasses.replace(state, node=replace(state.node, metadata=_unprotected(state.node.metadata)))
        return dataclasses.replace(snapshot, state_nodes={**snapshot.state_nodes, self.key: bare})

    def __str__(self) -> str:
        return f"node {self.name}: remove the annotation {labels.DO_NOT_DISRUPT}"


@dataclass(frozen=True, slots=True)
class OpenGate(Change):
    """`field` is the gate's in `FeatureGates`."""

    gate: str
    field: str

    def made(self, snapshot: Snapshot) -> Snapshot:
        gates = dataclasses.replace(snapshot.settings.gates, **{self.field: True})
        return dataclasses.replace(snapshot, settings=dataclasses.replace(snapshot.settings, gates=gates))

    def __str__(self) -> str:
        return f"open the feature gate {self.gate}"


# --- of the NodePool --------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class OfPool(Change):
    """An edit of what a NodePool makes nodes of."""

    edit: PoolEdit

    def made(self, snapshot: Snapshot) -> Snapshot:
        return snapshot.with_node_pools(self.edit.made(snapshot.node_pools[self.edit.pool]))

    def __str__(self) -> str:
        return str(self.edit)


@dataclass(frozen=True, slots=True)
class AllowMore(Change):
    """One of a NodePool's budgets that lets as many `nodes` go."""

    pool: str
    index: int
    nodes: int
    before: str

    def made(self, snapshot: Snapshot) -> Snapshot:
        rows: list[Budget] = list(snapshot.node_pools[self.pool].spec.disruption.budgets)
        rows[self.index] = replace(rows[self.index], nodes=str(self.nodes))
        return _with_disruption(snapshot, self.pool, budgets=tuple(rows))

    def __str__(self) -> str:
        return f"NodePool {self.pool}: raise budgets[{self.index}].nodes from {self.before} to {self.nodes}"


@dataclass(frozen=True, slots=True)
class Adopt(Change):
    """Another `consolidationPolicy`."""

    pool: str
    policy: str

    def made(self, snapshot: Snapshot) -> Snapshot:
        return _with_disruption(snapshot, self.pool, consolidation_policy=self.policy)

    def __str__(self) -> str:
        return f"NodePool {self.pool}: make its consolidationPolicy {self.policy}"


@dataclass(frozen=True, slots=True)
class Consolidate(Change):
    """A `consolidateAfter` where there was Never, when that has passed for the node of this key of `state_nodes`."""

    pool: str
    key: str

    def made(self, snapshot: Snapshot) -> Snapshot:
        state = snapshot.state_nodes[self.key]
        assert state.claim is not None
        status = state.claim.status
        rows = conditions.drop(status.conditions, CONSOLIDATABLE)
        row = Condition(type=CONSOLIDATABLE, status=conditions.TRUE, reason=CONSOLIDATABLE)
        claim = replace(state.claim, status=replace(status, conditions=(*rows, row)))
        states = {**snapshot.state_nodes, self.key: dataclasses.replace(state, claim=claim)}
        ripe = dataclasses.replace(snapshot, state_nodes=states)
        return _with_disruption(ripe, self.pool, consolidate_after="0s")

    def __str__(self) -> str:
        return f"NodePool {self.pool}: give it a consolidateAfter instead of Never"


def _with_disruption(snapshot: Snapshot, pool_name: str, **fields: Any) -> Snapshot:
    """With these fields in the pool's `spec.disruption`."""
    pool = snapshot.node_pools[pool_name]
    disruption = replace(pool.spec.disruption, **fields)
    return snapshot.with_node_pools(replace(pool, spec=replace(pool.spec, disruption=disruption)))
