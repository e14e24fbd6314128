"""The memory of machines: an estimate, until a node has shown what there is (119)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from kerf.ec2.instance_types.catalogue import build
from kerf.model import kinds
from kerf.model.aws.cloud import Image
from kerf.model.kubernetes.objects import Node
from kerf.runtime.inbox import Listed, RegionRead, Resolved
from kerf.runtime.state.catalogues import LEARN_EVERY
from kerf.runtime.state.learned import GRAIN_BYTES, KEPT
from kerf.runtime.state.state import State
from kerf_api import labels
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.ec2.ec2_facts import NOW, SETTINGS, facts, images, node_class, region

TYPES = ("m5.large", "m5.xlarge", "m6g.large")
MIB = 2**20
#: Estimates, and what nodes show.
ESTIMATES = {"m5.large": 7577 * MIB, "m5.xlarge": 15155 * MIB, "m6g.large": 7518 * MIB}
SHOWN = 7760 * MIB
CLASS = node_class()


def node(name: str = "a", memory: str = f"{SHOWN // 1024}Ki", **more: str) -> Node:
    tags = {labels.INSTANCE_TYPE: "m5.large", labels.REGISTERED: "true", **more}
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": "5", "labels": tags}
    status = {"capacity": {"memory": memory} if memory else {}}
    return decode(Node, {"metadata": meta, "spec": {"providerID": f"aws:///z/i-{name}"}, "status": status})


def claim(name: str = "a", image: str = "ami-1", group: str = labels.AWS_GROUP) -> NodeClaim:
    ref = {"group": group, "kind": "EC2NodeClass", "name": "default"}
    meta = {"name": name, "uid": f"uid-claim-{name}", "resourceVersion": "5"}
    status = {"providerID": f"aws:///z/i-{name}", "imageID": image, "nodeName": name}
    return decode(NodeClaim, {"metadata": meta, "spec": {"nodeClassRef": ref}, "status": status})


def known(*objects: Any, found: tuple[Image, ...] = ()) -> State:
    """A controller that has just read everything there is."""
    state = State(SETTINGS, build=build, interpret=lambda _: None)
    for kind in (kinds.NODE_CLASS, kinds.NODE, kinds.NODE_CLAIM):
        values = [one for one in (CLASS, *objects) if isinstance(one, kind.type)]
        state.take(Listed(kind, values, "1", NOW), NOW)
    state.take(RegionRead(region(*TYPES), NOW), NOW)
    resolve(state, *(found or images()))
    return state


def resolve(state: State, *found: Image) -> None:
    state.take(Resolved("default", "class-uid", facts(images=found), NOW), NOW)


def memory(state: State, after: timedelta = timedelta(0)) -> Mapping[str, int]:
    types = state.snapshot(NOW + after).catalogues["default"]
    return {type_.name: type_.capacity["memory"] for type_ in types}


def test_119_until_there_is_a_node_memory_is_estimated() -> None:
    assert memory(known()) == ESTIMATES


@pytest.mark.parametrize("reverse", [False, True])
def test_119_what_the_nodes_that_are_there_show_takes_its_place_from_the_first_look(reverse: bool) -> None:
    """Whoever begins anew lists nodes and claims in any order."""
    state = known()
    for kind, value in sorted([(kinds.NODE, node()), (kinds.NODE_CLAIM, claim())], key=str, reverse=reverse):
        state.put(kind, value, NOW)
    assert memory(state) == {**ESTIMATES, "m5.large": SHOWN}
    assert memory(known(node(), claim())) == {**ESTIMATES, "m5.large": SHOWN}


def test_119_what_the_system_keeps_is_taken_off_it() -> None:
    before, after = (
        next(t for t in state.snapshot(NOW).catalogues["default"] if t.name == "m5.large")
        for state in (known(), known(node(), claim()))
    )
    assert after.allocatable["memory"] - before.allocatable["memory"] == SHOWN - ESTIMATES["m5.large"]


def test_119_what_joins_later_is_taken_over_within_minutes() -> None:
    state = known()
    assert memory(state) == ESTIMATES
    state.put(kinds.NODE_CLAIM, claim(), NOW)
    state.put(kinds.NODE, node(), NOW)
    assert memory(state, LEARN_EVERY - timedelta(seconds=1)) == ESTIMATES
    assert memory(state, LEARN_EVERY)["m5.large"] == SHOWN


def test_119_with_other_images_the_estimate_is_back() -> None:
    state = known(node(), claim())
    newer = tuple(Image(f"new-{one.id}", one.name, one.architecture, variant=one.variant) for one in images())
    resolve(state, *newer)
    assert memory(state) == ESTIMATES
    resolve(state, *images())
    assert memory(state)["m5.large"] == SHOWN


def test_119_the_image_of_the_type_counts_wherever_it_is_listed() -> None:
    arm = next(one.id for one in images() if (one.architecture, one.variant) == ("arm64", "standard"))
    of_arm = node(**{labels.INSTANCE_TYPE: "m6g.large"})
    assert memory(known(of_arm, claim(image=arm))) == {**ESTIMATES, "m6g.large": SHOWN}
    assert memory(known(node(), claim(image=arm))) == ESTIMATES, "of another architecture"


def test_119_of_several_nodes_the_least_counts() -> None:
    least = (SHOWN - 64 * MIB) // 1024
    assert memory(known(node("a"), claim("a"), node("b", f"{least}Ki"), claim("b")))["m5.large"] == least * 1024
    a_little = SHOWN // 1024 - 5
    assert memory(known(node(memory=f"{a_little}Ki"), claim()))["m5.large"] == SHOWN - GRAIN_BYTES


@pytest.mark.parametrize(
    "objects",
    [
        (node(), claim(image="")),
        (node(), claim(image="ami-of-old")),
        (node(**{labels.REGISTERED: "false"}), claim()),
        (node(memory=""), claim()),
        (node(memory="much"), claim()),
        (node(), claim(group="other.example")),
        (node(),),
        (claim(),),
    ],
)
def test_119_nothing_is_learned_of_other_nodes(objects: tuple[Any, ...]) -> None:
    assert memory(known(*objects)) == ESTIMATES


def test_119_what_was_not_seen_for_two_months_is_forgotten() -> None:
    state = known(node(), claim())
    state.drop(kinds.ref(node()), NOW)
    state.drop(kinds.ref(claim()), NOW)
    assert memory(state, KEPT - LEARN_EVERY)["m5.large"] == SHOWN
    assert memory(state, KEPT) == ESTIMATES
