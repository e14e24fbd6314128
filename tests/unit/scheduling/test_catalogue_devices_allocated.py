"""Devices by claim (dynamic resource allocation), allocated: behaviours 223 to 233 of the catalogue."""

from __future__ import annotations

from typing import Any

import msgspec

from kerf_api import labels
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import dra_world as d
from tests.unit.scheduling import worlds as w

DRIVERS = "karpenter.sh/requested-dra-drivers"
PLAIN, SMALL = c.machine("plain", 2, 2, pods=50), c.machine("rich", 8, 8, pods=50)


def one_gpu() -> tuple[Any, ...]:
    """A plain type, and one with a device."""
    return (PLAIN, d.gpus(SMALL, 1))


def drivers(done: c.Pass) -> list[str | None]:
    return [claim.metadata.annotations.get(DRIVERS) for claim in done.claims()]


def test_223_a_claim_selects_types_that_have_the_device() -> None:
    """The claim of the node names the drivers; a pod without claims has none."""
    done = d.run(d.classes(), d.claim("c"), d.pod("p", "c"), catalogue=one_gpu())
    assert done.node.instance_types == ("rich",)
    assert drivers(done) == [d.DRIVER]
    assert drivers(d.run(w.pod("p"), catalogue=one_gpu())) in ([None], [""])


def test_224_a_device_is_had_once() -> None:
    """Two pods and two devices: one node. Three pods: a second node."""
    claims = [d.claim(f"c{i}") for i in range(3)]
    pods = [d.pod(f"p{i}", f"c{i}") for i in range(3)]
    two = (PLAIN, d.gpus(SMALL, 2))
    assert d.run(d.classes(), claims, pods[:2], catalogue=two).sizes() == [2]
    assert d.run(d.classes(), claims, pods, catalogue=two).sizes() == [1, 2]


def test_225_all_devices_equal_devices_and_two_drivers() -> None:
    """All takes every one; MatchAttribute holds across requests; drivers are named in order."""
    every = d.claim("all", d.request(allocationMode="All"))
    two = (d.gpus(SMALL, 2),)
    assert d.run(d.classes(), every, d.pod("a", "all"), d.claim("c"), d.pod("b", "c"), catalogue=two).sizes() == [1, 1]
    same = [{"requests": ["a", "b"], "matchAttribute": f"{d.DRIVER}/numa"}]
    alike = d.claim("alike", d.request("a"), d.request("b"), constraints=same)
    for second, fits in (("0", True), ("1", False)):
        devices = [d.device(n, attributes={f"{d.DRIVER}/numa": v}) for n, v in (("x", "0"), ("y", second))]
        types = (d.offering(SMALL, d.pool_of("gpus", *devices)),)
        assert (not d.run(d.classes(), alike, d.pod("p", "alike"), catalogue=types).pending) == fits
    nic = d.pool_of("nics", d.device("nic"), driver="a-nic.example.com")
    selector = {"cel": {"expression": 'device.driver == "a-nic.example.com"'}}
    both = d.claim("both", d.request("a", selectors=[selector]), d.request("b"))
    types = (d.offering(SMALL, d.pool_of("gpus", d.device("gpu")), nic),)
    assert drivers(d.run(d.classes(), both, d.pod("p", "both"), catalogue=types)) == [f"a-nic.example.com,{d.DRIVER}"]


def test_226_the_first_alternative_that_can_be_had() -> None:
    """Two devices, else one."""
    first = {"name": "r", "firstAvailable": [_sub("two", 2), _sub("one", 1)]}
    for count, pods in ((2, 1), (1, 1)):
        done = d.run(d.classes(), d.claim("c", first), d.pod("p", "c"), catalogue=(d.gpus(SMALL, count),))
        assert done.sizes() == [pods]
    pair = d.claim("c", {**first, "firstAvailable": [_sub("two", 2)]})
    done = d.run(d.classes(), pair, d.pod("p", "c"), catalogue=one_gpu())
    assert done.pending == ["p"]


