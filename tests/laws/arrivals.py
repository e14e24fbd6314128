"""Pods that come one after another, and the nodes for them: with orders before the close of their batch, or after it.

All is played at the room of provisioning, with times of its own: it is looked at whenever a pod comes or something is
due. A NodeClaim is there at the next look, and launched a second later as the cheapest of its types.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from random import Random
from typing import Any, Final

import msgspec

from benchmarks import scheduling, workloads
from kerf.model import kinds
from kerf.model.aws.instance_type import Catalogue, InstanceType, Offering
from kerf.model.cluster import Cluster
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Memory
from kerf.model.plan import CreateNodeClaim
from kerf.model.settings import Settings
from kerf.provisioning.provision import provision
from kerf.runtime.state.batching import BatchWindow
from kerf.runtime.state.promises import Promises
from kerf_api import labels
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.scheduling import worlds as w

SECOND: Final = timedelta(seconds=1)
_STEP: Final = SECOND / 10
_LAUNCH: Final = SECOND
_CPU: Final = (50, 100, 250, 500, 1000, 2000, 4000)
_MEMORY: Final = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
_MARKETS: Final[tuple[tuple[str, ...], ...]] = ((labels.SPOT, labels.ON_DEMAND), (labels.ON_DEMAND,), (labels.SPOT,))


@dataclass(frozen=True, slots=True)
class Arrivals:
    """NodePools, the instance types that they sell, and pods with the seconds at which each comes."""

    pools: tuple[Any, ...]
    catalogue: Catalogue
    pods: tuple[tuple[float, Pod], ...]


@cache
def families() -> Catalogue:
    return scheduling.read_catalogue(msgspec.json.encode(workloads.CATALOGUES["families"]()))


def arrivals(rng: Random, most: int) -> Arrivals:
    """1 to 20 Deployments in random sizes, one after another or mixed, 10 to 200 pods a second, up to `most` pods."""
    number, rate = rng.randint(1, 20), rng.uniform(10, 200)
    many = min(max(int(rate * rng.uniform(0.5, 12)), 5), most)
    shares = [rng.random() + 0.05 for _ in range(number)]
    kinds_ = sorted(rng.choices(range(number), shares, k=many))
    if rng.random() < 0.5:
        rng.shuffle(kinds_)
    sizes = [(f"{rng.choice(_CPU)}m", f"{rng.choice(_MEMORY)}Mi") for _ in range(number)]
    at, pods = 0.0, list[tuple[float, Pod]]()
    for i, kind in enumerate(kinds_):
        at += rng.expovariate(rate)
        pods.append((at, w.pod(f"d{kind}-{i}", *sizes[kind])))
    return Arrivals(tuple(_pools(rng)), families(), tuple(pods))


def _pools(rng: Random) -> list[Any]:
    found = list[Any]()
    for i in range(rng.randint(1, 3)):
        rows: list[dict[str, Any]] = [
            {"key": labels.CAPACITY_TYPE, "operator": "In", "values": list(rng.choice(_MARKETS))}
        ]
        if rng.random() < 0.3:
            chosen = rng.sample("cmr", rng.randint(1, 2))
            names = [one.name for one in families() if one.name[0] in chosen]
            rows.append({"key": labels.INSTANCE_TYPE, "operator": "In", "values": names})
        found.append(w.pool(f"pool-{i}", weight=rng.choice([0, 0, 10]), requirements=rows))
    return found


@dataclass(slots=True)
class Life:
    """What came of the arrivals: the price of all nodes, in millionths of a dollar per hour, of those that were ordered
    before the close too; the seconds at which nodes were ordered; the pods that have no place."""

    price: int = 0
    early: int = 0
    ordered: list[float] = field(default_factory=list)
    lost: int = 0


def lived(given: Arrivals, *, early: bool) -> Life:
    """Play the arrivals, with a look every tenth of a second, until the last batch is closed."""
    cluster, memory, window, promises, life = Cluster(), Memory(), BatchWindow(), Promises(), Life()
    settings, facts = Settings("test", early_orders=early), {"catalogues": {"default": given.catalogue}}
    for pool in given.pools:
        cluster.apply(kinds.NODE_POOL, pool)
    coming, flying = list(reversed(given.pods)), list[tuple[datetime, NodeClaim]]()
    now = w.NOW
    while coming or window.at(now) is not None:
        now += _STEP
        while coming and w.NOW + coming[-1][0] * SECOND <= now:
            at, pod = coming.pop()
            cluster.apply(kinds.POD, pod)
            window.trigger(pod.metadata.uid, w.NOW + at * SECOND)
        while flying and flying[0][0] <= now:
            claim = flying.pop(0)[1]
            cluster.apply(kinds.NODE_CLAIM, w.launched_as(claim, *_cheapest(given.catalogue, claim)))
        if window.at(now) is None:
            continue
        snapshot = cluster.snapshot(now=now, settings=settings, batch=window.at(now), **facts, **promises.facts)
        plan = provision(snapshot, memory.turn(snapshot))
        for claim in [action.claim for action in plan.actions if isinstance(action, CreateNodeClaim)]:
            named = msgspec.structs.replace(claim.metadata, uid=f"uid-{claim.name}")
            cluster.apply(kinds.NODE_CLAIM, stored := msgspec.structs.replace(claim, metadata=named))
            flying.append((now + _LAUNCH, stored))
            price = _cheapest(given.catalogue, claim)[1].price
            life.price += price
            life.early += 0 if plan.provisioned else price
            life.ordered.append((now - w.NOW) / SECOND)
        promises.planned(plan)
        if plan.provisioned:
            window.served(now)
            life.lost = sum(refusal.subject.startswith("pod/") for refusal in plan.refusals)
        elif plan.try_at is not None:
            window.tried(now, plan.try_at)
    return life


def _cheapest(catalogue: Catalogue, claim: NodeClaim) -> tuple[InstanceType, Offering]:
    wanted = claim.requirements()
    names = wanted.allowed(labels.INSTANCE_TYPE)
    sold = ((one, offer) for one in catalogue if names.has(one.name) for offer in one.offerings if offer.suits(wanted))
    return min(sold, key=lambda pair: (pair[1].price, pair[0].name, pair[1].zone))
