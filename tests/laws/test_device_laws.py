"""Laws of devices by claim on random worlds: the referee finds nothing; the same world has one answer; what was planned
once is found again, before the launch and after it."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kerf.model.snapshot import Snapshot
from kerf.provisioning.pending import pending_pods
from kerf.provisioning.provision import nominations
from kerf.scheduling.solve import Solution, solve
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.referee import violations
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import dra_world as d
from tests.unit.scheduling import worlds as w

RELAXED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NUMA = f"{d.DRIVER}/numa"


def a_device(rng: Random, number: int) -> dict[str, Any]:
    own: dict[str, Any] = {"attributes": {NUMA: rng.choice("01"), "model": rng.choice(["A", "B"])}}
    return d.device(f"gpu-{number}", **own)


def a_type(rng: Random, name: str) -> Any:
    kind = c.machine(name, rng.choice([4, 8, 16]), rng.choice([8, 16]), pods=20, price=rng.randint(1, 9) * 1_000_000)
    style, number = rng.random(), rng.randint(1, 4)
    if style < 0.25:
        return kind
    if style < 0.5:
        return d.offering(kind, d.pool_of("gpus", *(a_device(rng, i) for i in range(number))))
    if style < 0.75:
        more: dict[str, Any] = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "10"}}}
        return d.offering(kind, d.pool_of("gpus", *(d.device(f"gpu-{i}", **more) for i in range(number))))
    use = [{"counterSet": "board", "counters": {"n": {"value": str(rng.randint(1, 3))}}}]
    parts = [d.device(f"gpu-{i}", consumesCounters=use) for i in range(number)]
    budget = [{"name": "board", "counters": {"n": {"value": "5"}}}]
    return d.offering(kind, d.pool_of("gpus", *parts, sharedCounters=budget))


def a_claim(rng: Random, name: str, **more: Any) -> Any:
    exact: dict[str, Any] = rng.choice([{}, {}, {"count": rng.randint(1, 3)}, {"allocationMode": "All"}])
    if rng.random() < 0.2:
        exact = {**exact, "capacity": {"requests": {"memory": str(rng.randint(1, 12))}}}
    if rng.random() < 0.2:
        model = {
            "cel": {"expression": f'"{d.DRIVER}" in device.attributes && has(device.attributes["{d.DRIVER}"].model)'}
        }
        exact = {**exact, "selectors": [model]}
    if rng.random() < 0.2:
        more = {**more, "constraints": [{"matchAttribute": NUMA}]}
    if rng.random() < 0.2:
        subs = [{"name": f"n{n}", "deviceClassName": "gpu", "count": n} for n in (3, 1)]
        return d.claim(name, {"name": "r", "firstAvailable": subs}, **more)
    return d.claim(name, d.request(**exact), **more)


def a_node(rng: Random, name: str) -> list[Any]:
    """One that is there, with devices; some are held by a pod that runs on it."""
    kind = {labels.INSTANCE_TYPE: "seen"} if rng.random() < 0.3 else {}
    devices = [a_device(rng, i) for i in range(rng.randint(1, 3))]
    found = [w.node(name, zone=rng.choice(w.ZONES), labels=kind), d.published(name, *devices, node=name)]
    if rng.random() < 0.5:
        found += [d.pod(f"old-{name}", f"held-{name}", node=name)]
        found += [d.allocated(f"held-{name}", name, "gpu-0", f"old-{name}")]
    return found


def a_world(rng: Random) -> Snapshot:
    objects: list[Any] = [w.pool(), *d.classes()]
    for i in range(rng.randint(0, 3)):
        objects += a_node(rng, f"n{i}")
    if rng.random() < 0.4:
        where = {"key": labels.ZONE, "operator": "In", "values": [rng.choice(w.ZONES)]}
        there = {"nodeSelectorTerms": [{"matchExpressions": [where]}]}
        own: dict[str, Any] = {"nodeSelector": there} if rng.random() < 0.7 else {}
        objects.append(d.published("fabric", *(a_device(rng, 10 + i) for i in range(2)), **own))
    for i in range(rng.randint(1, 6)):
        objects.append(a_claim(rng, f"c{i}"))
        mates = rng.choice([1, 1, 1, 2])
        more = {"nodeSelector": {labels.ZONE: rng.choice(w.ZONES)}} if rng.random() < 0.2 else {}
        objects += [d.pod(f"p{i}-{n}", f"c{i}", cpu=rng.choice(["100m", "2", "3"]), **more) for n in range(mates)]
    objects += w.replicas(rng.randint(0, 4), "plain", rng.choice(["100m", "1", "3"]))
    types = (*(a_type(rng, f"type-{i}") for i in range(rng.randint(1, 4))), c.machine("seen", 8, 16, pods=20))
    return w.world(*objects, catalogue=types, ignore_dra_requests=False)


def solved(snapshot: Snapshot) -> Solution:
    pods, _ = pending_pods(snapshot)
    solution = solve(snapshot, pods)
    assert violations(snapshot, pods, solution) == []
    return solution


@RELAXED
@given(st.randoms(use_true_random=False))
def test_the_referee_finds_nothing_and_the_answer_is_the_same(rng: Random) -> None:
    snapshot = a_world(rng)
    solution = solved(snapshot)
    pods, _ = pending_pods(snapshot)
    assert solve(snapshot, list(reversed(pods))) == solution


def _marked(grown: NodeClaim, planned: NodeClaim) -> NodeClaim:
    """The launched claim, which remembers its pods."""
    meta = msgspec.structs.replace(grown.metadata, annotations=planned.metadata.annotations)
    return msgspec.structs.replace(grown, metadata=meta)


@RELAXED
@given(st.randoms(use_true_random=False), st.booleans())
def test_what_was_planned_is_found_again(rng: Random, launched: bool) -> None:
    first = a_world(rng)
    planned = solved(first)
    made = w.claims(first, planned)
    if launched:
        pairs = zip(made, planned.new_nodes, strict=True)
        made = [_marked(c.launched(one, node, first), one) for one, node in pairs]
    homes = dict(planned.placed)
    for one, node in zip(made, planned.new_nodes, strict=True):
        homes |= dict.fromkeys(node.pods, one.name)
    objects = [*first.node_pools.values(), *first.nodes.values(), *first.pods.values(), *first.device_classes.values()]
    objects += [*first.resource_slices.values(), *first.resource_claims.values(), *made]
    types = first.catalogues["default"]
    promised = nominations(first, planned, homes)
    second = w.world(*objects, catalogue=types, ignore_dra_requests=False, nominations=promised)
    again = solved(second)
    assert again.new_nodes == ()
    assert set(again.unplaced) <= set(planned.unplaced)
