"""Devices by claim beyond the catalogue: selectors, amounts, where templates come from, what shared claims mean."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kerf.model.kubernetes.devices import ResourceSliceSpec, SliceDevice
from kerf.scheduling.answers.solution import Grant
from kerf.scheduling.devices import pools, selectors, usage
from kerf.scheduling.devices.selectors import UnreadableSelector
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import dra_world as d
from tests.unit.scheduling import worlds as w
from tests.unit.scheduling.test_catalogue_reserved import reserving

PLAIN, RICH = c.machine("plain", 2, 2, pods=50), c.machine("rich", 8, 8, pods=50)
A100 = decode(
    SliceDevice,
    {
        "name": "gpu-0",
        "attributes": {
            "model": {"string": "A100"},
            "index": {"int": 3},
            "other.example.com/healthy": {"bool": True},
            "driverVersion": {"version": "1.20.3"},
        },
        "capacity": {"memory": {"value": "40Gi"}},
    },
)


# --- selectors ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ('device.driver == "gpu.example.com"', True),
        ('device.attributes["gpu.example.com"].model.lowerAscii().matches("^a1")', True),
        ('device.attributes["gpu.example.com"].index >= 4', False),
        ('device.attributes["other.example.com"].healthy', True),
        ('has(device.attributes["nobody.example.com"].healthy)', False),
        ('"nobody.example.com" in device.attributes && device.attributes["nobody.example.com"].healthy', False),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0', True),
        ('device.capacity["gpu.example.com"].memory.isLessThan(quantity("40960Mi"))', False),
        ('device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.9.0"))', True),
        ('device.attributes["gpu.example.com"].driverVersion.isLessThan(semver("1.20.3-rc.1"))', False),
        ('cel.bind(own, device.attributes["gpu.example.com"], own.model == "A100" && own.index in [1, 3])', True),
        ("device.allowMultipleAllocations", False),
    ],
)
def test_a_selector_sees_a_device_as_kubernetes_shows_it(expression: str, answer: bool) -> None:
    assert selectors.matches(expression, d.DRIVER, A100) is answer


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("device.driver ==", "cannot be read"),
        ('device.attributes["nobody.example.com"].model == "A100"', "fails on device gpu-0"),
        ('device.attributes[?"gpu.example.com"].hasValue()', "cannot be read"),
        ("device.driver", "is neither true nor false"),
        ('quantity("much").isLessThan(quantity("1"))', "fails on device gpu-0"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_the_text(expression: str, words: str) -> None:
    with pytest.raises(UnreadableSelector, match="CEL expression") as caught:
        selectors.matches(expression, d.DRIVER, A100)
    assert words in str(caught.value)


def test_a_claim_whose_selector_fails_says_which() -> None:
    row = {"cel": {"expression": 'device.attributes["gpu.example.com"].model == "A100"'}}
    done = d.run(d.classes(), d.claim("c", d.request(selectors=[row])), d.pod("p", "c"), catalogue=(d.gpus(RICH, 1),))
    assert done.pending == ["p"]
    assert "fails on device gpu-0" in done.why("p")


# --- amounts ------------------------------------------------------------------------------------------------------
def _device(policy: dict[str, Any] | None, *, shared: bool = True) -> SliceDevice:
    capacity = {"memory": {"value": "10", **({"requestPolicy": policy} if policy else {})}}
    return decode(SliceDevice, {"name": "x", "allowMultipleAllocations": shared, "capacity": capacity})


@pytest.mark.parametrize(
    ("policy", "asked", "taken"),
    [
        (None, {}, 10),
        (None, {"memory": "3"}, 3),
        (None, {"memory": "11"}, None),
        (None, {"cores": "1"}, None),
        ({"default": "2"}, {}, 2),
        ({"default": "2", "validValues": ["2", "4", "8"]}, {"memory": "3"}, 4),
        ({"default": "2", "validValues": ["2", "4", "8"]}, {"memory": "9"}, None),
        ({"default": "2", "validRange": {"min": "2", "step": "3"}}, {"memory": "6"}, 8),
        ({"default": "2", "validRange": {"min": "2", "max": "6"}}, {"memory": "1"}, 2),
        ({"default": "2", "validRange": {"min": "2", "max": "6"}}, {"memory": "7"}, None),
    ],
)
def test_what_a_request_takes_of_a_shared_device(
    policy: dict[str, Any] | None, asked: dict[str, str], taken: int | None
) -> None:
    share = usage.share_of(_device(policy), asked)
    assert share == (None if taken is None else {"memory": Fraction(taken)})


def test_of_a_device_that_is_not_shared_all_is_taken() -> None:
    assert usage.share_of(_device(None, shared=False), {"memory": "3"}) == {}
    assert usage.share_of(_device(None, shared=False), {"memory": "11"}) is None


def test_what_was_given_back_can_be_taken_again() -> None:
    spec = decode(
        ResourceSliceSpec,
        d.pool_of(
            "p",
            d.device("a", consumesCounters=[{"counterSet": "s", "counters": {"n": {"value": "2"}}}]),
            d.device("b", consumesCounters=[{"counterSet": "s", "counters": {"n": {"value": "2"}}}]),
            sharedCounters=[{"name": "s", "counters": {"n": {"value": "3"}}}],
        ),
    )
    one, other = pools.pools_of([spec], planned=True).devices
    taken = usage.Usage()
    taken.take(one, {})
    assert (taken.admits(one, {}), taken.admits(other, {})) == (False, False)
    taken.give_back(one, {})
    assert taken.admits(other, {})


# --- pools --------------------------------------------------------------------------------------------------------
def _slice(generation: int, count: int, *names: str) -> ResourceSliceSpec:
    pool = {"name": "p", "generation": generation, "resourceSliceCount": count}
    return decode(ResourceSliceSpec, {**d.pool_of("p", *map(d.device, names)), "pool": pool, "allNodes": True})


def test_only_the_latest_generation_counts_and_only_when_it_is_complete() -> None:
    assert [x.id[2] for x in pools.pools_of([_slice(1, 1, "old"), _slice(2, 1, "new")]).devices] == ["new"]
    half = pools.pools_of([_slice(1, 1, "old"), _slice(2, 2, "new")])
    assert (half.devices, list(half.unsound)) == ((), [(d.DRIVER, "p")])
    assert "two devices" in pools.pools_of([_slice(1, 2, "a"), _slice(1, 2, "a")]).unsound[d.DRIVER, "p"]
    bad = d.pool_of("p", d.device("a", capacity={"memory": {"value": "much"}}), allNodes=True)
    assert "much" in pools.pools_of([decode(ResourceSliceSpec, bad)]).unsound[d.DRIVER, "p"]


# --- where templates come from ------------------------------------------------------------------------------------
def _teacher(*, initialized: str = "true") -> list[Any]:
    """A full node of type rich, with two GPUs."""
    own = {labels.INSTANCE_TYPE: "rich", labels.INITIALIZED: initialized}
    attributes = {"uuid": "GPU-1", "model": "A100"}
    devices = [d.device(f"gpu-{i}", attributes=attributes) for i in range(2)]
    return [w.node("n", cpu="1", labels=own), w.pod("full", "1", node="n"), d.published("s", *devices, node="n")]


def test_a_type_has_the_devices_of_its_newest_ready_node() -> None:
    claims, pods = [d.claim(f"c{i}") for i in range(3)], [d.pod(f"p{i}", f"c{i}") for i in range(3)]
    done = d.run(d.classes(), _teacher(), claims, pods, catalogue=(PLAIN, RICH))
    assert (done.sizes(), done.types()) == ([1, 2], ["rich", "rich"])
    assert d.run(d.classes(), claims, pods, catalogue=(PLAIN, RICH)).nodes == ()


def test_what_only_one_machine_has_is_not_learned() -> None:
    def asking(name: str, value: str) -> Any:
        row = {"cel": {"expression": f'device.attributes["{d.DRIVER}"].?{name} == "{value}"'.replace(".?", ".")}}
        return d.claim("c", d.request(selectors=[row]))

    pod = d.pod("p", "c")
    assert d.run(d.classes(), _teacher(), asking("model", "A100"), pod, catalogue=(PLAIN, RICH)).types() == ["rich"]
    assert d.run(d.classes(), _teacher(), asking("uuid", "GPU-1"), pod, catalogue=(PLAIN, RICH)).pending == ["p"]


def _node_class(text: str) -> Any:
    return c.made("EC2NodeClass", "default", metadata={"annotations": {labels.DEVICE_TEMPLATES: text}})


def test_an_annotation_says_what_the_first_node_of_a_type_will_have() -> None:
    said = json.dumps([{"instanceTypes": ["rich"], "slices": [d.pool_of("gpus", d.device("gpu-0"))]}])
    objects = [*d.classes(), d.claim("c"), d.pod("p", "c")]
    assert d.run(objects, _node_class(said), catalogue=(PLAIN, RICH)).types() == ["rich"]
    done = d.run(objects, _node_class("[{"), catalogue=(PLAIN, RICH))
    assert done.pending == ["p"]
    assert labels.DEVICE_TEMPLATES in done.why("p")


# --- nodes --------------------------------------------------------------------------------------------------------
def test_the_cheapest_set_of_nodes_is_made() -> None:
    """Two small machines rather than one that has two devices and costs more."""
    small, large = c.machine("small", 4, 4, pods=50), c.machine("large", 8, 8, pods=50, price=9_000_000)
    claims, pods = [d.claim(f"c{i}") for i in range(2)], [d.pod(f"p{i}", f"c{i}") for i in range(2)]
    types = (d.gpus(small, 1), d.gpus(large, 2))
    assert d.run(d.classes(), claims, pods, catalogue=types).types() == ["small", "small"]
    cheap = (d.gpus(small, 1), d.gpus(c.machine("large", 8, 8, pods=50, price=1_000_000), 2))
    assert d.run(d.classes(), claims, pods, catalogue=cheap).types() == ["large"]


def test_other_pods_join_within_the_types_that_have_the_devices() -> None:
    done = d.run(d.classes(), d.claim("c"), d.pod("p", "c"), w.pod("q", "3"), catalogue=(PLAIN, d.gpus(RICH, 1)))
    assert (done.sizes(), done.types()) == ([2], ["rich"])


def test_a_device_of_the_cluster_narrows_the_node() -> None:
    there = {"key": labels.ZONE, "operator": "In", "values": ["z2"]}
    where = {"nodeSelectorTerms": [{"matchExpressions": [there]}]}
    own = d.published("s", d.device("fabric"), nodeSelector=where)
    done = d.run(d.classes(), own, d.claim("c"), d.pod("p", "c"), catalogue=(PLAIN,))
    assert done.node.zones == ("z2",)
    assert done.claims()[0].metadata.annotations.get(labels.REQUESTED_DRIVERS) is None
    both = [d.claim("c2"), d.pod("p2", "c2")]
    assert len(d.run(d.classes(), own, d.claim("c"), d.pod("p", "c"), both, catalogue=(PLAIN,)).pending) == 1


def test_results_are_named_by_request_and_alternative() -> None:
    subs = [{"name": "two", "deviceClassName": "gpu", "count": 2}, {"name": "one", "deviceClassName": "gpu"}]
    first = {"name": "r", "firstAvailable": subs}
    done = d.run(d.classes(), d.claim("c", first), d.pod("p", "c"), catalogue=(d.gpus(RICH, 1),))
    device = (d.DRIVER, "gpus", "gpu-0")
    assert done.node.devices == (Grant("default/c", "r/one", device, {}, "rich", planned=True),)


def test_a_young_node_gives_what_others_hold_of_it_to_nobody() -> None:
    """Also when its pool is published already, by another name than the template has."""
    types = (d.gpus(RICH, 2),)
    first = d.run(d.classes(), d.claim("c"), d.pod("p", "c"), catalogue=types)
    claim = c.launched(first.claims()[0], first.nodes[0], first.snapshot)
    young = [claim, c.node_of(claim, initialized=False), d.published("s", d.device("gpu-0"), node=claim.name)]
    holder = d.pod("old", "held", node=claim.name)
    held = d.allocated("held", "s", "gpu-0", "old")
    others, pods = [d.claim(f"c{i}") for i in range(2)], [d.pod(f"p{i}", f"c{i}") for i in range(2)]
    done = d.run(d.classes(), young, holder, held, others, pods, catalogue=types)
    assert sorted(done.placed.values()) == [claim.name]
    assert done.sizes() == [1]


def test_a_device_with_a_taint_is_for_those_who_tolerate_it() -> None:
    sick = d.offering(RICH, d.pool_of("gpus", d.device("gpu", taints=[{"key": "sick", "effect": "NoSchedule"}])))
    tolerant = d.request(tolerations=[{"key": "sick", "operator": "Exists"}])
    pod = d.pod("p", "c")
    assert d.run(d.classes(), d.claim("c"), pod, catalogue=(sick,)).pending == ["p"]
    assert d.run(d.classes(), d.claim("c", tolerant), pod, catalogue=(sick,)).node


def test_what_is_not_supported_is_said() -> None:
    objects = [*d.classes(), d.pod("p", "c")]
    for asked, words in (
        (d.request(adminAccess=True), "adminAccess is not supported"),
        (d.request(allocationMode="Some"), "allocation mode Some"),
        (d.request(count=33), "more than 32"),
        (d.request(device_class="tpu"), 'deviceclass "tpu" not found'),
    ):
        assert words in d.run(objects, d.claim("c", asked), catalogue=(d.gpus(RICH, 1),)).why("p")


def test_a_claim_from_a_template_is_the_one_that_was_made_for_the_pod() -> None:
    pod = d.pod("p", "c")
    row = [{"name": "c", "resourceClaimTemplateName": "t"}]
    raw = {**msgspec.to_builtins(pod.spec), "resourceClaims": row}
    told = msgspec.to_builtins(pod.status)
    meta = {"uid": "uid-default-p"}

    def of(*statuses: dict[str, str]) -> Any:
        return c.made(
            "Pod", "p", "default", metadata=meta, spec=raw, status={**told, "resourceClaimStatuses": statuses}
        )

    types = (d.gpus(RICH, 1),)
    assert "has not been made yet" in d.run(d.classes(), of(), catalogue=types).why("p")
    made = of({"name": "c", "resourceClaimName": "p-c-x"})
    assert d.run(d.classes(), d.claim("p-c-x"), made, catalogue=types).node.drivers == (d.DRIVER,)
    assert d.run(d.classes(), of({"name": "c", "resourceClaimName": ""}), catalogue=types).node.drivers == ()


def test_the_work_for_a_claim_is_bounded() -> None:
    """Thirty devices of which no eight agree: it is given up, and said so."""
    devices = [d.device(f"x{i}", attributes={f"{d.DRIVER}/a": str(i // 4), f"{d.DRIVER}/b": "1"}) for i in range(32)]
    same = [{"matchAttribute": f"{d.DRIVER}/b"}, {"requests": ["z"], "matchAttribute": f"{d.DRIVER}/a"}]
    hard = d.claim("c", d.request("y", count=8), d.request("z", count=5), constraints=same)
    types = (d.offering(RICH, d.pool_of("gpus", *devices)),)
    done = d.run(d.classes(), hard, d.pod("p", "c"), catalogue=types)
    assert done.pending == ["p"]
    assert "within 20000 steps" in done.why("p")


def test_reservations_are_left_to_pods_without_claims() -> None:
    """Such a pod gets a machine that is bought, and takes none that is reserved."""
    types = (reserving(d.gpus(RICH, 1), {"cr-1": 1}),)
    done = d.run(d.classes(), d.claim("c"), d.pod("p", "c"), catalogue=types)
    assert set(done.node.capacity_types) == {labels.SPOT, labels.ON_DEMAND}
    both = d.run(d.classes(), d.claim("c"), d.pod("p", "c", cpu="5"), w.pod("q", "5"), catalogue=types)
    assert both.of("q").capacity_types == (labels.RESERVED,)
    only: dict[str, Any] = {"nodeSelector": {labels.CAPACITY_TYPE: labels.RESERVED}}
    assert d.run(d.classes(), d.claim("c"), d.pod("p", "c", **only), catalogue=types).pending == ["p"]


def test_the_annotation_in_the_documentation_is_understood() -> None:
    text = (Path(__file__).parents[3] / "docs" / "scheduling.md").read_text(encoding="utf-8")
    shown = text.partition("kerf.sh/device-templates: |\n")[2].partition("```")[0]
    row = {"cel": {"expression": 'device.attributes["gpu.nvidia.com"].productName.matches("A10G")'}}
    claim = d.claim("c", d.request(selectors=[row]))
    types = (c.machine("g5.xlarge", 4, 16), PLAIN)
    done = d.run(d.classes(), claim, d.pod("p", "c"), _node_class(shown), catalogue=types)
    assert (done.types(), done.node.drivers) == (["g5.xlarge"], ("gpu.nvidia.com",))
