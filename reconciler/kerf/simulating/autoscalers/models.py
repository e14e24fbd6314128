"""The models that `kerf simulate --against` knows, with their limits and their measured distance from the original."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kerf.decide import decide
from kerf.disruption.methods.methods import Method
from kerf.model.kinds import Ref
from kerf.model.snapshot import Snapshot
from kerf.runtime.parts import Parts
from kerf.runtime.proposer import Proposer
from kerf.sandbox.world import World
from kerf.simulating.autoscalers.greedy import greedy
from kerf.simulating.autoscalers.pacing import Changes
from kerf.simulating.autoscalers.threshold import threshold


@dataclass(frozen=True, slots=True)
class Model:
    """Another autoscaler's consolidation in Kerf's controller.

    Attributes:
        original: the autoscaler that the model is about.
        modelled: the part of it that the model has.
        shared: the parts of Kerf that the model uses, so that a comparison with Kerf cannot judge them.
        omitted: the parts that it does not have; these are Kerf's, or missing.
        distance: measured differences from the original, with the method of the measurement.
    """

    original: str
    methods: Callable[[Changes], tuple[Method, ...]]
    modelled: str
    shared: str
    omitted: tuple[str, ...]
    distance: tuple[str, ...]

    @property
    def label(self) -> str:
        """The label of all figures of the model."""
        return f"a model by Kerf's authors, not {self.original} itself"


_SHARED: Final = (
    "the simulation, and Kerf's scheduler, which places pods and chooses new nodes. An error in how Kerf reads the"
    " rules of pods and NodePools is in both columns, and the comparison does not show it"
)

MODELS: Final[Mapping[str, Model]] = {
    "karpenter-double": Model(
        "Karpenter",
        greedy,
        "Karpenter's order of consolidation: candidates by savings per disruption, the longest prefix that at most one"
        " cheaper node replaces, then single nodes, one command at a time, checked again after 15 s",
        f"{_SHARED}. Another test compares Kerf's placements with Karpenter's own scheduler on small random clusters:"
        " make differential",
        (
            "scheduling and the choice of new nodes are Kerf's",
            "launches, drift, expiration, interruption, repair and drains are Kerf's",
            "the policy Balanced works as WhenEmptyOrUnderutilized",
            "Karpenter's limits of run time for a search, and its faults, are missing",
        ),
        (
            "Scale-down from 1,500 to 600 pods with the same instance types, prices and seed 1. Karpenter 1.14.1 with"
            " its KWOK provider, one run on a real control plane: final cost 1.014 times the lower bound, 248"
            " evictions, 4 launches, last change after 123 s. The model, one run in the simulation: 1.014 times, 367"
            " evictions, 6 launches, 296 s. The model with seeds 2 to 5, which Karpenter did not run: 1.036 to 1.149"
            " times, 430 to 618 evictions. Command: python -m benchmarks.scale_down.laboratory --by karpenter-double.",
            "New nodes: Karpenter's own scheduler, called with the same pods and types as Kerf's, plans nodes that cost"
            " 1.07 to 1.97 times those of Kerf's. The model has Kerf's scheduler, so Karpenter itself can cost more."
            " Command: make bench-peer.",
        ),
    ),
    "threshold": Model(
        "Cluster Autoscaler",
        threshold,
        "removal of nodes whose pods request less than half of their CPU and memory for ten minutes: empty nodes"
        " together, others one at a time if their pods fit elsewhere, without a replacement",
        _SHARED,
        (
            "node groups, expanders and the scale-up of Cluster Autoscaler: Kerf launches the nodes",
            "consolidationPolicy, consolidateAfter, and budgets with their windows have no effect on these removals",
            "drift, expiration, interruption, repair and drains are Kerf's",
        ),
        ("The distance from Cluster Autoscaler is not measured.",),
    ),
}


class NoProposals(Proposer):
    """No search for savings beside the loop: a model searches in its method."""

    def start(self, snapshot: Snapshot, changes: Mapping[Ref, Any | None]) -> bool:
        """Take the changes."""
        return True

    def forget(self) -> None:
        """It has no state."""

    def rest(self) -> None:
        """It uses nothing."""

    def close(self) -> None:
        """Nothing is open."""


def parts(name: str, given: Parts, world: World) -> Parts:
    """The parts of a controller with the methods of a model; the given ones for an empty name."""
    if not name:
        return given
    methods = MODELS[name].methods(lambda: (world.server.loud_changes, world.ec2.changes))
    return replace(given, decide=partial(decide, methods=methods), proposer=NoProposals())