def _sub(name: str, count: int) -> dict[str, Any]:
    return {"name": name, "deviceClassName": "gpu", "count": count}


def test_227_what_is_missing_is_waited_for() -> None:
    """The claim, the class, a type with the device."""
    pod = d.pod("p", "c")
    assert d.run(d.classes(), pod, catalogue=one_gpu()).pending == ["p"]
    assert d.run(d.classes(), d.claim("c"), pod, catalogue=one_gpu()).node
    assert d.run(d.claim("c"), pod, catalogue=one_gpu()).pending == ["p"]
    assert d.run(d.classes(), d.claim("c"), pod, catalogue=(PLAIN,)).pending == ["p"]


def _in_zone(zone: str) -> dict[str, Any]:
    row = {"key": labels.ZONE, "operator": "In", "values": [zone]}
    return {"nodeSelectorTerms": [{"matchExpressions": [row]}]}


def test_228_claims_that_are_tied_to_zones() -> None:
    """To two: nowhere. To one: there."""
    slices = [
        d.published(f"s-{z}", d.device(f"d-{z}"), d.device(f"e-{z}"), nodeSelector=_in_zone(z)) for z in ("z1", "z2")
    ]
    for other, fits in (("z2", False), ("z1", True)):
        tied = [
            d.allocated("a", "s-z1", "d-z1", nodeSelector=_in_zone("z1")),
            d.allocated("b", f"s-{other}", f"e-{other}", nodeSelector=_in_zone(other)),
        ]
        done = d.run(d.classes(), slices, tied, d.pod("p", "a", "b"), catalogue=one_gpu())
        assert done.pending == ([] if fits else ["p"])
        if fits:
            assert done.node.zones == ("z1",)


def test_229_devices_that_nodes_have() -> None:
    """A published one is used before a node is bought; slices of unknown nodes are nobody's."""
    node, own = w.node("n"), d.published("s", d.device("gpu"), node="n")
    pod = d.pod("p", "c")
    assert d.run(d.classes(), d.claim("c"), node, own, pod, catalogue=one_gpu()).placed == {"p": "node/n"}
    stranger = d.published("s", d.device("gpu"), node="unknown")
    assert d.run(d.classes(), d.claim("c"), node, stranger, pod, catalogue=(PLAIN,)).pending == ["p"]
    first = d.run(d.classes(), d.claim("c"), pod, catalogue=one_gpu())
    claim = c.launched(first.claims()[0], first.nodes[0], first.snapshot)
    young = [claim, c.node_of(claim, initialized=False)]
    rest = [d.claim("c2"), d.pod("p2", "c2")]
    assert d.run(d.classes(), d.claim("c"), young, pod, catalogue=one_gpu()).placed == {"p": claim.name}
    assert len(d.run(d.classes(), d.claim("c"), young, pod, rest, catalogue=one_gpu()).nodes) == 1


def test_230_a_claim_that_pods_share() -> None:
    """Of a device that a node brings: both pods on that node. Of one in the cluster: it is taken once."""
    big = {"cpu": "5"}
    pods = [d.pod(f"p{i}", "c", **big) for i in range(2)]
    assert len(d.run(d.classes(), d.claim("c"), pods, catalogue=one_gpu()).pending) == 1
    small = [d.pod(f"p{i}", "c") for i in range(2)]
    assert d.run(d.classes(), d.claim("c"), small, catalogue=one_gpu()).sizes() == [2]
    shared = d.published("s", d.device("one"))
    assert d.run(d.classes(), d.claim("c"), shared, small, catalogue=(PLAIN,)).pending == []


def test_231_a_device_is_free_when_no_claim_holds_it() -> None:
    """Held by a living pod it is not; by one that is going it is."""
    node, own = w.node("n"), d.published("s", d.device("gpu"), node="n")
    holder = d.pod("old", "held", node="n")
    held = d.allocated("held", "s", "gpu", "old")
    objects = [*d.classes(), node, own, held, d.claim("c"), d.pod("p", "c")]
    assert d.run(objects, holder, catalogue=(PLAIN,)).pending == ["p"]
    meta = {"uid": "uid-default-old", "deletionTimestamp": "2026-01-01T11:59:00Z"}
    going = c.made("Pod", "old", "default", metadata=meta, spec=msgspec.to_builtins(holder.spec))
    assert d.run(objects, going, catalogue=(PLAIN,)).placed == {"p": "node/n"}


