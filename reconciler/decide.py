"""The conductor: one snapshot in, one plan out. No I/O, no clock, no randomness; the same snapshot, the same plan.

The rooms are asked in the order of urgency: the life of what exists, then what must go, then what pending pods need.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.disruption.disrupt import disrupt
from reconciler.lifecycle.lifecycle import lifecycle
from reconciler.model.memory import Memory
from reconciler.model.plan import Action, PatchObject, Plan
from reconciler.model.snapshot import Snapshot
from reconciler.provisioning.provision import provision


def decide(snapshot: Snapshot, memory: Memory | None = None) -> Plan:
    """What to do now, why not more, and when to look again. A memory saves work, and changes nothing."""
    turn = (memory or Memory()).turn(snapshot)
    plan = lifecycle(snapshot, turn) + disrupt(snapshot, turn=turn) + provision(snapshot)
    return replace(plan, actions=_one_guarded_write_per_object(plan.actions))


def _one_guarded_write_per_object(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Keep the first patch of an object; later ones that rest on the same version of it could only conflict.

    What is dropped is decided again as soon as the first write shows.
    """
    written: set[str] = set()
    kept: list[Action] = []
    for action in actions:
        if isinstance(action, PatchObject):
            if action.lane in written and action.resource_version:
                continue
            written.add(action.lane)
        kept.append(action)
    return tuple(kept)
