"""Kerf's engine and its referee on the worlds with a known end."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, Final

import pytest

from tests.differential.draft import REQUIRED, Json
from tests.differential.generator import world_of
from tests.oracle.client import Oracle
from tests.oracle.compare import compare
from tests.oracle.difference import Difference
from tests.oracle.exceptions import EXCEPTIONS, Case
from tests.oracle.known import Known, known
from tests.oracle.objects import ZONE, node, pod
from tests.oracle.ours import answer
from tests.oracle.rules import RULES
from tests.oracle.sketch import KUBERNETES
from tests.oracle.test_oracle import WORLDS

CASES: Final = {**WORLDS, **RULES}

#: Kerf schedules no pod with claims of devices, as Karpenter does not.
_DEVICES: Final = {name for name in CASES if name.startswith("DynamicResources")}
#: Kerf plans nothing for a pod that has a gate, that no node of a NodePool can take, or that is nominated to a node.
NOT_PLANNED: Final = {
    "NodeAffinity: a term of one node's name leaves out the others",
    "NodeAffinity: an empty term matches no node",
    "SchedulingGates",
    "nomination: of the pod itself: another node may take it",
}
#: Open disagreements. An entry goes with its fix.
OPEN: Final = {
    "NodeDeclaredFeatures",
    "VolumeRestrictions: an EBS volume in two pods of one node",
}


def completed(case: Known) -> Json:
    """The known world as one of the comparison, without NodePools: `web` runs on a node that is there or nowhere.

    Objects get the fields that the API server and the cloud's controllers set, as far as Kerf reads them.
    """
    world: dict[str, Any] = {kind: deepcopy(case.world.get(kind, [])) for kind in KUBERNETES}
    present = {one["metadata"]["name"] for one in world["namespaces"]}
    spaces = {one["metadata"]["namespace"] for one in world["pods"]} - present
    world["namespaces"] += [{"metadata": {"name": name}} for name in sorted(spaces)]
    for kind, objects in world.items():
        for one in objects:
            meta = one["metadata"]
            meta["uid"] = f"{kind}/{meta.get('namespace', '')}/{meta['name']}"
            meta["creationTimestamp"] = "2026-01-01T00:00:00Z"
    for one in world["nodes"]:
        one["spec"]["providerID"] = f"aws:///us-west-2a/i-{one['metadata']['name']}"
        one["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    for one in world["pods"]:
        _scheduled(one)
    own: Json = {name: [] for name in ("nodePools", "nodeClaims", "daemonSets", "instanceTypes")}
    return {**world, **own, "settings": {}, "wellKnownLabels": world_of(0)["wellKnownLabels"]}


def _scheduled(pod: Json) -> None:
    status = pod["status"]
    if "nodeName" in pod["spec"]:
        status.setdefault("phase", "Running")
        return
    reason = "SchedulingGated" if "schedulingGates" in pod["spec"] else "Unschedulable"
    status["phase"] = "Pending"
    status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": reason}]


def _on_purpose(world: Json, difference: Difference) -> bool:
    return any(rule.admits(Case(world, difference)) for rule in EXCEPTIONS)


@pytest.mark.parametrize("name", sorted(CASES.keys() - _DEVICES - OPEN))
def test_kerf_agrees_on_a_known_world(name: str, oracle: Oracle) -> None:
    world = completed(CASES[name])
    found = compare(world, oracle)
    assert found.ours is not None
    assert ("default/web" in {one.key for one in found.ours.pods}) == (name not in NOT_PLANNED)
    assert [str(one) for one in found.differences if not _on_purpose(world, one)] == []


def test_a_wrong_order_is_a_difference_of_the_engine_alone(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """The referee knows no order: some order takes all pods."""
    affinity = {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}}]}}
    pods = [pod("db", labels={"app": "db"}), pod("web", affinity=affinity)]
    world = completed(known([node("n1", labels={ZONE: "a"})], pods, {}))
    right = answer(world)
    assert right.solution.order == ("default/db", "default/web")
    assert not compare(world, oracle).differences
    wrong = replace(right, solution=replace(right.solution, order=("default/web", "default/db")))
    monkeypatch.setattr("tests.oracle.compare.answer", lambda _: wrong)
    assert [one.kind for one in compare(world, oracle).differences] == ["a InterPodAffinity"]


@pytest.mark.long
def test_each_open_disagreement_is_still_there(oracle: Oracle) -> None:
    assert {name for name in OPEN if compare(completed(CASES[name]), oracle).differences} == OPEN