def _consuming(amount: str | None, name: str = "c") -> Any:
    asked: dict[str, Any] = {} if amount is None else {"capacity": {"requests": {"memory": amount}}}
    return d.claim(name, d.request(**asked))


def _shared(total: str, default: str) -> Any:
    capacity = {"memory": {"value": total, "requestPolicy": {"default": default}}}
    return d.offering(SMALL, d.pool_of("gpus", d.device("gpu", allowMultipleAllocations=True, capacity=capacity)))


def test_232_a_device_that_is_shared_by_amounts() -> None:
    """It takes pods until it is used up, then there is another node; too much, or an unknown amount, never fits."""
    types = (_shared("10Gi", "5Gi"),)
    pods = [d.pod(f"p{i}", f"c{i}") for i in range(3)]
    assert d.run(d.classes(), [_consuming("5Gi", f"c{i}") for i in range(3)], pods, catalogue=types).sizes() == [1, 2]
    assert d.run(d.classes(), [_consuming(None, f"c{i}") for i in range(3)], pods, catalogue=types).sizes() == [1, 2]
    assert d.run(d.classes(), _consuming("11Gi"), d.pod("p", "c"), catalogue=types).pending == ["p"]
    odd = d.claim("c", d.request(capacity={"requests": {"unknown": "1"}}))
    assert d.run(d.classes(), odd, d.pod("p", "c"), catalogue=types).pending == ["p"]


def test_a_request_gets_a_shared_device_once_and_several_requests_share_it() -> None:
    """Source: the allocator of Kubernetes 1.36, which goes on with the next device."""
    types = (_shared("10Gi", "1Gi"),)
    twice = d.claim("c", d.request(count=2))
    assert d.run(d.classes(), twice, d.pod("p", "c"), catalogue=types).pending == ["p"]
    two = d.claim("c", d.request("a"), d.request("b"))
    assert d.run(d.classes(), two, d.pod("p", "c"), catalogue=types).pending == []


def test_a_selector_that_fails_on_a_device_that_is_not_needed_does_no_harm() -> None:
    devices = (d.device("one", attributes={"model": "a"}), d.device("other"))
    named = {"cel": {"expression": 'device.attributes["gpu.example.com"].model == "a"'}}
    for order, pending in ((devices, []), (devices[::-1], ["p"])):
        types = (d.offering(SMALL, d.pool_of("gpus", *order)),)
        asked = d.claim("c", d.request(selectors=[named]))
        assert d.run(d.classes(), asked, d.pod("p", "c"), catalogue=types).pending == pending


def test_233_parts_of_a_device_share_its_counters() -> None:
    """As many as the budget allows; what is above it, or counts on an unknown budget, never fits."""

    def sliced(need: str, counter_set: str = "board") -> Any:
        consumes = [{"counterSet": counter_set, "counters": {"memory": {"value": need}}}]
        parts = [d.device(f"part-{i}", consumesCounters=consumes) for i in range(4)]
        budget = [{"name": "board", "counters": {"memory": {"value": "10Gi"}}}]
        return d.offering(SMALL, d.pool_of("gpus", *parts, sharedCounters=budget))

    claims, pods = [d.claim(f"c{i}") for i in range(3)], [d.pod(f"p{i}", f"c{i}") for i in range(3)]
    assert d.run(d.classes(), claims, pods, catalogue=(sliced("5Gi"),)).sizes() == [1, 2]
    assert len(d.run(d.classes(), claims, pods, catalogue=(sliced("11Gi"),)).pending) == 3
    assert len(d.run(d.classes(), claims, pods, catalogue=(sliced("5Gi", "unknown"),)).pending) == 3
