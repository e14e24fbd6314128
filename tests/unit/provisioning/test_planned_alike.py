"""Nodes that are initialized answer for late ones that were planned alike, and for no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.plan import CreateNodeClaim, Plan
from kerf.model.snapshot import Batch
from kerf.provisioning.provision import provision
from kerf.scheduling.facts.planned_alike import answers, bears_on, kind_of_new
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


@pytest.mark.parametrize("every", [10, 30])
@pytest.mark.parametrize(
    ("broken", "well", "becomes"),
    [
        (ARM, AMD, "arm"),
        ({}, AMD, "arm"),
        (GPU, {}, "gpu-a"),
        ({"nodeSelector": {labels.ZONE: "z1"}}, {"nodeSelector": {labels.ZONE: "z2"}}, "default"),
        ({"nodeSelector": {labels.INSTANCE_TYPE: "single-pod"}}, AMD, "single-pod"),
    ],
    ids=["architecture", "either architecture", "extended resource", "zone", "instance type"],
)
def test_late_nodes_are_followed_by_one_while_other_nodes_come_up(
    broken: Requirements, well: Requirements, becomes: str, every: int
) -> None:
    stuck, others = lived(broken, well, becomes, minutes=5 * 60, every=every)
    assert {at for at in stuck if at < 10} == {0}
    assert len([at for at in stuck if at >= 10]) == 1
    assert others == 5 * 60 // every


def test_after_a_day_there_are_more() -> None:
    stuck, _ = lived(ARM, AMD, "arm", minutes=25 * 60, every=240)
    assert stuck == [0, 10, 24 * 60 + 10, 24 * 60 + 20]


LATE = [(ARM, 40, False), (ARM, 25, False), (AMD, 12, True)]


def waiting(
    *pods: Pod | Node | NodeClaim, rows: Sequence[tuple[Requirements, int, bool]] = LATE, pools: Sequence[NodePool] = ()
) -> Plan:
    """What is planned for pods beside nodes that were made for such pods so many minutes ago, and come up or not."""
    there = [each for n, row in enumerate(rows) for each in launched(f"n{n}", *row)]
    return provision(w.world(*(pools or [POOL]), *there, *pods, batch=BATCH))


def refusals(plan: Plan) -> dict[str, str]:
    named = [one for one in plan.refusals if one.subject.startswith("pod/")]
    return {one.subject.rsplit("/", 1)[-1]: one.reason.code for one in named}


def test_pods_whose_nodes_stay_late_get_one_of_another_node_pool() -> None:
    """The NodePool is not closed for those whose nodes come up, so the answer is by pod."""
    database = w.pod("db", "3", **ARM)
    alone = waiting(database)
    assert not made(alone)
    assert refusals(alone) == {"db": "NodesNotInitialized"}
    assert [one.reason.text for one in alone.refusals if one.subject.endswith("/db")] == [
        "such nodes of NodePool default are not initialized in time: it makes no further one before one is"
    ]
    plan = waiting(database, pools=[weighty(), w.pool("other", weight=1)])
    assert [action.claim.pool_name for action in made(plan)] == ["other"]
    barred = w.pool("other", taints=[{"key": "x", "effect": "NoSchedule"}])
    assert refusals(waiting(database, pools=[weighty(), barred])) == {"db": "NodesNotInitialized"}


def test_pods_of_which_one_fits_on_a_node_get_nodes_of_another_node_pool() -> None:
    """Of each alone it would seem that none needs a node."""
    room, pods = w.node("there", cpu="4", labels={labels.ARCH: "arm64"}), w.replicas(3, "db", "3", **ARM)
    plan = waiting(room, *pods, pools=[weighty(), w.pool("other", weight=1)])
    assert {action.claim.pool_name for action in made(plan)} == {"other"}
    assert not refusals(plan)


def test_pods_with_a_hard_spread_get_nodes_of_another_node_pool_if_no_other_pod_pays_for_it() -> None:
    term = {"topologyKey": labels.ZONE, "labelSelector": {"matchLabels": {"app": "db"}}}
    spread = {"topologySpreadConstraints": [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}
    pods = w.replicas(2, "db", "3", labels={"app": "db"}, **ARM, **spread)
    plan = waiting(*pods, pools=[weighty(), w.pool("other", weight=1)])
    assert {action.claim.pool_name for action in made(plan)} == {"other"}
    assert not refusals(plan)
    own = w.pool("other", weight=1, requirements=[{"key": labels.ARCH, "operator": "In", "values": ["arm64"]}])
    plan = waiting(*pods, w.pod("mine", "3", **AMD), pools=[weighty(), own])
    assert {action.claim.pool_name for action in made(plan)} == {"default"}
    assert refusals(plan) == dict.fromkeys(("db-0", "db-1"), "NodesNotInitialized")


def test_pods_that_only_share_a_node_with_them_get_one() -> None:
    rows = [(GPU, 40, False), (GPU, 25, False), (AMD, 12, True)]
    train, web = w.pod("train", "1", **GPU), w.pod("web", "2", "1Gi")
    assert len(w.solved(POOL, train, web).new_nodes) == 1
    plan = waiting(train, web, rows=rows)
    assert len(made(plan)) == 1
    assert refusals(plan) == {"train": "NodesNotInitialized"}


def test_of_pods_that_only_together_need_such_a_node_the_oldest_gets_one() -> None:
    both: Requirements = {"nodeSelector": {labels.ZONE: "z1", labels.ARCH: "arm64"}}
    rows = [(both, 40, False), (both, 25, False), (AMD, 12, True)]
    pods = [w.pod("zonal", "3", nodeSelector={labels.ZONE: "z1"}), w.pod("arm", "3", **ARM)]
    assert len(w.solved(POOL, *pods).new_nodes) == 1
    plan = waiting(*pods, rows=rows)
    assert len(made(plan)) == 1
    assert [*refusals(plan).values()] == ["NodesNotInitialized"]


def test_what_their_company_requires_gives_them_no_other_node() -> None:
    rows = [(GPU, 40, False), (GPU, 25, False), (AMD, 12, True)]
    term = {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": ["z1", "z2"]}]}
    zones = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    company = w.pod("web", "2", "1Gi", affinity=zones)
    plan = waiting(w.pod("train", "1", **GPU), company, rows=rows)
    assert refusals(plan) == {"train": "NodesNotInitialized"}
    assert all("gpu" not in action.claim.spec.resources.requests for action in made(plan))


def test_while_none_comes_up_attempts_for_other_pods_become_rare() -> None:
    """Whatever the late nodes lack, a network plugin for example, those for other pods may lack as well."""
    teams: list[Requirements] = [{"nodeSelector": {"team": f"t{n}"}} for n in range(6)]
    pool = w.pool(
        requirements=[{"key": "team", "operator": "Exists"}],
        annotations={labels.NODEPOOL_HASH: "h", labels.NODEPOOL_HASH_VERSION: "v3"},
    )
    made_at = [0, 0, 0]
    for minute in range(10, 3 * 60, 5):
        rows = [
            each for n, at in enumerate(made_at) for each in launched(f"n{n}", teams[n % 6], minute - at, False, pool)
        ]
        pods = [w.pod(f"web-{n}", "3", **team) for n, team in enumerate(teams)]
        made_at += [minute] * len(made(provision(w.world(pool, *rows, *pods, batch=BATCH))))
    assert made_at == [0, 0, 0, 10, 20, 40, 80, 160]


def test_a_node_answers_for_late_ones_that_were_planned_alike() -> None:
    free, pinned = w.pod("free"), w.pod("pinned", **ARM)
    world = w.world(POOL, free, pinned)
    new = [w.solved(POOL, pod).new_nodes[0] for pod in (free, pinned)]
    one, other = (w.claims(world, w.solved(POOL, pod))[0] for pod in (free, pinned))
    arm, small = (next(row for row in w.CATALOGUE if row.name == name) for name in ("arm", "small"))
    armed, plain = (w.launched_as(one, row, row.offerings[0]) for row in (arm, small))
    bound = w.launched_as(other, arm, arm.offerings[0])
    either, only = map(kind_of_new, new)
    assert [bears_on(row, either) for row in (armed, plain, bound)] == [True, True, False]
    assert [bears_on(row, only) for row in (armed, plain, bound)] == [True, False, True]
    assert [answers(row, armed, either) for row in (armed, plain, bound)] == [True, True, False]
    assert [answers(row, bound, only) for row in (armed, plain, bound)] == [True, False, True]


def test_a_node_that_waits_for_a_driver_is_no_plain_one() -> None:
    (new,) = w.solved(POOL, w.pod("web")).new_nodes
    plain = claim("n1")
    waits = claim("n2", annotations={labels.REQUESTED_DRIVERS: "gpu.example.com"})
    assert [bears_on(one, kind_of_new(new)) for one in (plain, waits)] == [True, False]


def test_requirements_that_cannot_be_read_count_for_none() -> None:
    (new,) = w.solved(POOL, w.pod("web")).new_nodes
    own = claim("n1")
    odd = replace(own, spec=replace(own.spec, resources=replace(own.spec.resources, requests={"cpu": "much"})))
    assert [bears_on(one, kind_of_new(new)) for one in (own, odd)] == [True, False]
    assert not answers(odd, own, kind_of_new(new))


def weighty() -> NodePool:
    return replace(POOL, spec=replace(POOL.spec, weight=10))


def made(plan: Plan) -> list[CreateNodeClaim]:
    return [action for action in plan.actions if isinstance(action, CreateNodeClaim)]


def launched(name: str, spec: Requirements, minutes: int, fit: bool, pool: NodePool = POOL) -> list[NodeClaim | Node]:
    world = w.world(pool, pod := w.pod(name, "3", **spec))
    own = w.launched(w.claims(world, w.solved(pool, pod))[0], world)
    return Made(replace(own, metadata=replace(own.metadata, name=name, uid=name)), 0, fit).now(minutes)
