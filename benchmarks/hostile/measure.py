"""One shape in a process of its own: passes until each pod has a node or a refusal, and what they take.

    python -m benchmarks.hostile.measure "NotIn, one value each" 2000

The passes share a memory and the cluster's indexes, and what a pass writes is there in the next one, as in the
controller. A pod of another namespace comes after the first pass. NodeClaims stay in flight: no node joins meanwhile.
EC2 takes back the spot instance of an empty node: the message comes when a pass has just begun without it, and the next
one acts on it. So it is with every second pass; in the others Kerf may begin to replace nodes that have drifted.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from time import process_time
from typing import Any, Final

import msgspec

from benchmarks.clusters import NOW, Yard, catalogue, node_pool
from benchmarks.hostile.pods import FAMILY, decoded
from benchmarks.hostile.shapes import SHAPES, objects_of
from benchmarks.hostile.written import Written, node_class
from benchmarks.scheduling import peak_mib
from benchmarks.workloads import pod
from kerf.decide import decide
from kerf.model.aws.instance_type import Catalogue, InstanceType
from kerf.model.aws.interruptions import Interruption, InterruptionKind, Message
from kerf.model.cluster import build
from kerf.model.kinds import ref
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.memory import Memory
from kerf.model.plan import DeleteObject, Plan, Source
from kerf.model.settings import Settings
from kerf.model.snapshot import Batch, Snapshot
from kerf.runtime.controller import LONGEST_PAUSE_SECONDS
from kerf.runtime.process.collecting import THRESHOLDS
from kerf.scheduling.solve import solve
from kerf_api import labels
from kerf_api.requirements import Requirements
from kerf_api.v1.nodeclaim import NodeClaim

#: So many until the NodePool and the node have their hashes and conditions, and the memory knows both.
_PASSES_BEFORE: Final = 3
#: Between two passes: the batch of pods that were left over closes.
PAUSE: Final = timedelta(seconds=1)
_MOST_PASSES: Final = 1000
#: Then it is given up; the figures say how many pods were left over.
_MOST_SECONDS: Final = 120.0
_OTHER: Final = "other-tenant"
WARNING: Final = Interruption(InterruptionKind.SPOT_INTERRUPTED, ("i-warned00000",), Message("m", "r", "{}"))


@dataclass(frozen=True)
class Measured:
    """Seconds of CPU, MiB above the idle process; `all_seconds` and `other_seconds` with the pauses between passes.

    `interruption_seconds`: from the message of an interruption, at the worst moment, until its NodeClaim is deleted.
    """

    shape: str
    number: int
    passes: int
    longest_seconds: float
    all_seconds: float
    other_seconds: float
    interruption_seconds: float
    peak_mib: float
    served: int
    refused: int
    left_over: int


def measured(shape: str, number: int) -> Measured:
    """Raises KeyError for an unknown shape."""
    settings, types = Settings(cluster_name="benchmark"), _with_labels(catalogue())
    memory, world, plan = Memory(), Written(), Plan()
    elapsed, longest, other_seconds, before, passes = 0.0, 0.0, 0.0, 0.0, 0
    warned, interruption_seconds = _node_on_spot(types), 0.0
    facts: dict[str, Any] = {"settings": settings, "catalogues": {"default": types}}
    world.add([node_class(), node_pool(), *warned])
    for _ in range(_PASSES_BEFORE):
        calm = world.cluster.snapshot(now=NOW, fresh_at=dict.fromkeys(Source, NOW), **facts)
        world.perform(decide(calm, memory).actions)
    objects = [*objects_of(shape, number)]
    pods = [one for one in objects if isinstance(one, Pod)]
    _put_aside()
    idle = peak_mib()
    world.add(objects)
    del objects  # what is written replaces them
    while passes < _MOST_PASSES and elapsed < _MOST_SECONDS:
        now = NOW + timedelta(seconds=elapsed)
        snapshot: Snapshot = world.cluster.snapshot(
            now=now,
            interruptions=(WARNING,) if passes % 2 else (),
            batch=Batch(now - timedelta(seconds=20), now - timedelta(seconds=20)),
            left_over=plan.left_over,
            had_turn=plan.had_turn,
            candidates_left_over=plan.candidates_left_over,
            nominations=plan.nominations,
            fresh_at=dict.fromkeys(Source, now),
            **facts,
        )
        began = process_time()
        plan = decide(snapshot, memory)
        took = process_time() - began
        if passes % 2:
            acted = before + min(before, LONGEST_PAUSE_SECONDS) + took if _ends(plan, warned) else _MOST_SECONDS
            interruption_seconds = max(interruption_seconds, acted)
        passes, longest, before = passes + 1, max(longest, took), took
        elapsed += took + PAUSE.total_seconds()
        world.perform(plan.actions)
        if passes == 1:
            others = decoded([pod("plain", {}, 100, 64)], _OTHER)
            pods = [*pods, *others]
            world.add(others)
            other_came = elapsed
        elif not other_seconds and _OTHER not in _waiting(plan, pods):
            other_seconds = elapsed - other_came
        _put_aside()
        if passes > 1 and not (plan.left_over or plan.candidates_left_over):
            break
    refused = sum(refusal.subject.startswith("pod/") for refusal in plan.refusals) - len(plan.left_over)
    served = len(pods) - refused - len(plan.left_over)
    return Measured(
        shape,
        number,
        passes,
        round(longest, 2),
        round(elapsed, 2),
        round(other_seconds, 2),
        round(interruption_seconds, 2),
        round(peak_mib() - idle, 1),
        served,
        refused,
        len(plan.left_over) + len(plan.candidates_left_over),
    )


def _put_aside() -> None:
    """As the controller keeps its garbage collector quiet."""
    gc.set_threshold(*THRESHOLDS)
    gc.collect()
    gc.freeze()


def _with_labels(types: Catalogue) -> Catalogue:
    """The types with the labels that shapes ask for: family, size and memory."""

    def labelled(one: InstanceType) -> InstanceType:
        family, _, size = one.name.partition(".")
        memory = str(one.allocatable["memory"] // 2**20)
        values = {FAMILY: family, "karpenter.k8s.aws/instance-size": size, "karpenter.k8s.aws/instance-memory": memory}
        return replace(one, requirements=one.requirements & Requirements.of_labels(values))

    return Catalogue([labelled(one) for one in types])


def _node_on_spot(types: Catalogue) -> tuple[NodeClaim, Node]:
    """An empty node with a spot instance, named as the warning has it; nothing else ends it."""
    yard = Yard(types, Settings(cluster_name="benchmark"))
    some = decoded([pod("first", {}, 100, 64)], _OTHER)
    yard.buy(solve(build([node_pool()], **yard.facts()), some).new_nodes, "warned")
    ((claim, node),) = yard.nodes.values()
    annotations = {labels.DO_NOT_DISRUPT: "true"}
    return claim, msgspec.structs.replace(
        node, metadata=msgspec.structs.replace(node.metadata, annotations=annotations)
    )


def _ends(plan: Plan, warned: tuple[NodeClaim, Node]) -> bool:
    return any(isinstance(action, DeleteObject) and action.ref == ref(warned[0]) for action in plan.actions)


def _waiting(plan: Plan, pods: Iterable[Pod]) -> set[str]:
    """The namespaces of pods that have no place."""
    keys = {refusal.subject.removeprefix("pod/") for refusal in plan.refusals}
    return {one.metadata.namespace for one in pods if one.key in keys}


def main() -> int:
    """Measure one shape and print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile.measure", description="Measure one shape.")
    parser.add_argument("shape", choices=sorted(SHAPES))
    parser.add_argument("number", type=int)
    chosen = parser.parse_args()
    json.dump(asdict(measured(chosen.shape, chosen.number)), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
