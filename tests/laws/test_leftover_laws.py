"""Laws of limits: who waits has no place, neither on a planned node as one of its types nor on one more.

The referee says what is a place: he is shown the answer with one pod more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any, Final

import pytest

from kerf.model.aws.instance_type import Catalogue, InstanceType
from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.pods import requests
from kerf.model.snapshot import Snapshot
from kerf.scheduling.answers.solution import NewNode, Solution
from kerf.scheduling.solve import SolveOptions, solve
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from tests.laws.test_capacity_laws import a_type
from tests.referee import violations
from tests.referee.places import offers
from tests.unit.scheduling import worlds as w

LIMITS: Final = ({"cpu": "4"}, {"cpu": "12", "memory": "24Gi"}, {"memory": "16Gi"}, {"nodes": "1"}, {"nodes": "2"})
WISHES: Final[tuple[dict[str, str], ...]] = (
    {},
    {},
    {labels.CAPACITY_TYPE: "on-demand"},
    {labels.CAPACITY_TYPE: "spot"},
    {labels.ZONE: "z2"},
)
SOME: Final = range(40)
MANY: Final = range(1000, 1400)


def a_world(rng: Random) -> Snapshot:
    """NodePools with limits, and pods that ask for nothing of each other; some are more important."""
    pools = [a_pool(rng, f"pool-{i}") for i in range(rng.randint(1, 3))]
    pods: list[Pod] = []
    for i in range(rng.randint(2, 5)):
        size = rng.choice(["100m", "600m", "1500m", "2500m"]), rng.choice(["100Mi", "1Gi", "3Gi"])
        spec: dict[str, Any] = {"nodeSelector": rng.choice(WISHES), "priority": rng.choice([0, 0, 10])}
        if rng.random() < 0.1:
            spec["ports"] = [{"hostPort": 80}]
        pods += w.replicas(rng.choice([1, 2, 3, 5, 8]), f"app-{i}", *size, **spec)
    catalogue: Catalogue = tuple(a_type(rng, f"type-{i}") for i in range(rng.randint(2, 6)))
    return w.world(pools, pods, catalogue=rng.choice([catalogue, w.CATALOGUE, w.ladder(6)]))


def a_pool(rng: Random, name: str) -> Any:
    rows: list[dict[str, Any]] = []
    if rng.random() < 0.3:
        rows.append({"key": labels.ZONE, "operator": "In", "values": rng.sample(w.ZONES, rng.randint(1, 2))})
    if rng.random() < 0.2:
        rows.append({"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 2})
    return w.pool(name, requirements=rows, limits=rng.choice(LIMITS), weight=rng.choice([0, 0, 5]))


def with_one_more(snapshot: Snapshot, found: Solution, pod: Pod) -> Iterator[Solution]:
    """The answer with a pod that waits on each planned node, as each of its types, and on each node that might be."""
    waiting = {key: why for key, why in found.unplaced.items() if key != pod.key}
    wish = Requirements(requirement(key, IN, (value,)) for key, value in pod.spec.node_selector.items())
    types = snapshot.catalogues["default"]
    for i, node in enumerate(found.new_nodes):
        for one in types:
            if one.name in node.instance_types and (larger := joined(snapshot, node, one, wish, pod)) is not None:
                yield replace(
                    found, unplaced=waiting, new_nodes=(*found.new_nodes[:i], larger, *found.new_nodes[i + 1 :])
                )
    for name, pool in snapshot.node_pools.items():
        empty = NewNode(
            pool=name,
            requirements=pool.requirements(),
            instance_types=(),
            requests=requests(pod) - requests(pod),
            pods=(),
            price=0,
            zones=(),
            capacity_types=(),
        )
        for one in types:
            if (further := joined(snapshot, empty, one, wish, pod)) is not None:
                yield replace(found, unplaced=waiting, new_nodes=(*found.new_nodes, further))


def joined(snapshot: Snapshot, node: NewNode, one: InstanceType, wish: Requirements, pod: Pod) -> NewNode | None:
    """The node as this type with the pod on it; None when it cannot be had so."""
    if node.requirements.conflict(wish) is not None:
        return None
    both = node.requirements & wish
    prices = [offer.price for offer in offers(snapshot, both, one)]
    if not prices:
        return None
    return replace(
        node,
        requirements=both,
        instance_types=(one.name,),
        requests=node.requests + requests(pod),
        pods=(*node.pods, pod.key),
        price=min(prices),
    )


def left_in_vain(seed: int, improve: timedelta) -> list[str]:
    """Pods that wait although there is a place; of pods that are alike, one."""
    snapshot = a_world(Random(seed))
    pods = list(snapshot.pods.pending.values())
    found = solve(snapshot, pods, SolveOptions(improve=improve))
    assert violations(snapshot, pods, found) == []
    kinds = {key.rsplit("-", 1)[0]: snapshot.pods[key] for key in found.unplaced}
    trials = ((pod.key, trial) for pod in kinds.values() for trial in with_one_more(snapshot, found, pod))
    return sorted({key for key, trial in trials if not violations(snapshot, pods, trial)})


@pytest.mark.parametrize("improve", [timedelta(), timedelta(seconds=0.05)])
def test_who_waits_has_no_place(improve: timedelta) -> None:
    assert {seed: keys for seed in SOME if (keys := left_in_vain(seed, improve))} == {}


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_who_waits_has_no_place_in_many_worlds() -> None:
    assert {seed: keys for seed in MANY if (keys := left_in_vain(seed, timedelta(seconds=0.05)))} == {}
