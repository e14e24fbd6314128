"""The referee beside the kube-scheduler's plugins: each pod that waits on each node, alone; and the engine's answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.answers.solution import Solution
from tests.differential.draft import Json
from tests.oracle.client import ALL_NODES, Oracle
from tests.oracle.difference import BLAMED, LET_PASS, Difference
from tests.oracle.ours import Ours, snapshot_of
from tests.oracle.sketch import kubernetes
from tests.referee import violations

#: The referee's rules that are the kube-scheduler's; the others are about NodePools and prices.
RULES: Final = frozenset(
    (
        "affinity",
        "anti-affinity",
        "attach-limit",
        "host-port",
        "node-affinity",
        "node-selector",
        "room",
        "spread",
        "taint",
        "volume",
    )
)


def pairs(ours: Ours, oracle: Oracle, world: Json) -> Iterator[Difference]:
    """Each pod on each node, alone."""
    targets = {state.name: key for key, state in ours.snapshot.state_nodes.items()}
    found = oracle.ask(kubernetes(world), verdicts=[(pod.key, ALL_NODES) for pod in ours.pods])
    for verdict in found.verdicts:
        words = broken(ours, ours.snapshot.pods[verdict.pod], targets[verdict.node])
        if verdict.fits and words:
            yield Difference(BLAMED, verdict.pod, verdict.node, "", words[0])
        elif not verdict.fits and not words:
            yield Difference(LET_PASS, verdict.pod, verdict.node, verdict.plugin, verdict.message)


def broken(ours: Ours, pod: Pod, target: str) -> list[str]:
    """The rules of the kube-scheduler that the referee sees broken by one placement."""
    return _words(ours, (pod,), Solution(placed={pod.key: target}))


def of_the_answer(ours: Ours) -> list[str]:
    """The rules of the kube-scheduler that the referee sees broken by the engine's answer."""
    return _words(ours, ours.pods, replace(ours.solution))


def of_the_launched(world: Json, ours: Ours) -> list[str]:
    """The same of the world in which the planned nodes are there: the answer may leave their types and zones open."""
    snapshot = snapshot_of(world)
    targets = {state.name: key for key, state in snapshot.state_nodes.items()}
    pods = tuple(pod for pod in ours.pods if pod.key in ours.homes)
    placed = {pod.key: targets[ours.homes[pod.key]] for pod in pods}
    return _words(replace(ours, snapshot=snapshot), pods, Solution(placed=placed))


def _words(ours: Ours, pods: tuple[Pod, ...], answer: Any) -> list[str]:
    return [str(one) for one in violations(ours.snapshot, pods, answer) if one.rule in RULES]
