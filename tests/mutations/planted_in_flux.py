"""The planted bugs of the health expressions that Flux reads."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_STEPS = "manifests/flux/kustomizations.yaml"
_HEALTH = ("tests/cluster/test_flux_health.py::test_the_health_of_what_is_seen",)


def _expression(name: str, breaks: str, old: str, new: str) -> Bug:
    return Bug(name, breaks, (Edit(_STEPS, old, new),), _HEALTH)


BUGS = (
    _expression(
        "a class that is ready by what was said before",
        "The NodePools are applied while nobody has looked at the class that was changed for them.",
        "status.conditions.exists(c, c.type == 'Ready' && c.status == 'True'\n"
        "      && c.observedGeneration == metadata.generation)",
        "status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
    ),
    _expression(
        "a commit that is done before its roll-out",
        "Flux reports a commit as applied while the nodes are still the old ones.",
        "['Ready', 'UpToDate'].all(",
        "['Ready'].all(",
    ),
    _expression(
        "a roll-out that can never end is waited for",
        "Nobody is told before the time-out that something holds the last nodes for good.",
        "(c.type == 'Stalled' && c.status == 'True')",
        "false",
    ),
    _expression(
        "held for a moment, and failed",
        "A roll-out fails when a PodDisruptionBudget is used up for a moment.",
        "(c.type == 'Stalled' && c.status == 'True')",
        "c.type == 'Stalled'",
    ),
    _expression(
        "not ready yet, and failed",
        "A NodePool fails because its class is not ready yet.",
        "(c.type == 'ValidationSucceeded' && c.status == 'False')",
        "(c.type == 'Ready' && c.status == 'False')",
    ),
)
