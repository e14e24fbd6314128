"""What a controller is put together from besides the outside world: who reports, who decides, what is shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kerf.decide import decide, rehearse
from kerf.ec2.instance_types import catalogue
from kerf.model.memory import Memory
from kerf.model.plan import Plan
from kerf.model.snapshot import Snapshot
from kerf.runtime.inbox import Inbox
from kerf.runtime.proposer import Proposer
from kerf.runtime.secrets.launch_keys import LaunchKeys
from kerf.runtime.state.catalogues import Build
from kerf.telemetry.precedence import Precedence
from kerf.telemetry.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts that a process shares with others, or that stand in for the usual ones; of what is None the controller has
    its own."""

    telemetry: Telemetry | None = None
    decide: Callable[[Snapshot, Memory], Plan] = decide
    rehearse: Callable[[Snapshot, Memory], None] = rehearse
    proposer: Proposer | None = None
    inbox: Inbox | None = None
    precedence: Precedence | None = None
    keys: LaunchKeys | None = None
    build: Build = catalogue.build
