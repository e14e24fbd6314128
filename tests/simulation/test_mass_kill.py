"""Three ways for a fleet to look like garbage at once. Nothing is ended; a person's word ends exactly what it names."""

from __future__ import annotations

from typing import Any

from kerf.model import kinds
from kerf.model.aws.cloud import FleetRequest, LaunchTemplate, Override
from kerf.ports import Unavailable
from kerf.sandbox.api.manifests import copied
from kerf.sandbox.faults import Call, Faults
from kerf.sandbox.world import World
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import MetadataOptions
from tests.simulation.stage import ALONE, Play
from tests.worlds import deployment, node_class, node_pool

HALTED = "GarbageCollectionHalted"
ALLOW = labels.ALLOW_GARBAGE


class Unserved(Faults):
    """While `gone`, the API server does not know our kinds: their definitions have been deleted."""

    gone = False

    def before(self, call: Call) -> None:
        ours = ("nodepools", "nodeclaims", "ec2nodeclasses")
        if self.gone and (
            call.subject in ours or call.subject.startswith(("nodepool/", "nodeclaim/", "ec2nodeclass/"))
        ):
            raise Unavailable(f"404: {call.subject}: the server could not find the requested resource")


class Fleet(Play):
    """A cluster of some nodes with one pod each, and its controller."""

    def __init__(self, nodes: int = 8, faults: Faults | None = None) -> None:
        world = World(seed=3, faults=faults)
        world.apply(node_class())
        world.apply(node_pool("general", {"disruption": {"consolidateAfter": "Never"}}))
        world.apply(deployment("web", {"replicas": nodes, **ALONE}))
        super().__init__(world)
        self.live(minutes=10)
        assert len(self.instances()) == nodes

    def instances(self) -> set[str]:
        return {m.id for m in self.world.ec2.instances.values() if m.state in ("pending", "running")}

    def halted(self, kind: str = "NodePool") -> list[dict[str, Any]]:
        told = (c for one in self.world.objects(kind) for c in one.get("status", {}).get("conditions", ()))
        return [c for c in told if c["type"] == HALTED and c["status"] == "True"]

    def events(self) -> list[str]:
        return [e["message"] for e in self.world.objects("Event") if e["reason"] == HALTED]

    def lose(self, kind: kinds.Kind, *names: str) -> None:
        """These are in the store no more, finalizers or not, as if they had never been there."""
        for name in names:
            self.world.server.patch(kind, "", name, {"metadata": {"finalizers": []}})
            if self.world.server.find(kind, "", name) is not None:
                self.world.server.delete(kind, "", name)

    def names(self, kind: kinds.Kind) -> list[str]:
        return [record.key[1] for record in self.world.server.select(kind, "", "", "")]


def test_etcd_restored_from_before_the_nodes_came() -> None:
    """Claims and nodes of the last hours are unknown to the restored store; their machines run on."""
    stage = Fleet()
    before = stage.instances()
    later = stage.world.objects("NodeClaim")[:7]
    stage.lose(kinds.NODE_CLAIM, *(claim["metadata"]["name"] for claim in later))
    stage.lose(kinds.NODE, *(claim["status"]["nodeName"] for claim in later))
    stage.restart()
    stage.live(minutes=10)
    assert before <= stage.instances()
    assert len(stage.halted()) == 1
    assert stage.events()

    stage.restart()
    stage.live(minutes=65)
    assert before <= stage.instances(), "a restart forgets the guard, or an hour does"

    word = stage.halted()[0]["message"].rpartition("=")[2]
    stage.world.server.patch(kinds.NODE_POOL, "", "general", {"metadata": {"annotations": {ALLOW: word}}})
    stage.live(minutes=5)
    assert len(before & stage.instances()) == 1
    assert stage.halted() == []


def test_the_definitions_deleted_and_made_again() -> None:
    """All claims, pools and classes vanish with their definitions; then only the latter are made again."""
    faults = Unserved()
    stage = Fleet(faults=faults)
    before = stage.instances()
    kept = [copied(m) for kind in ("EC2NodeClass", "NodePool") for m in stage.world.objects(kind)]
    faults.gone = True
    for kind in (kinds.NODE_CLAIM, kinds.NODE_POOL, kinds.NODE_CLASS):
        stage.lose(kind, *stage.names(kind))
    stage.live(minutes=10)
    assert before <= stage.instances()

    faults.gone = False
    stage.live(minutes=10)
    assert before <= stage.instances(), "there is nobody who could be asked"

    for manifest in kept:
        stage.world.apply({key: manifest[key] for key in ("apiVersion", "kind", "spec")} | _named(manifest))
    stage.live(minutes=10)
    assert before <= stage.instances()
    assert len(stage.halted()) == 1


def test_two_clusters_of_one_name() -> None:
    """Another cluster's machines carry our cluster's name; it launches new ones for those that vanish."""
    stage = Fleet(nodes=2)
    own = stage.instances()
    twin = Twin(stage, keeps=4)
    for _ in range(60):
        twin.launch()
        stage.live(minutes=2)
    assert own <= stage.instances()
    assert len(stage.halted()) == 1
    assert twin.lost() <= 5, "in two hours no more than may be ended in one before a person has looked"
    assert len(twin.alive()) == 4


class Twin:
    """The other cluster: as many machines as it wants, by calls of its own; they join an API server of its own."""

    def __init__(self, stage: Fleet, keeps: int) -> None:
        self._ec2, self._keeps = stage.world.ec2, keeps
        self._model = next(iter(self._ec2.instances.values()))
        self._made: list[str] = []

    def launch(self) -> None:
        """One at a time, as its pods ask for them."""
        if len(self.alive()) < self._keeps:
            result = self._ec2.fleet(self._request(f"twin-{len(self._made)}"))
            for instance in result.instances:
                self._ec2.instances[instance.id].boots = False
                self._made.append(instance.id)

    def _request(self, group: str) -> FleetRequest:
        one = self._model
        template = LaunchTemplate(
            name="twin",
            image_id=one.image_id,
            user_data="",
            instance_profile="twin",
            security_group_ids=one.security_group_ids,
            metadata_options=MetadataOptions(),
        )
        override = Override(
            instance_type=one.instance_type, zone=one.zone, subnet_id=one.subnet_id, image_id="", template="twin"
        )
        return FleetRequest(
            group=group,
            capacity_type=one.capacity_type,
            members=(group,),
            templates=(template,),
            overrides=(override,),
            tags={**one.tags, labels.LAUNCH_GROUP: group, labels.TAG_NODECLAIM: group},
        )

    def alive(self) -> list[str]:
        return [id_ for id_ in self._made if self._ec2.instances[id_].state in ("pending", "running")]

    def lost(self) -> int:
        return len(self._made) - len(self.alive())


def _named(manifest: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": manifest["metadata"]["name"]}}
