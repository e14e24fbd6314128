"""Laws of refusals on random worlds: an edit that is offered helps, when it is made for good and all is solved anew;
an account changes no placement; whatever the names and the numbers, what is said stays short."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.edits import Edit, PodEdit
from kerf.scheduling.answers.explanation import LINE, WHOLE
from kerf.scheduling.solve import Solution, solve
from kerf_api import labels
from tests.referee import violations
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.accounts import explained

RELAXED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEAM = {"key": "team", "value": "red", "effect": "NoSchedule"}


def a_pool(rng: Random, name: str) -> Any:
    """A pool that serves few."""
    rows: list[dict[str, Any]] = []
    if rng.random() < 0.5:
        rows.append({"key": labels.ZONE, "operator": "In", "values": rng.sample(w.ZONES, rng.randint(1, 2))})
    if rng.random() < 0.3:
        rows.append({"key": labels.ARCH, "operator": "In", "values": [rng.choice(["amd64", "arm64"])]})
    if rng.random() < 0.3:
        rows.append({"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": rng.randint(2, 5)})
    spec: dict[str, Any] = {"taints": [TEAM]} if rng.random() < 0.4 else {}
    if rng.random() < 0.5:
        spec["limits"] = rng.choice([{"cpu": "4"}, {"nodes": "1"}, {"cpu": "10", "memory": "9Gi"}])
    return w.pool(name, requirements=rows, weight=rng.choice([0, 3]), **spec)


def some_pods(rng: Random, number: int) -> list[Pod]:
    """Pods of one shape that ask for more than they should."""
    app, spec = rng.choice(["web", "db"]), dict[str, Any]()
    spec["labels"] = {"app": app}
    if rng.random() < 0.3:
        spec["nodeSelector"] = rng.choice([{"team": "red"}, {labels.ZONE: "z3"}, {labels.ARCH: "arm64"}])
    if rng.random() < 0.3:
        spec["topologySpreadConstraints"] = [w.spread(rng.choice([labels.ZONE, labels.HOSTNAME]), 1, app)]
    elif rng.random() < 0.3:
        kind = rng.choice(["podAffinity", "podAntiAffinity"])
        spec["affinity"] = w.between(kind, labels.ZONE, rng.choice(["web", "db"]))
    if rng.random() < 0.2:
        spec["ports"] = [{"hostPort": 80}]
    if rng.random() < 0.2:
        spec["requests"] = {rng.choice(["example.com/gpu-a", w.GPU]): "1"}
    cpu, memory = rng.choice(["300m", "3", "12", "50"]), rng.choice(["50Mi", "3Gi", "200Gi"])
    return w.replicas(rng.choice([1, 1, 2, 4]), f"{app}-{number}", cpu, memory, **spec)


def a_world(rng: Random) -> Snapshot:
    objects: list[Any] = [a_pool(rng, f"pool-{i}") for i in range(rng.randint(1, 3))]
    for i in range(rng.randint(0, 3)):
        objects.append(w.node(f"node-{i}", rng.choice(w.ZONES), rng.choice(["200m", "2"])))
        if rng.random() < 0.5:
            objects.append(w.pod(f"bound-{i}", "100m", "10Mi", node=f"node-{i}", labels={"app": "web"}))
    if rng.random() < 0.3:
        objects.append(w.daemon_set("agent", "100m", "50Mi", ports=[{"hostPort": 80}]))
    for i in range(rng.randint(1, 4)):
        objects += some_pods(rng, i)
    return w.world(objects)


def edited(snapshot: Snapshot, keys: set[str], edit: Edit) -> Snapshot:
    """The world in which somebody has made the edit."""
    pods, pools = dict(snapshot.pods), dict(snapshot.node_pools)
    if isinstance(edit, PodEdit):
        pods |= {key: edit.made(pods[key]) for key in keys}
    else:
        pools[edit.pool] = edit.made(pools[edit.pool])
    rest = [*snapshot.nodes.values(), *snapshot.daemon_sets.values()]
    return w.world(list(pools.values()), rest, list(pods.values()))


def pending(snapshot: Snapshot) -> list[Pod]:
    return list(snapshot.pods.pending.values())


def classes(solution: Solution) -> list[tuple[set[str], tuple[Edit, ...]]]:
    """The keys of each class that was refused, with what is said to help."""
    found: dict[int, tuple[set[str], tuple[Edit, ...]]] = {}
    for key, refusal in solution.unplaced.items():
        fixes = refusal.account.fixes if refusal.account is not None else ()
        found.setdefault(id(refusal), (set(), fixes))[0].add(key)
    return list(found.values())


@RELAXED
@given(st.integers(0, 10**9))
def test_an_edit_that_is_offered_helps(seed: int) -> None:
    snapshot = a_world(Random(seed))
    before = explained(snapshot)
    for keys, fixes in classes(before):
        for fix in fixes:
            after = edited(snapshot, keys, fix)
            done = solve(after, pending(after))
            assert not keys & done.unplaced.keys(), f"{sorted(keys)}: {fix}"
            assert done.unplaced.keys() <= before.unplaced.keys()
            assert violations(after, pending(after), done) == []


def test_these_worlds_are_full_of_refusals_and_of_edits_that_help() -> None:
    """Or the law above would say nothing."""
    found = [fixes for seed in range(60) for _, fixes in classes(explained(a_world(Random(seed))))]
    assert len(found) > 60
    assert sum(bool(fixes) for fixes in found) > len(found) / 4
    assert len({type(fix) for fixes in found for fix in fixes}) >= 8


@RELAXED
@given(st.integers(0, 10**9))
def test_an_account_changes_no_placement_and_no_code(seed: int) -> None:
    snapshot = a_world(Random(seed))
    plain, told = solve(snapshot, pending(snapshot)), explained(snapshot)
    assert (told.placed, told.new_nodes, told.order) == (plain.placed, plain.new_nodes, plain.order)
    codes = {key: (refusal.code, refusal.text) for key, refusal in plain.unplaced.items()}
    assert {key: (refusal.code, refusal.text) for key, refusal in told.unplaced.items()} == codes
    for key, refusal in told.unplaced.items():
        assert set(plain.unplaced[key].pools) <= set(refusal.pools)
        for name, verdict in plain.unplaced[key].pools.items():
            assert refusal.pools[name].startswith(verdict[: LINE - 1])


@RELAXED
@given(st.integers(0, 10**9))
def test_the_funnel_adds_up(seed: int) -> None:
    """What a rule left is what was left before it less what it took, and at the end of a pool nothing is left."""
    for refusal in explained(a_world(Random(seed)), spend=0).unplaced.values():
        assert len(str(refusal)) <= WHOLE
        for pool in refusal.account.pools if refusal.account is not None else ():
            types, offerings = pool.types, pool.offerings
            for step in pool.steps:
                assert (step.types, step.offerings) == (types - step.lost_types, offerings - step.lost_offerings)
                types, offerings = step.types, step.offerings
            assert not pool.steps or (types, offerings) == (0, 0)
