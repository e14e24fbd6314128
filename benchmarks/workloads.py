"""Workloads and catalogues to schedule, made from a seed; a command that writes them as JSON.

A workload is `{"description", "pods": [{"count", "template": Pod}]}`. A catalogue is a list of instance types with
`name`, `arch`, `os`, `allocatable` (cpu in milli-cores, memory in MiB, pods) and `offerings` (`zone`, `capacityType`,
`price` in dollars per hour, `available`). Other schedulers can read the same files.

    python -m benchmarks.workloads mixed 1000 --seed 1 > mixed.json
    python -m benchmarks.workloads families > catalogue.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from kerf.ec2.instance_types import catalogue as ec2_catalogue
from kerf.model.aws.cloud import ClassFacts, Image, Subnet
from kerf.model.settings import Settings
from kerf.sandbox.aws.catalogue import region
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode

Json = dict[str, Any]

_CPU_MILLIS: Final = (100, 250, 500, 1000, 1500)
_MEMORY_MIB: Final = (100, 256, 512, 1024, 2048, 4096)
_LETTERS: Final = "abcdefg"
_ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")


# --- pods -------------------------------------------------------------------------------------------------------
def pod(name: str, own: Json, cpu_millis: int, memory_mib: int, **spec: Any) -> Json:
    """A manifest with the labels `own`, one container and these requests."""
    requests = {"cpu": f"{cpu_millis}m", "memory": f"{memory_mib}Mi"}
    containers = [{"name": "main", "image": "app", "resources": {"requests": requests}}]
    metadata = {"name": name, "namespace": "default", "labels": own}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def spread(key: str, selected: Json) -> Json:
    """The part of a spec that spreads the selected pods evenly over a label's values."""
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [constraint | {"labelSelector": {"matchLabels": selected}}]}


