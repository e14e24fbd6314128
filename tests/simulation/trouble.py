"""What goes wrong at the ports: a script's faults, each when its time has come."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import islice

from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.ports import (
    Conflict,
    Disconnected,
    Expired,
    Forbidden,
    Invalid,
    PortError,
    TemplateMissing,
    Throttled,
    Unavailable,
)
from kerf.sandbox.aws.machines import Machine
from kerf.sandbox.faults import Call, Faults
from tests.simulation.scripts import Fault
from tests.simulation.sight import INSTANCES, Sight

READS = frozenset(
    {
        "list",
        "watch",
        "read",
        "get",
        "get_lease",
        "instances",
        "region",
        "on_demand_prices",
        "spot_prices",
        "cluster",
        "resolve",
        "receive",
        "impairments",
        "zonal_shifts",
        "launch_templates",
        "instance_profiles",
    }
)
#: Written at any time without changing what anybody decides on.
HARMLESS = frozenset({"emit", "put_lease", "delete_message", "dry_run", "delete_resource"})
#: What the controller's picture of the world is made of.
_SHOWS = frozenset({"list", "watch", "read", "instances"})
_ERRORS: dict[str, type[PortError]] = {
    error.__name__: error
    for error in (Conflict, Disconnected, Expired, Forbidden, Invalid, TemplateMissing, Throttled, Unavailable)
}
#: Answers to a fleet call after which another call is planned.
_FINAL = frozenset({"Forbidden", "Invalid", "TemplateMissing"})
#: What a watch does without an error.
_QUIET = frozenset({"Silence", "Reordered"})
_REMEMBERED = 60


class Killed(BaseException):
    """The controller's process is gone; nothing of it runs on, not even error handling."""


class Trouble(Faults):
    """The faults of a script until `end`. `before_write` hears of every write first, `depose` of a lease that ends."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._waiting = deque(sorted(faults, key=lambda fault: fault.at))
        self._armed: list[Fault] = []
        self._now: Callable[[], datetime] = lambda: _NEVER
        self._started = _NEVER
        #: When the next fault is armed or over, in virtual seconds since the start.
        self._turns_at = 0.0
        self.before_write: Callable[[Call], None] = lambda call: None
        self.depose: Callable[[float], None] = lambda seconds: None
        #: The latest writes with their outcome; how many there were, and events.
        self.log: deque[str] = deque(maxlen=_REMEMBERED)
        self.writes = self.events = self.events_on_pods = 0
        #: The launch groups of fleet calls that were refused for good.
        self.refused_groups: set[str] = set()
        #: What the controller can see in spite of the faults.
        self.sight = Sight()

    def begin(self, now: Callable[[], datetime]) -> None:
        self._now, self._started = now, now()

    def end(self) -> None:
        """From here on nothing fails."""
        self._waiting.clear()
        self._armed.clear()

    @property
    def elapsed(self) -> float:
        """Virtual seconds since the start."""
        return (self._now() - self._started).total_seconds()

    @property
    def wakes_at(self) -> datetime | None:
        """When a silence ends and there may be something to read."""
        if not self._armed:
            return None
        ends = [fault.at + fault.lasts for fault in self._armed if fault.error == "Silence"]
        later = [end for end in ends if end > self.elapsed]
        return self._started + timedelta(seconds=min(later)) if later else None

    # --- the seam -------------------------------------------------------------------------------------------------
    def before(self, call: Call) -> None:
        if call.verb == "emit":
            self.events += 1
            self.events_on_pods += call.subject.startswith("pod/")
            self._note(call, "")
        elif call.verb not in READS and call.verb not in HARMLESS:
            self.writes += 1
            self._note(call, "")
            self.before_write(call)
        if self._armed or self._waiting:
            self._strike(call, after=False)

    def after(self, call: Call) -> None:
        if self._armed or self._waiting:
            self._strike(call, after=True)
        if call.verb == INSTANCES:
            self.sight.shows(INSTANCES, self._now())

    def silent(self, call: Call) -> bool:
        silent = self._quietly("Silence", call)
        if not silent:  # what a watch has to say is said now
            self.sight.shows(call.subject, self._now())
        return silent

    def reordered(self, call: Call) -> bool:
        return self._quietly("Reordered", call)

    def _quietly(self, error: str, call: Call) -> bool:
        if not self._armed and not self._waiting:
            return False
        self._arm()
        found = any(f.error == error and _meant(f, call) for f in self._armed)
        if found:
            self.sight.hides(call.subject)
        return found

    def _strike(self, call: Call, *, after: bool) -> None:
        self._arm()
        for fault in self._armed:
            if fault.after is after and fault.error not in _QUIET and _meant(fault, call):
                if not fault.lasts or fault.error == "Deposed":
                    self._armed.remove(fault)
                self._fail(fault, call)
                return

    def _fail(self, fault: Fault, call: Call) -> None:
        self._note(call, f" -> {fault.error} {'after' if fault.after else 'before'}")
        if fault.error == "Crash":
            raise Killed(str(call))
        if fault.error == "Deposed":
            self.depose(fault.lasts)
            return
        if _hides(fault, call):
            self.sight.hides(_source(call))
        if call.verb == "create_fleet" and fault.error in _FINAL:
            self.refused_groups.add(call.subject)
        raise _ERRORS[fault.error](f"{call.verb} {call.subject}: {fault.error} by script")

    def _arm(self) -> None:
        """Faults whose time has come are armed; those that lasted long enough are over."""
        elapsed = self.elapsed
        if elapsed < self._turns_at:
            return
        while self._waiting and self._waiting[0].at <= elapsed:
            self._armed.append(self._waiting.popleft())
        self._armed = [f for f in self._armed if not f.lasts or f.at + f.lasts > elapsed]
        ends = [f.at + f.lasts for f in self._armed if f.lasts]
        self._turns_at = min([*ends, *(f.at for f in islice(self._waiting, 1))], default=math.inf)

    def _note(self, call: Call, outcome: str) -> None:
        self.log.append(f"{self.elapsed:8.2f} s  {call.port} {call.verb} {call.subject}{outcome}")


def _meant(fault: Fault, call: Call) -> bool:
    return fault.port == call.port and call.verb in fault.verbs and (not fault.subject or fault.subject == call.subject)


def _hides(fault: Fault, call: Call) -> bool:
    """Whether there may be something now that the controller does not know: a refused write is nothing of the kind."""
    if call.verb in READS:
        return call.verb in _SHOWS
    return fault.after and call.verb not in HARMLESS


def _source(call: Call) -> str:
    """What shows the outcome of a call: a kind's watch, or EC2's list."""
    if call.port == "cloud":
        return INSTANCES
    return call.subject if call.verb in _SHOWS else kinds.BY_NAME[address(call.subject).kind].plural


_NEVER = datetime.fromisoformat("2000-01-01T00:00:00+00:00")


def address(subject: str) -> Ref:
    """The object that a call's subject names."""
    kind, *place = subject.split("/")
    name = next(known.name for known in kinds.KNOWN if known.name.lower() == kind)
    return Ref(name, place[0] if len(place) == 2 else "", place[-1])


def lives(machine: Machine) -> bool:
    return machine.state in ("pending", "running")
