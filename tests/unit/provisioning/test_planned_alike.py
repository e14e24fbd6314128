"""Nodes that are initialized answer for late ones that were planned alike, and for no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.plan import CreateNodeClaim, Plan
from kerf.model.snapshot import Batch
from kerf.provisioning.provision import provision
from kerf.scheduling.facts.planned_alike import is_of, kind_of
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.progress_world import claim, ready

BATCH = Batch(w.NOW - timedelta(seconds=2), w.NOW - timedelta(seconds=2))
MINUTE = timedelta(minutes=1)
POOL = w.pool(annotations={labels.NODEPOOL_HASH: "h", labels.NODEPOOL_HASH_VERSION: "v3"})
Requirements = Mapping[str, Any]


@dataclass
class Made:
    """A NodeClaim that a pass made, minutes after the beginning, and whether its node comes up."""

    planned: NodeClaim
    at: int
    fit: bool

    def now(self, minute: int) -> list[NodeClaim | Node]:
        age = minute - self.at
        conditions = claim(self.planned.name, minutes=age, initialized=self.fit).status.conditions
        meta = replace(self.planned.metadata, creation_timestamp=w.NOW - age * MINUTE)
        node = ready(self.planned.name, cpu="1")
        status = replace(self.planned.status, conditions=conditions, provider_id=node.spec.provider_id)
        return [replace(self.planned, metadata=meta, status=status), node]


def lived(broken: Requirements, well: Requirements, becomes: str, minutes: int, every: int) -> tuple[list[int], int]:
    """The instants at which nodes were made for three pods whose nodes stay late, and how many were made for others, of
    which one pod comes every so many minutes. Nodes of the first become the instance type."""
    made, waiting = list[Made](), w.replicas(3, "stuck", "3", **broken)
    at = next(one for one in w.CATALOGUE if one.name == becomes)
    for minute in range(0, minutes, 5):
        new = [w.pod(f"web-{minute}", "3", **well)] if minute % every == 0 else []
        before = [row for one in made for row in one.now(minute)]
        snapshot = w.world(POOL, *before, *waiting, *new, batch=BATCH)
        for action in provision(snapshot).actions:
            if isinstance(action, CreateNodeClaim):
                fit = of(action.claim, new)
                own = w.launched(action.claim, snapshot) if fit else w.launched_as(action.claim, at, at.offerings[0])
                named = f"n{len(made)}"
                made.append(Made(replace(own, metadata=replace(own.metadata, name=named, uid=named)), minute, fit))
    return [one.at for one in made if not one.fit], sum(one.fit for one in made)


def of(made: NodeClaim, pods: list[Pod]) -> bool:
    planned = claim("any", *pods).metadata.annotations[labels.PLANNED_PODS]
    return bool(pods) and made.metadata.annotations[labels.PLANNED_PODS] == planned


ARM: Requirements = {"nodeSelector": {labels.ARCH: "arm64"}}
AMD: Requirements = {"nodeSelector": {labels.ARCH: "amd64"}}
GPU: Requirements = {"requests": {"example.com/gpu-a": "1"}}


@pytest.mark.parametrize(
    ("broken", "well", "becomes"),
    [
        (ARM, AMD, "arm"),
        ({}, AMD, "arm"),
        (GPU, {}, "gpu-a"),
        ({"nodeSelector": {labels.ZONE: "z1"}}, {"nodeSelector": {labels.ZONE: "z2"}}, "default"),
        ({"nodeSelector": {labels.INSTANCE_TYPE: "default"}}, {"nodeSelector": {labels.ZONE: "z2"}}, "default"),
    ],
    ids=["architecture", "either architecture", "extended resource", "zone", "instance type"],
)
def test_late_nodes_are_followed_by_one_while_other_nodes_come_up(
    broken: Requirements, well: Requirements, becomes: str
) -> None:
    stuck, others = lived(broken, well, becomes, minutes=6 * 60, every=30)
    *first, further = stuck
    assert (set(first), further) == ({0}, 10)
    assert others == 12


def test_after_a_day_there_are_more() -> None:
    stuck, _ = lived(ARM, AMD, "arm", minutes=26 * 60, every=120)
    assert stuck == [0, 10, 24 * 60 + 10, 24 * 60 + 20]


def test_what_a_node_has_become_counts_where_the_next_has_no_choice() -> None:
    free, pinned = w.pod("free"), w.pod("pinned", **ARM)
    world = w.world(POOL, free, pinned)
    one, other = (w.claims(world, w.solved(POOL, pod))[0] for pod in (free, pinned))
    arm = next(row for row in w.CATALOGUE if row.name == "arm")
    become = w.launched_as(one, arm, arm.offerings[0])
    kind = kind_of(other)
    assert kind is not None
    assert [is_of(row, kind) for row in (one, become, other)] == [False, True, True]


def test_requirements_that_cannot_be_read_are_of_no_kind() -> None:
    made = claim("n1")
    odd = replace(made, spec=replace(made.spec, resources=replace(made.spec.resources, requests={"cpu": "much"})))
    assert kind_of(made) is not None
    assert kind_of(odd) is None


def test_pods_whose_nodes_stay_late_get_one_of_another_node_pool() -> None:
    """The NodePool is not closed for those whose nodes come up, so the answer is by pod."""
    late, working = (launched(f"n{n}", *row) for n, row in enumerate([(ARM, 40, False), (AMD, 300, True)]))
    second, waiting = launched("n2", ARM, 20, fit=False), w.pod("db", "3", **ARM)
    alone = provision(w.world(POOL, *late, *working, *second, waiting, batch=BATCH))
    assert not made(alone)
    (refusal,) = [one for one in alone.refusals if one.subject == "pod/default/db"]
    assert (refusal.reason.code, "for such pods" in refusal.reason.text) == ("NodesNotInitialized", True)
    other = w.pool("other", weight=1)
    plan = provision(w.world(weighty(), other, *late, *working, *second, waiting, batch=BATCH))
    assert [action.claim.pool_name for action in made(plan)] == ["other"]
    barred = w.pool("other", taints=[{"key": "x", "effect": "NoSchedule"}])
    plan = provision(w.world(weighty(), barred, *late, *working, *second, waiting, batch=BATCH))
    assert [one.reason.code for one in plan.refusals if one.subject == "pod/default/db"] == ["NodesNotInitialized"]


def weighty() -> NodePool:
    return replace(POOL, spec=replace(POOL.spec, weight=10))


def made(plan: Plan) -> list[CreateNodeClaim]:
    return [action for action in plan.actions if isinstance(action, CreateNodeClaim)]


def launched(name: str, spec: Requirements, minutes: int, fit: bool) -> list[NodeClaim | Node]:
    world = w.world(POOL, pod := w.pod(name, "3", **spec))
    own = w.launched(w.claims(world, w.solved(POOL, pod))[0], world)
    return Made(replace(own, metadata=replace(own.metadata, name=name, uid=name)), 0, fit).now(minutes)
