"""Laws of the scheduler on random worlds: the referee finds nothing; the order of input does not matter; what was
planned once is found again, before and after the launch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kerf.model.aws.instance_type import Catalogue, Offering, Reservation
from kerf.model.cluster import FIELDS
from kerf.model.kubernetes.objects import Node, Pod, Volume
from kerf.model.kubernetes.storage import CSINode
from kerf.model.snapshot import Snapshot
from kerf.provisioning.provision import nominations
from kerf.scheduling.solve import Solution, SolveOptions, context_of, solve
from kerf_api import labels
from kerf_api.requirements import IN, requirement
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool
from tests.referee import violations
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.test_catalogue_volumes import claim, waiting

RELAXED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
APPS = ("web", "db", "cache")
KEYS = (labels.ZONE, labels.HOSTNAME, labels.CAPACITY_TYPE)


def a_pool(rng: Random, name: str) -> NodePool:
    spec: dict[str, Any] = {"weight": rng.choice([0, 0, 5])}
    requirements: list[dict[str, Any]] = []
    if rng.random() < 0.3:
        requirements.append({"key": labels.ZONE, "operator": "In", "values": rng.sample(w.ZONES, rng.randint(1, 3))})
    if rng.random() < 0.2:
        requirements.append({"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]})
    if rng.random() < 0.2:
        requirements.append({"key": "team", "operator": "In", "values": ["red", "blue"]})
    if rng.random() < 0.15:
        requirements.append({"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 2})
    if rng.random() < 0.2:
        spec["taints"] = [{"key": "team", "value": "red", "effect": rng.choice(["NoSchedule", "PreferNoSchedule"])}]
    if rng.random() < 0.4:
        spec["limits"] = rng.choice([{"cpu": "8"}, {"nodes": "3"}, {"cpu": "30", "memory": "40Gi"}])
    return w.pool(name, requirements=requirements, **spec)


def pod_spec(rng: Random, app: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"labels": {"app": rng.choice([app, app, app, rng.choice(APPS)])}}
    roll = rng.random()
    other = rng.choice([app, app, rng.choice(APPS)])
    if roll < 0.25:
        extra = {"minDomains": rng.randint(1, 3)} if rng.random() < 0.3 else {}
        soft = {"whenUnsatisfiable": "ScheduleAnyway"} if rng.random() < 0.2 else extra
        spec["topologySpreadConstraints"] = [w.spread(rng.choice(KEYS), rng.randint(1, 2), other, **soft)]
        if rng.random() < 0.3:
            spec["topologySpreadConstraints"].append(w.spread(labels.HOSTNAME, rng.randint(1, 3), app))
    elif roll < 0.45:
        spec["affinity"] = w.between("podAntiAffinity", rng.choice(KEYS), other)
    elif roll < 0.6:
        spec["affinity"] = w.between("podAffinity", rng.choice(KEYS), other)
    elif roll < 0.75:
        values = rng.sample(w.ZONES, rng.randint(1, 2))
        first = [(labels.ZONE, rng.choice(["In", "NotIn"]), values)]
        spec["affinity"] = w.node_affinity(first, *([[("team", "In", ["red"])]] if rng.random() < 0.3 else []))
    elif roll < 0.85:
        spec["nodeSelector"] = rng.choice([{"team": "red"}, {labels.CAPACITY_TYPE: "spot"}, {labels.ZONE: "z3"}])
    if rng.random() < 0.3:
        spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
    if rng.random() < 0.1:
        spec["ports"] = [{"hostPort": rng.choice([80, 81])}]
    return spec


def a_world(rng: Random) -> Snapshot:
    objects: list[Any] = [a_pool(rng, f"pool-{i}") for i in range(rng.randint(1, 3))]
    for i in range(rng.randint(0, 4)):
        taints = [{"key": "team", "value": "red", "effect": "NoSchedule"}] if rng.random() < 0.2 else []
        objects.append(w.node(f"node-{i}", rng.choice(w.ZONES), rng.choice(["2", "4"]), taints=taints))
        for j in range(rng.randint(0, 2)):
            spec = pod_spec(rng, rng.choice(APPS))
            objects.append(w.pod(f"bound-{i}-{j}", "200m", "100Mi", node=f"node-{i}", **spec))
    if rng.random() < 0.4:
        objects.append(w.daemon_set("agent", "200m", "50Mi", tolerations=[{"operator": "Exists"}]))
    for i in range(rng.randint(1, 6)):
        app, size = rng.choice(APPS), (rng.choice(["100m", "600m", "1500m"]), rng.choice(["50Mi", "500Mi", "1500Mi"]))
        spec = pod_spec(rng, app)
        objects += w.replicas(rng.choice([1, 2, 3, 5, 8]), f"{app}-{i}", *size, **spec)
    catalogue = rng.choice([w.CATALOGUE, w.ladder(6)])
    return w.world(with_volumes(rng, objects), catalogue=with_reservations(rng, catalogue))


def with_reservations(rng: Random, catalogue: Catalogue) -> Catalogue:
    """In a third of the worlds some types have machines on capacity reservations, and few of them."""
    if rng.random() < 0.67:
        return catalogue
    found = list(catalogue)
    for number, place in enumerate(rng.sample(range(len(found)), 3)):
        kind, left = found[place], rng.choice([0, 1, 1, 3])
        held = Reservation(f"cr-{number}", left)
        zone = rng.choice(w.ZONES)
        more = Offering(kind.name, zone, labels.RESERVED, rng.choice([0, 1]), available=left > 0, reservation=held)
        kinds = kind.requirements.allowed(labels.CAPACITY_TYPE).values | {labels.RESERVED}
        rows = kind.requirements.without(labels.CAPACITY_TYPE) & [requirement(labels.CAPACITY_TYPE, IN, kinds)]
        found[place] = replace(kind, requirements=rows, offerings=(*kind.offerings, more))
    return tuple(found)


def with_volumes(rng: Random, objects: list[Any]) -> list[Any]:
    """In half of the worlds some pods have volumes of their own or shared ones, and some nodes a limit to them."""
    if rng.random() < 0.5:
        return objects
    found: list[Any] = [waiting("s"), waiting("t", ["z1"], ["z2", "z3"])]
    for one in objects:
        if isinstance(one, Node) and rng.random() < 0.7:
            found.append(attachable(one.name, rng.randint(0, 3)))
        if isinstance(one, Pod) and rng.random() < 0.5:
            names = rng.sample(
                [f"own-{one.metadata.name}", f"more-{one.metadata.name}", "all", "some"], rng.randint(1, 2)
            )
            found += [claim(name, storage_class="t" if name == "some" else "s") for name in names]
            rows = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
            one = msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, volumes=decode_volumes(rows)))
        found.append(one)
    return found


def attachable(node: str, count: int) -> CSINode:
    rows = [{"name": "ebs.csi.aws.com", "allocatable": {"count": count}}]
    return decode(CSINode, {"metadata": {"name": node}, "spec": {"drivers": rows}})


def decode_volumes(rows: list[dict[str, Any]]) -> tuple[Volume, ...]:
    return tuple(decode(Volume, row) for row in rows)


def solve_all(snapshot: Snapshot) -> tuple[list[Pod], Solution]:
    pods = list(snapshot.pods.pending.values())
    return pods, solve(snapshot, pods)


@RELAXED
@given(st.integers(0, 10**9))
def test_the_referee_finds_nothing(seed: int) -> None:
    snapshot = a_world(Random(seed))
    pods, solution = solve_all(snapshot)
    assert violations(snapshot, pods, solution) == []


@settings(RELAXED, max_examples=40)
@given(st.integers(0, 10**9))
def test_effort_breaks_no_rule_and_costs_nobody_his_place(seed: int) -> None:
    snapshot = a_world(Random(seed))
    pods, plain = solve_all(snapshot)
    found = solve(snapshot, pods, SolveOptions(improve=timedelta(seconds=0.05)))
    assert violations(snapshot, pods, found) == []
    assert len(found.unplaced) <= len(plain.unplaced)


@RELAXED
@given(st.integers(0, 10**9))
def test_the_order_of_pods_does_not_matter(seed: int) -> None:
    snapshot = a_world(Random(seed))
    pods, solution = solve_all(snapshot)
    Random(seed + 1).shuffle(pods)
    assert repr(solve(snapshot, pods)) == repr(solution)


@RELAXED
@given(st.integers(0, 10**9))
def test_the_order_of_nodes_and_of_all_else_does_not_matter(seed: int) -> None:
    rng = Random(seed)
    snapshot = a_world(rng)
    objects = [value for field in FIELDS.values() for value in getattr(snapshot, field).values()]
    types = list(snapshot.catalogues["default"])
    rng.shuffle(objects)
    rng.shuffle(types)
    again = w.world(objects, catalogue=tuple(types))
    for improve in (timedelta(), timedelta(seconds=0.02)):
        answers = (
            solve(one, list(one.pods.pending.values()), SolveOptions(improve=improve)) for one in (snapshot, again)
        )
        assert repr(next(answers)) == repr(next(answers))


@RELAXED
@given(st.integers(0, 10**9))
def test_what_solves_share_changes_no_answer(seed: int) -> None:
    """Solves of one snapshot, one after the other on a shared context, answer as each would alone."""
    snapshot = a_world(Random(seed))
    shared, pending = context_of(snapshot), list(snapshot.pods.pending.values())
    for key in sorted(snapshot.state_nodes):
        moving = [pod for pod in snapshot.pods.values() if pod.spec.node_name == snapshot.state_nodes[key].name]
        for exclude, spare in ((frozenset({key}), True), (frozenset(), False)):
            asked = [*moving, *pending]
            alone = solve(snapshot, asked, SolveOptions(exclude=exclude, respect_consolidate_after=spare))
            again = solve(
                snapshot, asked, SolveOptions(exclude=exclude, respect_consolidate_after=spare), context=shared
            )
            assert repr(again) == repr(alone)


def storage(snapshot: Snapshot) -> list[Any]:
    return [*snapshot.storage_classes.values(), *snapshot.volume_claims.values(), *snapshot.csi_nodes.values()]


@dataclass
class Pass:
    """One provisioning pass: its snapshot, its answer, the claims made so far, and where each served pod is to go."""

    snapshot: Snapshot
    solution: Solution
    claims: list[NodeClaim]
    homes: dict[str, str]

    @classmethod
    def over(cls, snapshot: Snapshot) -> Pass:
        _, solution = solve_all(snapshot)
        made = w.claims(snapshot, solution)
        pairs = zip(made, solution.new_nodes, strict=True)
        homes = {**solution.placed, **{key: claim.name for claim, new in pairs for key in new.pods}}
        return cls(snapshot, solution, [*snapshot.node_claims.values(), *made], homes)

    def next(self, claims: list[NodeClaim], *newcomers: Pod) -> Pass:
        """The next pass over the same world with these claims in it, and the promises of this one."""
        before = self.snapshot
        objects = [*before.node_pools.values(), *before.nodes.values(), *before.pods.values()]
        objects += [*before.daemon_sets.values(), *storage(before), *claims, *newcomers]
        promises = nominations(before, self.solution, self.homes)
        return Pass.over(w.world(objects, catalogue=before.catalogues["default"], nominations=promises))

    def moved(self, before: Pass) -> dict[str, str]:
        """Served pods of an earlier pass that are not where they were to go (no place: an empty name)."""
        return {key: self.homes.get(key, "") for key, home in before.homes.items() if self.homes.get(key) != home}


@settings(RELAXED, max_examples=300)
@given(st.integers(0, 10**9), st.integers(0, 7))
def test_a_pass_that_is_repeated_moves_nothing(seed: int, choice: int) -> None:
    """Nothing of what the first pass decided changes while the claims are unlaunched, launched, or joined by pods.

    So no pod that has a place loses it or gets a second node; what had none may get one (a launch may leave room
    within limits that the largest possible type would not).
    """
    rng = Random(seed)
    first = Pass.over(a_world(rng))
    assert len({c.name for c in first.claims}) == len(first.claims)
    second = first.next(first.claims)
    assert second.moved(first) == {}
    assert violations(second.snapshot, list(second.snapshot.pods.pending.values()), second.solution) == []
    assert first.next([w.launched(c, first.snapshot, choice) for c in first.claims]).moved(first) == {}
    newcomers = w.replicas(rng.randint(1, 3), "late", "600m", "500Mi", **pod_spec(rng, rng.choice(APPS)))
    joined = first.next(first.claims, *newcomers)
    assert joined.moved(first) == {}
    assert joined.next(joined.claims).moved(joined) == {}


@RELAXED
@given(st.integers(0, 10**9))
def test_claims_alone_remember_whom_they_are_for(seed: int) -> None:
    """After a restart the promises are gone; what was planned on new nodes is found again all the same."""
    first = Pass.over(a_world(Random(seed)))
    made = {claim.name for claim in first.claims}
    objects = [*first.snapshot.node_pools.values(), *first.snapshot.nodes.values(), *first.snapshot.pods.values()]
    restarted = w.world(
        [*objects, *first.snapshot.daemon_sets.values(), *storage(first.snapshot), *first.claims],
        catalogue=first.snapshot.catalogues["default"],
    )
    moved = Pass.over(restarted).moved(first)
    assert {key for key in moved if first.homes[key] in made} == set()


@pytest.mark.long
@settings(max_examples=3000, deadline=None)
@given(st.integers(0, 10**9))
def test_the_referee_finds_nothing_in_many_worlds(seed: int) -> None:
    snapshot = a_world(Random(seed))
    pods, solution = solve_all(snapshot)
    assert violations(snapshot, pods, solution) == []


def test_the_company_of_a_pod_does_not_wait_for_that_pod() -> None:
    """The pods `db-3` must be near `cache` in their capacity type; the pods `db-5` are such, and near `db` on hosts."""
    snapshot = a_world(Random(46231525))
    pods, solution = solve_all(snapshot)
    assert violations(snapshot, pods, solution) == []
