"""One call for many claims, answers dealt to them, and the settings at start (223, 224, 227)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.model.aws.cloud import FleetError
from kerf.model.plan import LaunchInstances
from kerf.runtime.settings.settings import SettingsError, parse
from tests.unit.lifecycle.world import World, node_claim, prepared

NAME = {"CLUSTER_NAME": "demo"}


# --- fleets -----------------------------------------------------------------------------------------------------
def five(**last: Any) -> World:
    """Five claims; the last may ask for something else."""
    return prepared(*(node_claim(f"c{n}") for n in range(4)), node_claim("c4", **last))


def calls(world: World) -> list[int]:
    """How many instances each call asks for."""
    return sorted(len(call.request.members) for call in world.done(LaunchInstances))


def test_223_equal_claims_share_a_call_and_each_has_an_instance_of_its_own() -> None:
    world = five()
    world.settle()
    assert calls(world) == [5]
    assert len({world.claim(f"c{n}").instance_id for n in range(5)}) == 5


def test_223_claims_that_want_something_else_have_a_call_of_their_own() -> None:
    world = five(requirements=[{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-west-2a"]}])
    world.settle()
    assert calls(world) == [1, 4]


SOLD_OUT = FleetError("InsufficientInstanceCapacity", "no", "m5.large", "us-west-2a", capacity=True)
DENIED = FleetError("UnauthorizedOperation", "no")


def answered(given: int, error: FleetError) -> World:
    world = five()
    world.given, world.errors = given, (error,)
    world.settle()
    return world


def test_224_when_the_call_fails_all_of_them_get_the_error() -> None:
    world = answered(0, DENIED)
    assert {world.condition("Launched", f"c{n}") for n in range(5)} == {("Unknown", "Unauthorized")}


def test_224_each_created_one_has_its_instance_and_the_rest_get_the_reason() -> None:
    world = answered(3, DENIED)
    found = [world.claim(f"c{n}") for n in range(5)]
    launched = [claim for claim in found if claim.is_true("Launched")]
    assert len({claim.instance_id for claim in launched}) == len(launched) == 3
    rest = {world.condition("Launched", claim.name) for claim in found if claim not in launched}
    assert rest == {("Unknown", "Unauthorized")}


# --- settings ---------------------------------------------------------------------------------------------------
def test_227_a_flag_beats_a_variable_and_that_the_default() -> None:
    assert parse([], NAME).vm_memory_overhead_percent == 0.075
    environment = {**NAME, "VM_MEMORY_OVERHEAD_PERCENT": "0.1"}
    assert parse([], environment).vm_memory_overhead_percent == 0.1
    assert parse(["--vm-memory-overhead-percent=0.2"], environment).vm_memory_overhead_percent == 0.2


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"CLUSTER_NAME": ""}, "CLUSTER_NAME"),
        ({"CLUSTER_ENDPOINT": "cluster.local"}, "CLUSTER_ENDPOINT"),
        ({"CLUSTER_ENDPOINT": "/relative"}, "CLUSTER_ENDPOINT"),
        ({"VM_MEMORY_OVERHEAD_PERCENT": "-0.1"}, "VM_MEMORY_OVERHEAD_PERCENT"),
        ({"RESERVED_ENIS": "-1"}, "RESERVED_ENIS"),
        ({"AMI_REFRESH_INTERVAL": "59s"}, "AMI_REFRESH_INTERVAL"),
        ({"SUBNET_REFRESH_INTERVAL": "59s"}, "SUBNET_REFRESH_INTERVAL"),
    ],
)
def test_227_a_mistake_keeps_the_controller_from_starting(environment: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        parse([], {**NAME, **environment})


@pytest.mark.parametrize("text", ["NodeClassCEL=false,Tomorrow=true", "Tomorrow"])
def test_227_a_gate_of_the_provider_that_is_not_known_is_refused(text: str) -> None:
    """Karpenter passes over it, and the gate that somebody meant stays shut without a word."""
    for arguments, environment in ((["--aws-feature-gates", text], NAME), ([], {**NAME, "AWS_FEATURE_GATES": text})):
        with pytest.raises(SettingsError, match=r"(?i)aws.feature.gates.*Tomorrow"):
            parse(arguments, environment)
