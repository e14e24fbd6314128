"""Single changes that may unblock a node: of pods, a NodePool, a PodDisruptionBudget, the node or a setting.

A change is a value with a function from a snapshot to the snapshot after the change. So the rules that block the node
check each change before it is suggested (`trials`). Edits of pods and NodePools are those that give pods a place
(`scheduling/edits`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from kerf.disruption.drift.conditions import CONSOLIDATABLE
from kerf.model.changes.indexes import PodIndex
from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.edits import DropTerm, PodEdit, PoolEdit
from kerf.scheduling.answers.patches import EDIT, Field, Patch, of_pool, pod_patch, within
from kerf_api import labels
from kerf_api.v1 import conditions
from kerf_api.v1.meta import Condition, ObjectMeta
from kerf_api.v1.nodepool import Budget


@dataclass(frozen=True, slots=True)
class Change:
    """Base class. `made` returns the snapshot after the change, an equal one when nothing changes; `patch` returns the
    change of the manifest as data."""

    def made(self, snapshot: Snapshot) -> Snapshot:
        raise NotImplementedError

    def patch(self, snapshot: Snapshot) -> Patch:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _OfPods(Change):
    """Base class of changes to the pods of one manifest. `whose` is the text that names the manifest."""

    whose: str
    pods: frozenset[str]

    def edited(self, pod: Pod) -> Pod:
        """Return the pod after the change."""
        raise NotImplementedError

    def made(self, snapshot: Snapshot) -> Snapshot:
        return _with_pods(snapshot, self.pods, self.edited)

    def patch(self, snapshot: Snapshot) -> Patch:
        first = snapshot.pods[min(self.pods)]
        return pod_patch(first, self.edited(first), str(self))


@dataclass(frozen=True, slots=True)
class _OfPool(Change):
    """Base class of changes to a NodePool, whose name is `pool_name`."""

    @property
    def pool_name(self) -> str:
        raise NotImplementedError

    def patch(self, snapshot: Snapshot) -> Patch:
        name = self.pool_name
        return of_pool(snapshot.node_pools[name], self.made(snapshot).node_pools[name], str(self))


# --- of pods ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class OfPods(_OfPods):
    """An edit of pods."""

    edit: PodEdit

    @property
    def of_others(self) -> bool:
        """Whether the edit changes the possible nodes of other pods: anti-affinity of the edited pods excludes them."""
        return isinstance(self.edit, DropTerm) and self.edit.away

    def edited(self, pod: Pod) -> Pod:
        return self.edit.made(pod)

    def __str__(self) -> str:
        return f"{self.whose}: {self.edit}"


@dataclass(frozen=True, slots=True)
class Unmark(_OfPods):
    """Removal of the annotation that protects pods from disruption."""

    def edited(self, pod: Pod) -> Pod:
        return replace(pod, metadata=_unprotected(pod.metadata))

    def __str__(self) -> str:
        return f"{self.whose}: remove the annotation {labels.DO_NOT_DISRUPT}"


def _unprotected(meta: ObjectMeta) -> ObjectMeta:
    kept = {key: value for key, value in meta.annotations.items() if key != labels.DO_NOT_DISRUPT}
    return replace(meta, annotations=kept)


def _with_pods(snapshot: Snapshot, keys: frozenset[str], made: Callable[[Pod], Pod]) -> Snapshot:
    index = snapshot.pods
    changed = {key: made(index[key]) for key in sorted(keys)}
    nodes = sorted({pod.spec.node_name for pod in changed.values() if pod.spec.node_name in index.by_node})
    by_node = {**index.by_node, **{node: _with(index.by_node[node], changed) for node in nodes}}
    after = PodIndex({**index.by_key, **changed}, by_node, _with(index.pending, changed), index.nominated)
    return dataclasses.replace(snapshot, pods=after)


def _with(some: Mapping[str, Pod], changed: Mapping[str, Pod]) -> Mapping[str, Pod]:
    return {key: changed.get(key, pod) for key, pod in some.items()} if some.keys() & changed.keys() else some


@dataclass(frozen=True, slots=True)
class Permit(Change):
    """One more eviction allowed by a PodDisruptionBudget (`namespace/name`)."""

    key: str

    def made(self, snapshot: Snapshot) -> Snapshot:
        open_ = dataclasses.replace(snapshot.pdb_budgets[self.key], allows=True, closed=False)
        return dataclasses.replace(snapshot, pdb_budgets={**snapshot.pdb_budgets, self.key: open_})

    def patch(self, snapshot: Snapshot) -> Patch:
        """Return the patch that requires one healthy pod less."""
        pdb = snapshot.pdbs[self.key]
        status = pdb.status
        if pdb.spec.min_available is not None:
            row = Field("spec.minAvailable", max(status.current_healthy - 1, 0))
        else:
            row = Field("spec.maxUnavailable", max(status.expected_pods - status.current_healthy, 0) + 1)
        return Patch(EDIT, "PodDisruptionBudget", self.key, str(self), (row,))

    def __str__(self) -> str:
        return f"PodDisruptionBudget {self.key}: allow one more disruption"


# --- of the node, of settings -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class UnmarkNode(Change):
    """Removal of the annotation that protects a node from disruption; `key` is that of `state_nodes`."""

    key: str
    name: str

    def made(self, snapshot: Snapshot) -> Snapshot:
        state = snapshot.state_nodes[self.key]
        assert state.node is not None
        bare = dataclasses.replace(state, node=replace(state.node, metadata=_unprotected(state.node.metadata)))
        return dataclasses.replace(snapshot, state_nodes={**snapshot.state_nodes, self.key: bare})

    def patch(self, snapshot: Snapshot) -> Patch:
        row = Field(within("metadata.annotations", labels.DO_NOT_DISRUPT))
        return Patch(EDIT, "Node", self.name, str(self), (row,))

    def __str__(self) -> str:
        return f"node {self.name}: remove the annotation {labels.DO_NOT_DISRUPT}"


@dataclass(frozen=True, slots=True)
class OpenGate(Change):
    """An enabled feature gate; `field` is its attribute of `FeatureGates`."""

    gate: str
    field: str

    def made(self, snapshot: Snapshot) -> Snapshot:
        gates = dataclasses.replace(snapshot.settings.gates, **{self.field: True})
        return dataclasses.replace(snapshot, settings=dataclasses.replace(snapshot.settings, gates=gates))

    def patch(self, snapshot: Snapshot) -> Patch:
        return Patch(EDIT, "Settings", "FEATURE_GATES", str(self), (Field(self.gate, True),))

    def __str__(self) -> str:
        return f"enable the feature gate {self.gate}"


# --- of the NodePool --------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class OfPool(_OfPool):
    """An edit of the node template or the limits of a NodePool."""

    edit: PoolEdit

    @property
    def pool_name(self) -> str:
        return self.edit.pool

    def made(self, snapshot: Snapshot) -> Snapshot:
        return snapshot.with_node_pools(self.edit.made(snapshot.node_pools[self.edit.pool]))

    def __str__(self) -> str:
        return str(self.edit)


@dataclass(frozen=True, slots=True)
class _OfDisruption(_OfPool):
    """Base class of changes to `spec.disruption`."""

    pool: str

    @property
    def pool_name(self) -> str:
        return self.pool


@dataclass(frozen=True, slots=True)
class AllowMore(_OfDisruption):
    """A higher number of `nodes` in one budget of a NodePool."""

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
class Adopt(_OfDisruption):
    """Another `consolidationPolicy`."""

    policy: str

    def made(self, snapshot: Snapshot) -> Snapshot:
        return _with_disruption(snapshot, self.pool, consolidation_policy=self.policy)

    def __str__(self) -> str:
        return f"NodePool {self.pool}: set consolidationPolicy to {self.policy}"


@dataclass(frozen=True, slots=True)
class Consolidate(_OfDisruption):
    """A `consolidateAfter` instead of Never, as if it had passed for the node with this key of `state_nodes`."""

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
        return f"NodePool {self.pool}: set consolidateAfter to a duration instead of Never"


def _with_disruption(snapshot: Snapshot, pool_name: str, **fields: Any) -> Snapshot:
    """Return the snapshot with these fields in `spec.disruption` of the NodePool."""
    pool = snapshot.node_pools[pool_name]
    disruption = replace(pool.spec.disruption, **fields)
    return snapshot.with_node_pools(replace(pool, spec=replace(pool.spec, disruption=disruption)))
