"""The conductor: one snapshot in, one plan out. No I/O, no clock, no randomness; the same snapshot, the same plan.

The rooms are asked in the order of urgency: the life of what exists, then what must be removed, then what pending pods
need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from kerf.disruption.commands import START_COMMAND
from kerf.disruption.disrupt import DISRUPTION, disrupt, waits_for_first_pass
from kerf.disruption.methods.methods import METHODS, Method
from kerf.lifecycle.lifecycle import LIFECYCLE, lifecycle
from kerf.lifecycle.nodeclaim.foreseen import prepare
from kerf.model import ends
from kerf.model.kept import of_use
from kerf.model.memory import Memory, Turn
from kerf.model.plan import INTERNAL_ERROR, Action, PatchObject, Plan, Reason, Refusal, joined
from kerf.model.snapshot import Snapshot
from kerf.provisioning.provision import provision
from kerf.provisioning.static import keep_replicas
from kerf.scheduling.facts.nodes import sites


def decide(snapshot: Snapshot, memory: Memory | None = None, methods: Sequence[Method] = METHODS) -> Plan:
    """What to do now, why not more, and when to look again. A memory saves work, and changes nothing; `methods` are
    those by which nodes are removed voluntarily."""
    turn = (memory or Memory()).turn(snapshot)
    known = turn.repeated(tuple(methods))
    return known if known is not None else turn.decided(tuple(methods), _decided(snapshot, turn, methods))


def _decided(snapshot: Snapshot, turn: Turn, methods: Sequence[Method]) -> Plan:
    how = waits_for_first_pass(snapshot), *methods
    rooms = (
        ("lifecycle", lambda: turn.standing(LIFECYCLE, (), lambda: lifecycle(snapshot, turn))),
        ("disruption", lambda: turn.standing(DISRUPTION, how, lambda: disrupt(snapshot, turn=turn, methods=methods))),
        ("provisioning", lambda: provision(snapshot, turn)),
    )
    plan = joined(_asked(name, room, snapshot) for name, room in rooms)
    plan += _asked("static NodePools", lambda: keep_replicas(snapshot, turn, _replaced(plan)), snapshot)
    plan += _asked("pending launches", lambda: prepare(snapshot, plan.foreseen), snapshot)
    if turn.refusals:
        plan += Plan(refusals=turn.refusals, next_due=snapshot.now + snapshot.settings.disruption_period)
    actions = of_use(ends.noted(snapshot, plan.actions), snapshot.dropped_fields)
    return replace(plan, actions=_one_guarded_write_per_object(actions))


def _replaced(plan: Plan) -> frozenset[str]:
    """The claims for which a plan starts a command; their successors need room, too."""
    return frozenset(a.ref.name for a in plan.actions if isinstance(a, PatchObject) and a.verb == START_COMMAND)


def rehearse(snapshot: Snapshot, memory: Memory) -> None:
    """Have the memory know what decisions about this world rest on, without deciding: the first real one is quick."""
    decide(snapshot, memory)
    sites(memory.turn(snapshot))


def _asked(name: str, room: Callable[[], Plan], snapshot: Snapshot) -> Plan:
    """A room's plan; a bug in one room must not keep the others from their work."""
    try:
        return room()
    except Exception as error:
        due = snapshot.now + snapshot.settings.disruption_period
        reason = Reason(INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        return Plan(refusals=(Refusal(name, reason),), next_due=due)


def _one_guarded_write_per_object(actions: Iterable[Action]) -> tuple[Action, ...]:
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
