"""An EC2NodeClass whose role or instance profile is not in IAM: the condition, its message, and the number of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kerf.decide import decide
from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.model.settings import Settings
from kerf.ports import Forbidden, PortError, Throttled, Unavailable
from kerf.runtime.controller import Controller
from kerf.runtime.parts import Parts
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.world import World
from kerf_api.v1 import conditions
from kerf_api.v1.meta import Condition
from tests.worlds import deployment, node_class, node_pool

CLASS, POOL = Ref("EC2NodeClass", "", "default"), Ref("NodePool", "", "default")
ROLE = "KerfNodeRole-sandbox"
NO_ROLE = f"iam:AddRoleToInstanceProfile: NoSuchEntity: The role with name {ROLE} cannot be found."


class Iam(Faults):
    """Counts attempts to create a profile, and fails them with `error`."""

    def __init__(self, error: Callable[[], PortError] | None = None) -> None:
        self.error, self.attempts = error, 0

    def before(self, call: Call) -> None:
        if call.verb == "ensure_instance_profile":
            self.attempts += 1
            if self.error is not None:
                raise self.error()


def started(world: World, spec: dict[str, Any] | None = None, **settings: Any) -> Controller:
    body = node_class()
    if spec is not None:
        body["spec"] = {key: value for key, value in body["spec"].items() if key != "role"} | spec
    world.kube.create(kinds.NODE_CLASS, body)
    world.kube.create(kinds.NODE_POOL, node_pool("default", {}))
    found = Settings(cluster_name="sandbox", **settings)
    return Controller(world.ports, Parts(decide=decide), settings=found, inline=True)


def condition(world: World, type_: str = "InstanceProfileReady", of: Ref = CLASS) -> Condition:
    found = conditions.get(world.kube.get(of).status.conditions, type_)
    assert found is not None
    return found


def test_a_missing_role_is_reported_at_once_and_noticed_when_it_appears() -> None:
    iam = Iam()
    world = World(faults=iam)
    world.cloud.absent_roles.add(ROLE)
    loop = started(world)
    world.run(loop, timedelta(seconds=5))
    found = condition(world)
    assert (found.status, found.reason, found.message) == ("False", "RoleNotFound", NO_ROLE)
    assert condition(world, "Ready").status == "False"
    pool = condition(world, "NodeClassReady", POOL)
    assert (pool.status, "InstanceProfileReady=False" in pool.message) == ("False", True)
    world.run(loop, timedelta(minutes=2))
    before, version = iam.attempts, world.kube.get(CLASS).metadata.resource_version
    world.run(loop, timedelta(minutes=10))
    assert 8 <= iam.attempts - before <= 10
    assert world.kube.get(CLASS).metadata.resource_version == version
    world.cloud.absent_roles.clear()
    world.run(loop, timedelta(seconds=75))
    assert condition(world, "Ready").status == "True"
    assert condition(world, "Ready", POOL).status == "True"


def test_another_role_is_tried_at_once() -> None:
    world = World()
    world.cloud.absent_roles.add(ROLE)
    loop = started(world)
    world.run(loop, timedelta(minutes=5))
    world.kube.patch(CLASS, {"spec": {"role": "Another"}})
    world.run(loop, timedelta(seconds=3))
    assert condition(world).status == "True"
    world.cloud.absent_roles.add("Third")
    world.kube.patch(CLASS, {"spec": {"role": "a/path/Third"}})
    world.run(loop, timedelta(seconds=3))
    assert (condition(world).reason, "Third" in condition(world).message) == ("RoleNotFound", True)


def test_a_change_of_something_else_keeps_the_answer() -> None:
    world = World()
    world.cloud.absent_roles.add(ROLE)
    loop = started(world)
    world.run(loop, timedelta(minutes=5))
    world.kube.patch(CLASS, {"spec": {"tags": {"team": "x"}}})
    world.run(loop, timedelta(seconds=3))
    found = condition(world)
    assert (found.status, found.reason, found.observed_generation) == ("False", "RoleNotFound", 2)
    assert condition(world, "Ready").status == "False"


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (lambda: Forbidden("iam:CreateInstanceProfile: AccessDenied: no"), "False", "InstanceProfileAccessDenied"),
        (lambda: Unavailable("iam:CreateInstanceProfile: timed out"), "Unknown", "IAMUnavailable"),
        (lambda: Throttled("iam:CreateInstanceProfile: Throttling: slow"), "Unknown", "IAMUnavailable"),
    ],
)
def test_other_answers_of_iam_are_in_the_condition(error: Callable[[], PortError], status: str, reason: str) -> None:
    iam = Iam(error)
    world = World(faults=iam)
    loop = started(world)
    world.run(loop, timedelta(seconds=5))
    found = condition(world)
    assert (found.status, found.reason, found.message) == (status, reason, str(error()))
    world.run(loop, timedelta(minutes=2))
    before = iam.attempts
    world.run(loop, timedelta(minutes=10))
    assert 8 <= iam.attempts - before <= 10
    iam.error = None
    world.run(loop, timedelta(seconds=75))
    assert condition(world, "Ready").status == "True"


def test_an_isolated_vpc_makes_no_call_for_a_role() -> None:
    iam = Iam()
    world = World(faults=iam)
    loop = started(world, isolated_vpc=True)
    world.run(loop, timedelta(seconds=5))
    found = condition(world)
    assert (found.status, found.reason) == ("False", "IsolatedVPC")
    assert ROLE in found.message
    assert "spec.instanceProfile" in found.message
    assert condition(world, "Ready").status == "False"
    assert iam.attempts == 0
    patch = {"spec": {"role": None, "instanceProfile": "mine"}}
    world.kube.patch(CLASS, patch)
    world.run(loop, timedelta(seconds=3))
    assert condition(world, "Ready").status == "True"


def test_a_missing_profile_is_reported_and_noticed_when_it_appears() -> None:
    world = World()
    world.cloud.absent_profiles.add("mine")
    loop = started(world, {"instanceProfile": "mine"})
    world.run(loop, timedelta(seconds=5))
    found = condition(world)
    assert (found.status, found.reason) == ("False", "InstanceProfileNotFound")
    assert "mine" in found.message
    assert condition(world, "Ready").status == "False"
    world.cloud.absent_profiles.clear()
    world.run(loop, timedelta(seconds=75))
    assert condition(world, "Ready").status == "True"


def test_nodes_stay_when_the_role_of_their_class_is_deleted() -> None:
    """IAM deletes a role only after its instance profile has lost it."""
    world = World()
    loop = started(world)
    world.kube.create(kinds.BY_NAME["Deployment"], deployment("web", {"replicas": 2, "alone": True}))
    world.run(loop, timedelta(minutes=4))
    nodes = {node.name for node in world.kube.list(kinds.NODE).items}
    assert len(nodes) == 2
    world.cloud.absent_roles.add(ROLE)
    world.cloud.profiles.clear()
    world.run(loop, timedelta(minutes=20))
    assert condition(world).reason == "RoleNotFound"
    assert {node.name for node in world.kube.list(kinds.NODE).items} == nodes
    assert Counter(pod.spec.node_name for pod in world.kube.list(kinds.POD).items) == dict.fromkeys(nodes, 1)
