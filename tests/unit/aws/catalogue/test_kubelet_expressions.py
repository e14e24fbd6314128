"""Expressions in the kubelet configuration of an EC2NodeClass, and one that cannot be decoded (115 to 117, 192)."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.ec2.instance_types.catalogue import build
from kerf.ec2.nodeclass import validation
from kerf.model import kinds
from kerf.model.aws.instance_type import Catalogue
from kerf.model.settings import FeatureGates
from kerf.runtime.state.catalogues import Catalogues
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from tests.unit.ec2.ec2_facts import SETTINGS, catalogue, facts, node_class, region
from tests.unit.ec2.test_nodeclass import status, verdict
from tests.unit.lifecycle.world import NOW, World, large, node_pool
from tests.unit.lifecycle.world import node_class as stored

OPEN = FeatureGates(node_class_cel=True)
MIB = 2**20
SOUND = {"maxPods": 10}


class Listed:
    """The types of one class, as the runtime has them."""

    def __init__(self, *types: str, gates: FeatureGates = OPEN) -> None:
        self.made = Catalogues(changed(SETTINGS, gates=gates), build)
        self.made.region = region(*types or ("m5.large", "m5.xlarge"))
        self.generation, self.gates = 0, gates

    def types(self, **kubelet: Any) -> Catalogue | None:
        """The class is given this configuration; None: its types are not known."""
        self.generation += 1
        of = self._class(kubelet)
        self.made.resolved("default", "class-uid", facts(generation=self.generation), NOW)
        return self.made.catalogues([of]).get("default")

    def told(self, **kubelet: Any) -> tuple[str, str, str]:
        """What the condition says of such a class."""
        self.types(**kubelet)
        of = self._class(kubelet)
        new = status(of, self.made.facts["default"], settings=changed(SETTINGS, gates=self.gates))
        row = next(row for row in new.conditions if row.type == validation.CONDITION)
        return row.status, row.reason, row.message

    def _class(self, kubelet: dict[str, Any]) -> EC2NodeClass:
        of = node_class(kubelet=kubelet)
        return replace(of, metadata=replace(of.metadata, generation=self.generation))


def pods(types: Catalogue | None) -> dict[str, int]:
    assert types is not None
    return {type_.name: type_.capacity["pods"] for type_ in types}


# --- 115 --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("broken", [{"nope": 1}, {"podsPerCore": "many"}, {"kubeReserved": ["cpu"]}])
@pytest.mark.parametrize("gates", [OPEN, FeatureGates()], ids=["open", "closed"])
def test_115_a_configuration_that_cannot_be_decoded_gives_no_types_until_it_is_corrected(
    broken: dict[str, Any], gates: FeatureGates
) -> None:
    listed = Listed(gates=gates)
    assert listed.types(**broken) is None
    assert listed.told(**broken)[:2] == ("False", "InvalidKubeletConfiguration")
    assert pods(listed.types(**SOUND)) == {"m5.large": 10, "m5.xlarge": 10}
    assert listed.told(**SOUND)[:2] == ("True", "ValidationSucceeded")
    assert listed.types(**broken) is None


def test_115_one_type_that_fails_leaves_none() -> None:
    """What was known of the others before is not kept either."""
    listed = Listed("m5.large", "m5.xlarge", "c5.large")
    assert len(listed.types(**SOUND) or ()) == 3
    failing = "20 + 10 / (vcpus - 4)"
    assert listed.types(maxPods=failing) is None
    state, reason, message = listed.told(maxPods=failing)
    assert (state, reason) == ("False", "KubeletExpressionEvaluationFailed")
    assert "m5.xlarge" in message
    listed.made.region = region("m5.large", "c5.large")
    assert pods(listed.types(maxPods=failing)) == {"c5.large": 15, "m5.large": 15}


# --- 116 --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        "-1",
        "vcpus - 64",
        "2147483648",
        "vcpus * 1073741824",
        "100 / (vcpus - 2)",
        "9223372036854775807 + vcpus",
        "1.0/0.0",
    ],
)
def test_116_max_pods_that_no_kubelet_takes_give_no_types(text: str) -> None:
    assert Listed().types(maxPods=text) is None
    state, reason, message = Listed().told(maxPods=text)
    assert (state, reason) == ("False", "KubeletExpressionEvaluationFailed")
    assert message.startswith("maxPods: ")


@pytest.mark.parametrize(("text", "found"), [("0", 0), ("2147483647", 2147483647), ("vcpus * 8.9", None), ("8.9", 8)])
def test_116_what_kubelets_take_is_taken(text: str, found: int | None) -> None:
    types = Listed("m5.large").types(maxPods=text)
    assert types is None if found is None else pods(types) == {"m5.large": found}


@pytest.mark.parametrize("text", ["vcpus * 8", "-1", "no expression at all"])
def test_116_while_the_gate_is_closed_types_have_the_pods_that_they_have_by_themselves(text: str) -> None:
    listed = Listed(gates=FeatureGates())
    assert pods(listed.types(maxPods=text)) == pods(listed.types()) == {"m5.large": 29, "m5.xlarge": 58}
    assert listed.told(maxPods=text)[:2] == ("False", "KubeletExpressionsDisabled")


# --- 117 --------------------------------------------------------------------------------------------------------
def kept(**kubelet: Any) -> dict[str, int]:
    """MiB that kubelets keep on an m5.large, beside what evictions leave."""
    gates = changed(SETTINGS, gates=OPEN)
    (type_,) = catalogue("m5.large", of=node_class(kubelet=kubelet), settings=gates)
    return {name: type_.capacity[name] - type_.allocatable[name] for name in ("cpu", "memory")}


@pytest.mark.parametrize(
    ("most", "pods_"),
    [({"maxPods": "vcpus * 8"}, 16), ({"maxPods": 20}, 20), ({}, 29), ({"podsPerCore": 5}, 10)],
    ids=["an expression", "a number", "none", "per core"],
)
def test_117_what_is_reserved_may_follow_the_pods_that_come_of_max_pods(most: dict[str, Any], pods_: int) -> None:
    found = kept(**most, kubeReserved={"memory": "max_pods * 16", "cpu": "max_pods * 10"})
    assert found == {"memory": (pods_ * 16 + 100) * MIB, "cpu": pods_ * 10}


def test_117_max_pods_itself_may_ask_for_what_it_would_be_without() -> None:
    found = kept(maxPods="min(max_pods, 20)", systemReserved={"cpu": "max_pods * 10"})
    assert found["cpu"] == 20 * 10 + 70
    found = kept(maxPods="max_pods + 1", podsPerCore=5, systemReserved={"cpu": "max_pods * 10"})
    assert found["cpu"] == 10 * 10 + 70, "a node takes no more than so many for each core"


# --- 192 --------------------------------------------------------------------------------------------------------
def waiting(**spec: Any) -> World:
    """A class with an expression, before the types of the region have been read."""
    world = World(stored(kubelet={"maxPods": "vcpus * 8"}, **spec), node_pool())
    world.settings = changed(world.settings, gates=OPEN)
    world.facts["catalogues"] = {}
    return world


def said(world: World, type_: str = validation.CONDITION) -> tuple[str, str]:
    rows = world.get(kinds.NODE_CLASS, "default").status.conditions
    return next((row.status, row.reason) for row in rows if row.type == type_)


@pytest.mark.parametrize("dry", [True, False])
def test_192_before_the_types_are_known_no_expression_is_evaluated(dry: bool) -> None:
    world = waiting()
    world.settings = changed(world.settings, disable_dry_run=not dry)
    world.settle()
    assert said(world) == ("Unknown", "AwaitingReconciliation")
    assert said(world, "Ready")[0] == "Unknown"
    world.facts["catalogues"] = {"default": (large(),)}
    world.settle()
    assert said(world) == ("True", "ValidationSucceeded")


def test_192_a_class_that_was_valid_stays_so_after_a_restart() -> None:
    world = waiting()
    world.facts["catalogues"] = {"default": (large(),)}
    world.settle()
    world.facts["catalogues"] = {}
    world.settle()
    assert said(world) == ("True", "ValidationSucceeded")


def test_192_what_has_failed_is_not_said_again_before_the_types_are_known() -> None:
    world = waiting()
    world.class_facts["default"] = changed(
        world.class_facts["default"], problems={validation.CONDITION: ("KubeletExpressionEvaluationFailed", "so")}
    )
    world.settle()
    assert said(world) == ("False", "KubeletExpressionEvaluationFailed")
    world.class_facts["default"] = changed(world.class_facts["default"], problems={})
    world.settle()
    assert said(world) == ("Unknown", "AwaitingReconciliation")


def test_192_missing_objects_are_reported_before_an_expression_that_fails() -> None:
    of = node_class(kubelet={"maxPods": "vcpus / 0"})
    failed = {validation.CONDITION: ("KubeletExpressionEvaluationFailed", "so")}
    new = status(of, facts(images=(), problems=failed), settings=changed(SETTINGS, gates=OPEN))
    assert verdict(new, validation.CONDITION) == ("False", "DependenciesNotReady")
