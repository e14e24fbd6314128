"""Finalizers are taken off when nobody leads, and only ours."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from kerf.model import kinds
from kerf.model.kinds import Kind, Ref
from kerf.model.kubernetes.objects import Node
from kerf.model.settings import Settings
from kerf.ports import AlreadyGone, Conflict, Listing
from kerf.runtime.controller import Controller
from kerf.runtime.process.releasing import Held, held, holders, release
from kerf.sandbox.world import World
from kerf_api import labels
from kerf_api.v1.meta import decode
from kerf_api.v1.nodeclaim import NodeClaim
from tests import worlds


class Api:
    """The sandbox's API server, with leases that are renewed `times`, and patches that meet so many conflicts."""

    def __init__(self, world: World, *, times: list[str] | None = None, conflicts: int = 0) -> None:
        self._kube, self._times, self._conflicts = world.kube, iter(times or []), conflicts

    def request(self, method: str, path: str) -> Any:
        renewed = next(self._times, "")
        spec = {"holderIdentity": "kerf-1", "renewTime": renewed} if renewed else {}
        return {"items": [{"metadata": {"namespace": "kerf"}, "spec": spec}]}

    def list(self, kind: Kind) -> Listing:
        if kind is kinds.NODE_CLASS:
            raise AlreadyGone("the server has no such kind")
        return self._kube.list(kind)

    def get(self, ref: Ref) -> Any:
        return self._kube.get(ref)

    def patch(self, ref: Ref, patch: Any, *, subresource: str = "", resource_version: str = "") -> Any:
        if self._conflicts:
            self._conflicts -= 1
            raise Conflict("changed by others")
        return self._kube.patch(ref, patch, subresource=subresource, resource_version=resource_version)


def lived() -> World:
    """A node with a pod; the controller is gone."""
    world = World(seed=3)
    for manifest in (worlds.node_class(), worlds.node_pool("general", {}), worlds.deployment("web", {})):
        world.apply(manifest)
    controller = Controller(world.ports, settings=Settings("sandbox"), inline=True)
    world.run(controller, timedelta(minutes=2))
    return world


def test_what_is_deleted_after_the_end_waits_until_it_is_released() -> None:
    world = lived()
    (claim,) = [one["metadata"]["name"] for one in world.objects("NodeClaim")]
    world.delete("NodeClaim", claim)
    api = Api(world)
    found = list(held(api))
    assert [(one.ref.kind, one.deleting) for one in found] == [("NodeClaim", True), ("Node", False)]
    assert all(release(api, one) for one in found)
    assert world.objects("NodeClaim") == []
    assert len(world.objects("Node")) == 1
    assert list(held(api)) == []
    assert [machine.state for machine in world.ec2.instances.values()] == ["running"]


def test_finalizers_of_others_stay() -> None:
    world = lived()
    (node,) = [one["metadata"] for one in world.objects("Node")]
    both = [labels.TERMINATION_FINALIZER, "example.com/mine"]
    world.kube.patch(Ref("Node", "", node["name"]), {"metadata": {"finalizers": both}})
    (one,) = [found for found in held(Api(world)) if found.ref.kind == "Node"]
    assert release(Api(world, conflicts=2), one)
    (node,) = [one["metadata"] for one in world.objects("Node")]
    assert node["finalizers"] == ["example.com/mine"]


def test_what_is_gone_or_free_meanwhile_is_fine() -> None:
    world = lived()
    assert not release(Api(world), Held(Ref("Node", "", "gone"), labels.TERMINATION_FINALIZER, deleting=False))
    (name,) = [one["metadata"]["name"] for one in world.objects("Node")]
    assert not release(Api(world), Held(Ref("Node", "", name), "example.com/never-there", deleting=False))


def test_a_lease_that_is_renewed_has_a_leader_and_one_that_is_not_has_none() -> None:
    world = World(seed=3)
    assert holders(Api(world, times=["1", "2"]), world.clock) == ["kerf-1 in kerf"]
    assert holders(Api(world, times=["1", "1"]), world.clock) == []
    assert holders(Api(world, times=["", "1"]), world.clock) == ["kerf-1 in kerf"]
    assert holders(Api(world), world.clock) == []


def test_finalizers_of_other_controllers_stay() -> None:
    world = lived()
    (mine,) = [one["metadata"]["name"] for one in world.objects("NodeClaim")]
    ref = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    meta = {"name": "auto", "finalizers": [labels.TERMINATION_FINALIZER]}
    provider = {"providerID": "aws:///us-west-2a/i-0123456789abcdef0"}
    claim = {"metadata": meta, "spec": {"nodeClassRef": ref, "requirements": []}, "status": provider}
    own = {labels.NODEPOOL: "auto"}
    bare = {**meta, "labels": own}
    labelled = {**meta, "name": "late", "labels": {**own, "eks.amazonaws.com/nodeclass": "default"}}
    listed: dict[Kind, list[Any]] = {
        kinds.NODE_CLAIM: [decode(NodeClaim, claim)],
        kinds.NODE: [decode(Node, {"metadata": bare, "spec": provider}), decode(Node, {"metadata": labelled})],
    }

    class Beside(Api):
        def list(self, kind: Kind) -> Listing:
            found = super().list(kind)
            return replace(found, items=(*found.items, *listed.get(kind, ())))

    nodes = {one["metadata"]["name"] for one in world.objects("Node")}
    assert {one.ref.name for one in held(Beside(world))} == {mine, *nodes}
