"""The replacements of a command: which it waits for, and until when."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.command import Command
from kerf.disruption.view import View
from kerf.model.claims import true_since
from kerf.scheduling.mismatch.watching import TAINT_GOES
from kerf_api.v1.nodeclaim import NodeClaim

_SHORTEST, _LONGEST, _EACH = timedelta(minutes=10), timedelta(hours=1), timedelta(milliseconds=80)
#: A command goes on for so long after all its replacements are initialized: for a taint to go, and for the deletion.
_COMPARED: Final = TAINT_GOES + timedelta(minutes=1)


def replacements(view: View, command: Command) -> list[NodeClaim]:
    """Those that there are."""
    claims = view.snapshot.node_claims
    return [claims[name] for name in command.replacements if name in claims]


def awaited(view: View, command: Command) -> list[NodeClaim]:
    """Those that cannot take pods yet."""
    return [claim for claim in replacements(view, command) if not claim.is_true("Initialized")]


def are_late(view: View, command: Command) -> bool:
    """Whether all have been launched, and not all are initialized."""
    launched = [claim for claim in replacements(view, command) if claim.is_true("Launched")]
    return len(launched) == len(command.replacements) and bool(awaited(view, command))


def ends_at(view: View, command: Command) -> datetime:
    """When a command that gets no further is rolled back. Replacements that start slowly leave time to compare them."""
    ready = [true_since(claim, "Initialized") for claim in replacements(view, command)]
    known = [at + _COMPARED for at in ready if at is not None]
    compared = known if len(known) == len(command.replacements) else []
    return max([command.started + _time_limit(view), *compared])


def _time_limit(view: View) -> timedelta:
    return max(_SHORTEST, min(_LONGEST, _EACH * len(view.commands)))
