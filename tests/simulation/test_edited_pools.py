"""NodePools that people edit all day: with a memory the plans are those of an empty one.

Specs become invalid and valid again, pools are deleted and created under their names, with their old spec or another.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.sandbox.world import World
from tests.simulation.scripts import TYPES
from tests.simulation.stage import Play
from tests.worlds import deployment, node_class, node_pool

POOLS = ("one", "two")
REQUIREMENTS: tuple[dict[str, Any], ...] = (
    {"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["us-west-2a"]},
    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    {"key": "team", "operator": "In", "values": ["a", "b"]},
    {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["3"]},
)
#: The last two make a NodePool invalid, and the API server accepts them.
LABELS: tuple[dict[str, str], ...] = ({}, {"team": "a"}, {"-bad-/x": "y"}, {"a/b/c": "x"})


class Edited(Play):
    twice = True

    def __init__(self, seed: int) -> None:
        self._dice = Random(seed)
        world = World(seed=seed, types=TYPES)
        for manifest in (node_class(), node_pool("one", {}), deployment("web", {"replicas": 2})):
            world.apply(manifest)
        super().__init__(world)

    def edit(self) -> None:
        name = self._dice.choice(POOLS)
        deed = self._dice.choice((self._change, self._change, self._annotate, self._create_again, self._scale))
        deed(name)

    def _stored(self, kind: Kind, name: str) -> Any:
        return self.world.server.find(kind, "", name)

    def _pool(self, name: str) -> dict[str, Any]:
        dice = self._dice
        after = dice.choice(("0s", "30s", "Never"))
        given: dict[str, Any] = {
            "labels": dice.choice(LABELS),
            "also": dice.sample(REQUIREMENTS, k=dice.randint(0, 2)),
            "weight": dice.choice((1, 10)),
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": after},
        }
        found = node_pool(name, given)
        for row in given["also"]:
            if row["key"] in given["labels"]:
                found["spec"]["template"]["metadata"]["labels"] = {}
        return found

    def _change(self, name: str) -> None:
        wanted, server = self._pool(name), self.world.server
        if self._stored(kinds.NODE_POOL, name) is None:
            server.create(kinds.NODE_POOL, wanted)
        else:
            server.patch(kinds.NODE_POOL, "", name, {"spec": wanted["spec"]})

    def _annotate(self, name: str) -> None:
        if self._stored(kinds.NODE_POOL, name) is not None:
            notes = {self._dice.choice(("example.com/x", "karpenter.sh/nodepool-hash")): self._dice.choice((None, "1"))}
            self.world.server.patch(kinds.NODE_POOL, "", name, {"metadata": {"annotations": notes}})

    def _create_again(self, name: str) -> None:
        """At once: the controller may learn of both in one reconcile."""
        old, server = self._stored(kinds.NODE_POOL, name), self.world.server
        if old is None:
            return
        wanted = self._dice.choice(({"spec": old.manifest["spec"]}, self._pool(name)))
        server.patch(kinds.NODE_POOL, "", name, {"metadata": {"finalizers": None}})
        server.delete(kinds.NODE_POOL, "", name)
        server.create(kinds.NODE_POOL, {"metadata": {"name": name}, "spec": wanted["spec"]})

    def _scale(self, _: str) -> None:
        self.world.scale("default", "web", self._dice.randint(0, 5))


@pytest.mark.parametrize("seed", range(2))
def test_plans_with_a_memory_are_those_without_while_pools_are_edited(seed: int) -> None:
    play, verdicts = Edited(seed), set[str]()
    for _ in range(25):
        play.edit()
        play.live(seconds=20)
        assert play.differences == []
        found = play.world.objects("NodePool")
        verdicts |= {
            c["status"] for p in found for c in p["status"]["conditions"] if c["type"] == "ValidationSucceeded"
        }
    assert verdicts >= {"True", "False"}