def company(kind: str, key: str, selected: Json) -> Json:
    """The part of a spec that wants (`podAffinity`) or shuns (`podAntiAffinity`) the selected pods."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": selected}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def mixed(count: int, dice: Random) -> list[Json]:
    """A fifth each: plain, spread over zones, spread over hosts, near their own kind by zone, one to a host."""
    fifth = count // 5
    sorts: tuple[tuple[str, int, Callable[[], tuple[Json, Json]]], ...] = (
        ("plain", count - 4 * fifth, lambda: (_letter(dice), {})),
        ("zone-spread", fifth, lambda: (_letter(dice), spread(labels.ZONE, _letter(dice)))),
        ("host-spread", fifth, lambda: (_letter(dice), spread(labels.HOSTNAME, _letter(dice)))),
        ("zone-affinity", fifth, lambda: _together(_letter(dice, "my-affinity"))),
        ("host-anti-affinity", fifth, lambda: _apart({"app": "nginx"})),
    )
    rows = []
    for name, number, made in sorts:
        for i in range(number):
            own, spec = made()
            size = dice.choice(_CPU_MILLIS), dice.choice(_MEMORY_MIB)
            rows.append({"count": 1, "template": pod(f"{name}-{i}", own, *size, **spec)})
    return rows


def _letter(dice: Random, key: str = "my-label") -> Json:
    return {key: dice.choice(_LETTERS)}


def _together(own: Json) -> tuple[Json, Json]:
    return own, company("podAffinity", labels.ZONE, own)


def _apart(own: Json) -> tuple[Json, Json]:
    return own, company("podAntiAffinity", labels.HOSTNAME, own)


def plain(count: int, dice: Random) -> list[Json]:
    """Forty services of equal size, without any wish but for room."""
    sizes = [count // 40 + (i < count % 40) for i in range(40)]
    return [
        {
            "count": n,
            "template": pod(f"plain-{i}", {"app": f"plain-{i}"}, dice.choice(_CPU_MILLIS), dice.choice(_MEMORY_MIB)),
        }
        for i, n in enumerate(sizes)
        if n
    ]


def diverse(count: int, dice: Random) -> list[Json]:
    """Two hundred services without any wish but for room, no two of which ask for the same."""
    sizes = [(50 * cores, 128 * memory) for cores in range(1, 21) for memory in range(1, 20, 2)]
    dice.shuffle(sizes)
    numbers = [count // len(sizes) + (i < count % len(sizes)) for i in range(len(sizes))]
    return [
        {"count": n, "template": pod(f"diverse-{i}", {"app": f"diverse-{i}"}, *size)}
        for i, (n, size) in enumerate(zip(numbers, sizes, strict=True))
        if n
    ]


def services(count: int, dice: Random) -> list[Json]:
    """Services of 1 to 40 replicas, many spread over zones, some apart from each other, some with a node selector."""
    rows: list[Json] = []
    while count > 0:
        replicas = min(count, dice.choice((1, 2, 3, 3, 5, 8, 12, 20, 40)))
        name = f"svc-{len(rows)}"
        cpu = dice.choice((50, 100, 250, 500, 1000, 2000, 4000))
        memory = dice.choice((128, 256, 512, 1024, 2048, 4096, 8192, 16384))
        spec = _service_wishes(replicas, {"app": name}, dice)
        rows.append({"count": replicas, "template": pod(name, {"app": name}, cpu, memory, **spec)})
        count -= replicas
    return rows


def _service_wishes(replicas: int, own: Json, dice: Random) -> Json:
    spec: Json = {}
    if replicas >= 3 and dice.random() < 0.6:
        spec |= spread(labels.ZONE, own)
    if replicas <= 8 and dice.random() < 0.3:
        spec |= company("podAntiAffinity", labels.HOSTNAME, own)
    chance = dice.random()
    if chance < 0.2:
        spec["nodeSelector"] = {labels.CAPACITY_TYPE: dice.choice((labels.SPOT, labels.ON_DEMAND))}
    elif chance < 0.28:
        spec["nodeSelector"] = {labels.ARCH: "amd64"}
    return spec


KINDS: Final[dict[str, Callable[[int, Random], list[Json]]]] = {
    "mixed": mixed,
    "plain": plain,
    "diverse": diverse,
    "services": services,
}


def workload(kind: str, count: int, seed: int = 1) -> Json:
    """A workload of `count` pods. Raises KeyError for an unknown kind."""
    return {"description": f"{kind}, {count} pods, seed {seed}", "pods": KINDS[kind](count, Random(seed))}


# --- catalogues -------------------------------------------------------------------------------------------------
def synthetic(count: int = 400) -> list[Json]:
    """Types of 1, 2, 3 … cores with 2 GiB and 10 pods a core, of one price a core; spot costs as much as on-demand."""
    markets = [(f"test-zone-{zone}", labels.SPOT) for zone in (1, 2)]
    markets += [(f"test-zone-{zone}", labels.ON_DEMAND) for zone in (1, 2, 3)]
    return [
        {
            "name": f"synthetic-{cores - 1}",
            "arch": "amd64",
            "os": "linux",
            "allocatable": {"cpu": 1000 * cores, "memory": 2048 * cores, "pods": 10 * cores},
            "offerings": [_offering(*market, 0.3147 * cores) for market in markets],
        }
        for cores in range(1, count + 1)
    ]


def families(vm_memory_overhead_percent: float = 0.075) -> list[Json]:
    """Real c, m and r types of x86 in three zones, as the sandbox sells them, with what pods can have of each.

    That share of a machine's memory (0 to 1) never reaches its operating system.
    """
    sold = region(_ZONES)
    settings = Settings(cluster_name="benchmark", vm_memory_overhead_percent=vm_memory_overhead_percent)
    facts = ClassFacts(1, tuple(Subnet(f"subnet-{zone}", zone) for zone in _ZONES), images=(Image("ami-1"),))
    node_class = decode(EC2NodeClass, {"metadata": {"name": "default"}, "spec": {"amiFamily": "AL2023"}})
    types = ec2_catalogue.build(node_class, facts, sold, settings)
    return [
        {
            "name": t.name,
            "arch": "amd64",
            "os": "linux",
            "allocatable": {
                "cpu": t.allocatable["cpu"],
                "memory": t.allocatable["memory"] // 2**20,
                "pods": t.allocatable["pods"],
            },
            "offerings": [_offering(o.zone, o.capacity_type, o.price / 1e6, o.available) for o in t.offerings],
        }
        for t in types
        if t.name[0] in "cmr" and t.requirements.allowed(labels.ARCH).has("amd64")
    ]


def _offering(zone: str, capacity_type: str, price_usd_per_hour: float, available: bool = True) -> Json:
    return {"zone": zone, "capacityType": capacity_type, "price": price_usd_per_hour, "available": available}


CATALOGUES: Final[dict[str, Callable[[], list[Json]]]] = {"synthetic": synthetic, "families": families}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a workload or a catalogue to standard output."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.workloads", description="Write benchmark input as JSON."
    )
    parser.add_argument("kind", choices=(*KINDS, *CATALOGUES))
    parser.add_argument("count", type=int, nargs="?", default=1000, help="pods of a workload (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    made = CATALOGUES[chosen.kind]() if chosen.kind in CATALOGUES else workload(chosen.kind, chosen.count, chosen.seed)
    json.dump(made, sys.stdout, separators=(",", ":"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
