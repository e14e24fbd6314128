"""Instance types and packing: behaviours 45 to 69 of the catalogue (scheduling reference §11)."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
import pytest

from kerf.model.kubernetes.objects import Pod
from kerf_api import labels
from kerf_api.requirements import IN, Requirements, requirement
from kerf_api.v1.meta import decode
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

AMD, ARM = {labels.ARCH: "amd64"}, {labels.ARCH: "arm64"}


def custom(spec: dict[str, Any]) -> Pod:
    """A pending pod with this spec."""
    pod = w.pod("p")
    raw = decode(Pod, {"metadata": {"name": "p", "namespace": "default", "uid": "uid-p"}, "spec": spec})
    return msgspec.structs.replace(pod, spec=raw.spec)


def container(**resources: dict[str, str]) -> dict[str, Any]:
    return {"name": "c", "resources": resources}


def test_045_a_pod_larger_than_any_type_waits() -> None:
    """And is told that nothing is large enough."""
    done = c.run(w.pool(), w.pod("p", "1000"))
    assert done.pending == ["p"]
    assert "no instance type has enough resources" in done.why()


def test_046_what_cannot_be_one_node_is_two() -> None:
    """Two architectures, operating systems, zones or types."""
    windows = c.machine("windows", 4, 4)
    rows = windows.requirements.without(labels.OS) & Requirements([requirement(labels.OS, IN, ("windows",))])
    windows = type(windows)("windows", rows, windows.capacity, windows.allocatable, windows.offerings)
    pairs = {
        labels.ARCH: ("amd64", "arm64"),
        labels.OS: ("linux", "windows"),
        labels.ZONE: ("z1", "z2"),
        labels.INSTANCE_TYPE: ("small", "default"),
    }
    for key, values in pairs.items():
        pods = [w.pod(value, nodeSelector={key: value}) for value in values]
        done = c.run(w.pool(), pods, catalogue=(*c.CATALOGUE, windows))
        assert done.sizes() == [1, 1]
        assert not done.pending


def test_047_an_architecture_excludes_the_types_of_the_other() -> None:
    """The list has no other."""
    assert c.run(w.pool(), w.pod("p", **c.wants((labels.ARCH, "In", ["arm64"])))).node.instance_types == ("arm",)


def test_048_a_pool_of_one_architecture_or_system_lists_only_such_types() -> None:
    """The pool's own requirements narrow the list as a pod's do."""
    arm = c.run(c.pool(c.row(labels.ARCH, "In", "arm64")), w.pod("p")).node
    assert arm.instance_types == ("arm",)
    linux = c.run(c.pool(c.row(labels.OS, "In", "linux"), c.row(labels.ARCH, "In", "amd64")), w.pod("p")).node
    assert set(linux.instance_types) == {"default", "small", "gpu-a", "gpu-b", "single-pod"}


def test_049_two_kinds_of_gpu_make_two_nodes() -> None:
    """No type has both, so a pod that wants both waits."""
    one, other = w.pod("a", requests={c.GPU_A: "1"}), w.pod("b", requests={c.GPU_B: "1"})
    assert c.run(w.pool(), one, other).types() == ["gpu-a", "gpu-b"]
    assert c.run(w.pool(), w.pod("p", requests={c.GPU_A: "1", c.GPU_B: "1"})).pending == ["p"]


def test_050_a_label_of_the_provider_picks_the_type() -> None:
    """A size and a type's name that contradict each other pick none."""
    sized = (c.machine("little", 2, 2, own={c.SIZE: "small"}), c.machine("big", 8, 8, own={c.SIZE: "large"}))
    for size, name in (("small", "little"), ("large", "big")):
        done = c.run(w.pool(), w.pod("p", nodeSelector={c.SIZE: size}), catalogue=sized)
        assert done.node.instance_types == (name,)
    torn = w.pod("p", nodeSelector={c.SIZE: "large", labels.INSTANCE_TYPE: "little"})
    assert c.run(w.pool(), torn, catalogue=sized).pending == ["p"]


def test_051_a_label_that_only_some_types_have() -> None:
    """Exists takes one of those, DoesNotExist one of the others."""
    types = (c.machine("plain", 2, 2), c.machine("special", 4, 4, own={c.SPECIAL: "x"}))
    for operator, name in (("Exists", "special"), ("DoesNotExist", "plain")):
        done = c.run(w.pool(), w.pod("p", **c.wants((c.SPECIAL, operator, []))), catalogue=types)
        assert done.types() == [name]


