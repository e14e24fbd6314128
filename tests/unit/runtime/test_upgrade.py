"""The control plane is upgraded while the controller lives: images, user data and other replicas follow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kerf.model.settings import Settings
from kerf.runtime.controller import Controller
from kerf.runtime.inbox import VersionNoted
from kerf.runtime.observe.observer import CLUSTER_EVERY
from kerf.sandbox.world import World
from tests import worlds

SETTINGS = Settings(cluster_name="sandbox")
#: When the version of an upgrade counts at the latest: the next look at the cluster, and one a minute later.
COUNTED = CLUSTER_EVERY + timedelta(minutes=1, seconds=5)
NODES = 4


class Life:
    """A cluster with nodes, each of which has one pod."""

    def __init__(self) -> None:
        self.world = World()
        self.loop = self.controller()
        rest = {"disruption": {"budgets": [{"nodes": "1"}], "consolidateAfter": "Never"}}
        web = worlds.deployment("web", {"replicas": NODES, "alone": True})
        for manifest in (worlds.node_class(), worlds.node_pool("default", rest), web):
            self.world.apply(manifest)
        self.run(timedelta(minutes=10))

    def controller(self) -> Controller:
        world = self.world
        return Controller(world.ports, settings=SETTINGS, inline=True)

    def run(self, span: timedelta) -> None:
        self.world.run(self.loop, span)

    def claims(self, condition: str = "Initialized") -> list[dict[str, Any]]:
        """NodeClaims of which this condition is True."""
        return [
            claim
            for claim in self.world.objects("NodeClaim")
            if any(c["type"] == condition and c["status"] == "True" for c in claim["status"].get("conditions", ()))
        ]

    def images(self) -> set[str]:
        return {claim["status"]["imageID"] for claim in self.claims()}

    @property
    def counted(self) -> str:
        return self.loop.state.known_cluster.version.counted


def test_nodes_drift_to_images_of_the_next_version_under_budgets() -> None:
    life = Life()
    before, creations = life.images(), {claim["metadata"]["name"] for claim in life.claims()}
    assert (len(life.claims()), life.counted) == (NODES, "1.34")
    life.world.cloud.kubernetes_version = "1.35"
    life.run(COUNTED)
    assert life.counted == "1.35"
    life.run(timedelta(minutes=5))
    old = [claim for claim in life.claims() if claim["metadata"]["name"] in creations]
    drifted = {claim["metadata"]["name"] for claim in life.claims("Drifted")}
    assert drifted >= {claim["metadata"]["name"] for claim in old}
    leaving = [claim for claim in old if "deletionTimestamp" in claim["metadata"]]
    assert len(leaving) <= 1  # the budget
    life.run(timedelta(minutes=60))
    assert len(life.claims()) == NODES
    assert not life.images() & before


def test_one_answer_of_a_server_that_is_ahead_moves_no_node() -> None:
    life = Life()
    before = life.images()
    life.world.cloud.kubernetes_version = "1.35"
    for _ in range(int(CLUSTER_EVERY / timedelta(seconds=5)) + 1):
        life.run(timedelta(seconds=5))
        if not life.loop.state.known_cluster.version.settled:
            break
    life.world.cloud.kubernetes_version = "1.34"
    life.run(timedelta(minutes=30))
    assert (life.counted, life.images()) == ("1.34", before)
    assert not life.claims("Drifted")


def test_a_server_that_is_behind_moves_no_node_back() -> None:
    life = Life()
    life.world.cloud.kubernetes_version = "1.33"
    life.run(timedelta(hours=1))
    assert life.counted == "1.34"
    assert not life.claims("Drifted")


def test_another_replica_goes_by_the_version_that_the_leader_has_written() -> None:
    """It may lead a moment later, and must not call drifted those nodes that have images for the later version."""
    life = Life()
    life.loop.inbox.put(VersionNoted("1.35"))
    life.run(timedelta(seconds=1))
    facts = life.loop.state.known_cluster.facts
    assert facts is not None
    assert facts.kubernetes_version == life.counted == "1.35"
    before = life.images()
    life.run(timedelta(minutes=2))
    assert life.claims("Drifted")
    assert life.images() >= before
