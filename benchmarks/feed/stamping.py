"""The world of the feed, stamped out of the specimens: nodes with claims, instances and pods, and all the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import msgspec

from benchmarks.feed import services, shapes
from benchmarks.feed.services import Service
from benchmarks.feed.specimens import POOLS, WORKLOAD_PODS, Settled, Specimen
from benchmarks.feed.store import Store
from kerf.model import kinds
from kerf.sandbox.api.manifests import timestamp
from kerf.sandbox.aws.machines import Machine
from kerf_api.resources import Resources

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """A node of the world, as far as the feed's own scheduler and kubelets need it."""

    pool: str
    node: str
    claim: str
    address: str


@dataclass(frozen=True, slots=True)
class Running:
    """A pod of a Deployment that runs somewhere."""

    service: Service
    key: str
    place: Place


@dataclass(slots=True)
class World:
    """What was stamped: the instances for EC2, the places and running pods for the churn."""

    machines: list[tuple[Machine, str]]
    places: list[Place]
    running: list[Running]
    #: The next number for a pod of any service.
    number: int = 0


def fill(store: Store, settled: Settled, nodes: int, pods: int) -> World:
    """Put so many nodes and pods into the store: each node has its daemons, the rest are pods of Deployments."""
    world = World([], [], [])
    _few(store, settled, nodes, pods)
    daemons = services.daemons(settled.others["DaemonSet"])
    each = max(0, pods // max(nodes, 1) - len(daemons))
    if each > WORKLOAD_PODS:
        raise ValueError(f"at most {WORKLOAD_PODS + len(daemons)} pods fit on a node")
    by_pool = {pool: services.deployments(pool) for pool in POOLS}
    for number in range(nodes):
        specimen = settled.specimens[number % len(settled.specimens)]
        place = _stamp(store, world, specimen, number)
        started = timestamp(specimen.machine.launched + timedelta(seconds=30))
        own = by_pool[specimen.pool]
        for slot in range(each):
            service = own[(number * each + slot) % len(own)]
            world.running.append(_start(store, world, service, place, started))
        for daemon in daemons:
            _start(store, world, daemon, place, started)
    return world


def _start(store: Store, world: World, service: Service, place: Place, started: str) -> Running:
    world.number += 1
    value = service.pod(world.number, started, place.node, place.address, running=True)
    store.put(kinds.POD, value, quiet=True)
    meta = value["metadata"]
    return Running(service, f"{meta['namespace']}/{meta['name']}", place)


def _stamp(store: Store, world: World, specimen: Specimen, number: int) -> Place:
    """One node, its claim and its instance: the specimen's under names of their own."""
    address = f"10.{1 + number // 65536}.{number // 256 % 256}.{number % 256}"
    texts = dict(_names(specimen, number, address))
    claim, node = (_renamed(value, texts) for value in (specimen.claim, specimen.node))
    heard = timestamp(specimen.machine.launched + timedelta(minutes=10))
    store.put(kinds.NODE_CLAIM, claim, quiet=True)
    store.put(kinds.NODE, shapes.dressed_node(node, address, heard), quiet=True)
    machine = specimen.machine
    tags = {key: texts.get(value, value) for key, value in machine.tags.items()}
    world.machines.append((replace(machine, id=texts[machine.id], tags=tags), address))
    place = Place(specimen.pool, node["metadata"]["name"], claim["metadata"]["name"], address)
    world.places.append(place)
    return place


def _names(specimen: Specimen, number: int, address: str) -> Iterator[tuple[str, str]]:
    """The specimen's names, UIDs and IDs with those of the copy."""
    claim, node = specimen.claim["metadata"], specimen.node["metadata"]
    fresh = services.uid("node", number)
    yield claim["name"], f"{specimen.pool}-{fresh[:8]}"
    yield claim["uid"], services.uid("claim", number)
    yield node["name"], f"ip-{address.replace('.', '-')}.us-west-2.compute.internal"
    yield node["uid"], fresh
    yield specimen.machine.id, "i-" + services.uid("instance", number).replace("-", "")[:17]
    group = claim["annotations"]["kerf.sh/launch-group"]
    yield group, services.uid("group", number).replace("-", "")


def _renamed(value: Json, texts: dict[str, str]) -> Json:
    raw = msgspec.json.encode(value)
    for old, new in texts.items():
        raw = raw.replace(old.encode(), new.encode())
    found: Json = msgspec.json.decode(raw)
    return found


def _few(store: Store, settled: Settled, nodes: int, pods: int) -> None:
    """The objects of which there are few."""
    for name, kind in (("Namespace", kinds.NAMESPACE), ("EC2NodeClass", kinds.NODE_CLASS)):
        for value in settled.others[name]:
            store.put(kind, value, quiet=True)
    for pool in settled.others["NodePool"]:
        store.put(kinds.NODE_POOL, _counted(pool, settled, nodes), quiet=True)
    for value in settled.others["DaemonSet"]:
        status = dict.fromkeys(("currentNumberScheduled", "desiredNumberScheduled", "numberReady"), nodes)
        store.put(kinds.DAEMON_SET, {**value, "status": status}, quiet=True)
    for value in services.budgets(pods // (len(POOLS) * services.SERVICES_PER_POOL)):
        store.put(kinds.PDB, value, quiet=True)
    service = {"metadata": {"name": "kube-dns", "namespace": "kube-system", "uid": services.uid("kube-dns")}}
    store.put(kinds.SERVICE, {**service, "spec": {"clusterIP": "10.96.0.10"}}, quiet=True)


def _counted(pool: Json, settled: Settled, nodes: int) -> Json:
    """A NodePool whose status counts the nodes that will be there."""
    name, every = pool["metadata"]["name"], settled.specimens
    own = sum(every[number % len(every)].pool == name for number in range(nodes))
    capacity = Resources.parse(next(s.node for s in every if s.pool == name)["status"]["capacity"])
    resources = Resources({key: amount * own for key, amount in capacity.items()}).texts()
    status = {**pool["status"], "nodes": own, "resources": {**resources, "nodes": str(own)}}
    return {**pool, "status": status}