def test_052_the_smallest_type_that_fits_is_launched() -> None:
    """For 100 megabytes, and for 2000."""
    assert c.run(w.pool(), w.pod("p", memory="100M")).types() == ["small"]
    assert c.run(w.pool(), w.pod("p", memory="2000M")).types() == ["small"]


def test_053_five_small_pods_share_the_smallest_node() -> None:
    """As many as its slots."""
    done = c.run(w.pool(), w.replicas(5, "p", "10m", "10M"))
    assert (done.types(), done.sizes()) == (["small"], [5])


def test_054_pods_are_packed_by_memory() -> None:
    """40 pods of 1.8 GB are at best 20 nodes of `default`, which 20 small pods join."""
    big = w.replicas(40, "big", "10m", "1.8G", nodeSelector=AMD)
    done = c.run(w.pool(), big)
    assert sum(node.price for node in done.nodes) == 20 * 800_000
    tight = c.pool(c.row(labels.INSTANCE_TYPE, "In", "default"))
    assert c.run(tight, big).sizes() == [2] * 20
    assert c.run(tight, big, w.replicas(20, "small", "10m", "400M", nodeSelector=AMD)).sizes() == [3] * 20


def test_055_a_large_and_a_small_pod_take_two_types_of_the_ladder() -> None:
    """4.5 and 1 CPU are too much for the largest, so each has its own."""
    done = c.run(w.pool(), w.pod("big", "4.5"), w.pod("little", "1"), catalogue=c.ladder(5))
    assert done.types() == ["step-2", "step-5"]


def test_056_slots_bound_a_node() -> None:
    """25 tiny pods, five to a node."""
    done = c.run(w.pool(), w.replicas(25, "p", "1m", "1M", nodeSelector=AMD))
    assert done.sizes() == [5] * 5
    assert done.types() == ["small"] * 5


def test_057_the_overhead_of_a_runtime_counts() -> None:
    """One CPU asked for and two of overhead do not fit on `small`."""
    assert c.run(w.pool(), w.pod("p", "1", overhead={"cpu": "2"})).types() == ["default"]
    assert c.run(w.pool(), w.pod("p", "1")).types() == ["small"]


def test_058_init_containers_need_their_room() -> None:
    """Two CPU before one CPU; and memory that no type has."""
    main = container(requests={"cpu": "1", "memory": "10Mi"})
    two = container(requests={"cpu": "2"})
    assert c.run(w.pool(), custom({"containers": [main], "initContainers": [two]})).types() == ["default"]
    vast = container(requests={"memory": "1Ti"})
    assert c.run(w.pool(), custom({"containers": [main], "initContainers": [vast]})).pending == ["p"]


def test_059_sidecars_run_beside_what_starts_after_them() -> None:
    """The larger of the steps before and of all that runs together is what the pod needs."""
    main, half = container(requests={"cpu": "1"}), container(requests={"cpu": "500m"})
    sidecar = {**container(requests={"cpu": "1"}), "restartPolicy": "Always"}
    beside = custom({"containers": [main], "initContainers": [sidecar]})
    assert c.run(w.pool(), beside).node.requests["cpu"] == 2000
    before = custom({"containers": [half], "initContainers": [sidecar, container(requests={"cpu": "2"})]})
    assert c.run(w.pool(), before).node.requests["cpu"] == 3000
    after = custom({"containers": [half], "initContainers": [container(requests={"cpu": "2"}), sidecar]})
    assert c.run(w.pool(), after).node.requests["cpu"] == 2000


def test_060_requests_of_the_pod_replace_the_sum_of_its_containers() -> None:
    """Where the pod as a whole says what it needs."""
    main = container(requests={"cpu": "1", "memory": "10Mi"})
    done = c.run(w.pool(), custom({"containers": [main, main], "resources": {"requests": {"cpu": "3"}}}))
    assert done.node.requests["cpu"] == 3000
    assert done.types() == ["default"]


def test_061_none_of_an_unknown_resource_is_no_demand() -> None:
    """Zero of it fits everywhere, one of it nowhere."""
    assert c.run(w.pool(), w.pod("p", requests={"example.com/unknown": "0"})).node
    assert c.run(w.pool(), w.pod("p", requests={"example.com/unknown": "1"})).pending == ["p"]


def test_062_a_limit_without_a_request_is_a_request() -> None:
    """As the API server reads it."""
    pod = custom({"containers": [container(limits={"cpu": "3"})]})
    assert c.run(w.pool(), pod).types() == ["default"]


