"""Laws of NodeOverlays on random worlds: catalogues are what the referee, which asks every overlay anew, makes of them;
nothing depends on the order of news; what is remembered is what would be worked out anew."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kerf.model import kinds
from kerf.model.aws.instance_type import InstanceType, Offering
from kerf.model.cluster import Cluster
from kerf.model.settings import FeatureGates, Settings
from kerf.model.snapshot import Snapshot
from kerf.scheduling.solve import solve
from kerf_api import labels
from kerf_api.resources import Resources
from kerf_api.v1.nodeoverlay import NodeOverlay
from kerf_api.v1.nodepool import NodePool
from tests.referee import violations
from tests.referee.overlays import overlaid, refused
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

RELAXED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ON = Settings("test", gates=FeatureGates(node_overlay=True))
TYPES = (c.machine("one", 2, 4), c.machine("two", 4, 4), c.machine("gpu", 4, 8, gpu=c.GPU_A), c.machine("arm", 8, 8))
OTHERS = TYPES[1:]
ROWS = (
    c.row(labels.INSTANCE_TYPE, "In", "one", "two"),
    c.row(labels.INSTANCE_TYPE, "In", "gpu"),
    c.row(labels.INSTANCE_TYPE, "NotIn", "one"),
    c.row(labels.ZONE, "In", "z1", "z2"),
    c.row(labels.ZONE, "NotIn", "z1"),
    c.row(labels.CAPACITY_TYPE, "In", "spot"),
    c.row(labels.ZONE_ID, "DoesNotExist"),
    c.row(labels.NODEPOOL, "In", "pool-0"),
    c.row("team", "In", "red"),
    c.row("team", "DoesNotExist"),
    c.row(w.SIZE, "Gt", "2"),
    c.row(w.SIZE, "Lte", "4"),
    c.row("bad key", "Exists"),
)
SAID: tuple[dict[str, Any], ...] = (
    {"price": "0.25"},
    {"priceAdjustment": "-0.1"},
    {"priceAdjustment": "+7.5%"},
    {"capacity": {"example.com/x": "2"}},
    {"capacity": {"example.com/x": "3", "example.com/y": "1"}, "price": "1"},
    {"capacity": {c.GPU_A: "4"}, "priceAdjustment": "-50%"},
    {},
)


def an_overlay(rng: Random, name: str) -> NodeOverlay:
    odd = [ROWS[-1]] if rng.random() < 0.1 else []
    rows = [*rng.sample(ROWS[:-1], rng.randint(0, 2)), *odd]
    weight = rng.choice([{}, {}, {"weight": 1}, {"weight": 2}])
    made: NodeOverlay = c.made("NodeOverlay", name, spec={"requirements": rows, **rng.choice(SAID), **weight})
    return made


def a_pool(rng: Random, name: str) -> NodePool:
    return w.pool(name, labels=rng.choice([{}, {}, {"team": "red"}, {"team": "blue"}]), weight=rng.choice([0, 1]))


def objects(rng: Random) -> list[Any]:
    overlays = [an_overlay(rng, f"overlay-{i}") for i in range(rng.randint(1, 6))]
    return [*(a_pool(rng, f"pool-{i}") for i in range(rng.randint(1, 3))), *overlays]


def shown(types: Any) -> list[Any]:
    def one(t: InstanceType) -> Any:
        return t.name, t.capacity, t.allocatable, t.offerings

    return sorted(map(one, types), key=lambda row: str(row[0]))


def told(snapshot: Snapshot) -> Any:
    types = {name: shown(snapshot.types_for(name, pool.class_name)) for name, pool in snapshot.node_pools.items()}
    return types, dict(snapshot.overlay_faults)


@RELAXED
@given(st.integers(0, 10**9))
def test_catalogues_are_what_the_referee_makes_of_them(seed: int) -> None:
    snapshot = w.world(objects(Random(seed)), catalogue=TYPES, gates=ON.gates)
    for pool in snapshot.node_pools.values():
        assert shown(snapshot.types_for(pool.name, pool.class_name)) == shown(overlaid(snapshot, pool))
    assert set(snapshot.overlay_faults) == refused(snapshot)


@RELAXED
@given(st.integers(0, 10**9))
def test_the_referee_finds_nothing_in_a_pass(seed: int) -> None:
    rng = Random(seed)
    wants = [{}, {"example.com/x": "1"}, {"example.com/x": "2", "example.com/y": "1"}, {c.GPU_A: "3"}]
    pods = [w.pod(f"p-{i}", rng.choice(["500m", "1", "3"]), requests=rng.choice(wants)) for i in range(8)]
    snapshot = w.world(objects(rng), pods, catalogue=TYPES, gates=ON.gates)
    assert violations(snapshot, pods, solve(snapshot, pods)) == []


def a_catalogue(rng: Random) -> tuple[InstanceType, ...]:
    """Types of which some offerings have amounts of their own, more or less than the type, and other prices."""
    amounts = ({"cpu": 1_000}, {"cpu": 16_000, "memory": 32 << 30}, {"example.com/x": 2}, {"pods": 3})

    def offering(one: Offering) -> Offering:
        own = Resources(rng.choice(amounts)) if rng.random() < 0.3 else None
        return replace(one, capacity=own, price=rng.choice([0, one.price, 2 * one.price]))

    return tuple(replace(t, offerings=tuple(map(offering, t.offerings))) for t in TYPES)


@RELAXED
@given(st.integers(0, 10**9))
def test_the_referee_finds_nothing_where_offerings_have_amounts_of_their_own(seed: int) -> None:
    """Among many pods, so that nodes are filled in different sizes, with and without overlays."""
    rng = Random(seed)
    wants = [{}, {}, {"example.com/x": "1"}]
    wishes: list[dict[str, Any]] = [
        {},
        {},
        {"nodeSelector": {labels.ZONE: "z3"}},
        {"nodeSelector": {labels.CAPACITY_TYPE: "on-demand"}},
    ]
    pods = [
        w.pod(f"p-{i}", rng.choice(["100m", "500m", "3", "12"]), requests=rng.choice(wants), **rng.choice(wishes))
        for i in range(40)
    ]
    snapshot = w.world(objects(rng), pods, catalogue=a_catalogue(rng), gates=ON.gates)
    assert violations(snapshot, pods, solve(snapshot, pods)) == []


@RELAXED
@given(st.integers(0, 10**9))
def test_whatever_the_order_of_news_and_looks_the_answer_is_that_of_a_rebuild(seed: int) -> None:
    rng = Random(seed)
    news: list[Any] = [*objects(rng), *objects(rng)]
    rng.shuffle(news)
    cluster, known, gone = Cluster(), dict[Any, Any](), set[Any]()
    for value in news:
        ref = kinds.ref(value)
        if ref not in gone:
            known[ref] = value
            cluster.apply(kinds.BY_NAME[ref.kind], value)
        if ref in known and rng.random() < 0.2:
            cluster.remove(kinds.BY_NAME[ref.kind], "", ref.name)
            gone.add(ref)
            del known[ref]
        if rng.random() < 0.5:
            types = rng.choice([TYPES, OTHERS])
            seen = cluster.snapshot(now=w.NOW, settings=ON, catalogues={"default": types})
            anew = w.world(sorted(known.values(), key=repr), catalogue=types, gates=ON.gates)
            assert told(seen) == told(anew)