def test_063_all_that_fit_are_listed_and_the_cheapest_comes_first() -> None:
    """Even where the cheapest is the largest."""
    types = tuple(c.machine(n, cpu, cpu, price=p) for n, cpu, p in (("a", 2, 300), ("b", 4, 200), ("c", 8, 100)))
    assert c.run(w.pool(), w.pod("p"), catalogue=types).node.instance_types == ("c", "b", "a")


def test_064_prices_are_compared_over_what_is_allowed() -> None:
    """On demand only, the type that is cheap as spot is the dearer one."""
    one = c.machine("one", 4, 4, prices={("z1", "on-demand"): 1_000_000, ("z1", "spot"): 200_000})
    two = c.machine("two", 4, 4, prices={("z1", "on-demand"): 1_300_000, ("z1", "spot"): 100_000})
    strict = c.pool(c.row(labels.CAPACITY_TYPE, "In", "on-demand"))
    assert c.run(strict, w.pod("p"), catalogue=(one, two)).node.instance_types[0] == "one"
    assert c.run(w.pool(), w.pod("p"), catalogue=(one, two)).node.instance_types[0] == "two"


def _assorted() -> Any:
    """Types of two architectures, each with prices of its own in every market."""
    for number, (arch, cpu) in enumerate(product(("amd64", "arm64"), (2, 4, 8))):
        prices = {m: 1000 + (number * 7 + place * 5) % 11 for place, m in enumerate(w.MARKETS)}
        yield c.machine(f"{arch}-{cpu}", cpu, cpu, arch=arch, prices=prices)


@pytest.mark.parametrize("by_pool", [True, False], ids=["pool", "pod"])
def test_065_the_cheapest_compatible_offering_decides(by_pool: bool) -> None:
    """For every combination of architecture, zone and capacity type, asked for by the pool or by the pod."""
    catalogue = tuple(_assorted())
    choices = product((None, "amd64", "arm64"), (None, *w.ZONES), (None, "spot", "on-demand"))
    for arch, zone, kind in choices:
        wanted = {labels.ARCH: arch, labels.OS: "linux", labels.ZONE: zone, labels.CAPACITY_TYPE: kind}
        rows = {key: value for key, value in wanted.items() if value is not None}
        found = [
            (o.price, t.name)
            for t in catalogue
            for o in t.offerings
            if arch in (None, t.name.split("-")[0]) and zone in (None, o.zone) and kind in (None, o.capacity_type)
        ]
        pool = c.pool(*(c.row(k, "In", v) for k, v in rows.items())) if by_pool else w.pool()
        done = c.run(pool, w.pod("p", nodeSelector={} if by_pool else rows), catalogue=catalogue)
        if not found:
            assert done.pending == ["p"]
            continue
        assert done.node.price == min(found)[0]
        assert (done.node.price, done.node.instance_types[0]) in found


def test_066_a_combination_that_no_type_has() -> None:
    """An architecture that is for sale in other zones only."""
    types = (*c.CATALOGUE[:2], c.machine("arm", 16, 128, arch="arm64", markets=(("z1", "on-demand"),)))
    done = c.run(w.pool(), w.pod("p", nodeSelector={**ARM, labels.ZONE: "z2"}), catalogue=types)
    assert done.pending == ["p"]


@pytest.mark.parametrize(
    "rows",
    [
        [c.row(labels.INSTANCE_TYPE, "In", "unknown")],
        [c.row(labels.ARCH, "In", "unknown")],
        [c.row(labels.ZONE, "In", "unknown")],
        [c.row(labels.ZONE, "In", "z1"), c.row(labels.ZONE, "In", "z2")],
    ],
    ids=["type", "arch", "zone", "contradiction"],
)
def test_068_a_pool_without_types_says_so_to_every_pod(rows: list[Any]) -> None:
    """Types, architectures and zones that do not exist, or a contradiction."""
    done = c.run(c.pool(*rows), w.replicas(2, "p"))
    assert done.pending == ["p-0", "p-1"]
    for name in done.pending:
        assert "requirements filtered out all" in done.why(name)
        assert "available instance types" in done.why(name)


def test_069_one_pod_to_a_node() -> None:
    """Three pods, three nodes of the type with one slot."""
    done = c.run(c.pool(c.row(labels.INSTANCE_TYPE, "In", "single-pod")), w.replicas(3, "p"))
    assert done.sizes() == [1, 1, 1]
