"""Devices for the claims of a pod on one node: the first combination that answers all requests, found by trying.

Devices are tried in the order in which they are given, alternatives in the order of the claim; what was taken is given
back before another is tried. The work is bounded by a number of steps: a claim for which nothing was found by then gets
nothing, and its pod gets the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from kerf.model.kubernetes.devices import Attribute
from kerf.scheduling.devices.asks import MOST_RESULTS, Asked, Bound, Choice
from kerf.scheduling.devices.pools import Device, PoolId, Reach
from kerf.scheduling.devices.selectors import UnreadableSelector, matches
from kerf.scheduling.devices.usage import Share, Usage, share_of
from kerf_api.requirements import Requirements

#: So many devices are tried for a pod on a node.
MOST_STEPS = 20_000
#: How words about a request end of which there is no device at all.
NONE = "there is none that it selects"
#: Requirements with a reach; None where the device cannot be reached under them.
Narrowed = Callable[[Requirements, Reach], Requirements | None]


@dataclass(frozen=True, slots=True, eq=False)
class Pick:
    """A device for a request of a claim, with what is taken of it, and where it can be reached from."""

    claim: str
    request: str
    device: Device
    share: Share
    reach: Reach


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Devices for everything that was asked for, and the requirements under which they can be reached."""

    picks: tuple[Pick, ...]
    requirements: Requirements


class Matching:
    """Which devices a choice is about: worked out once for each, with what it would take of them."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, int], bool] = {}
        self._shares: dict[tuple[int, int], Share | None] = {}
        self._kept: list[object] = []

    def share(self, choice: Choice, device: Device) -> Share | None:
        """None when the device is none of these. Raises UnreadableSelector."""
        key = (id(choice), id(device))
        if key not in self._shares:
            self._kept += (choice, device)  # so that no other claim gets their identities
            suits = self._tolerated(choice, device) and all(self._matches(e, device) for e in choice.expressions)
            self._shares[key] = share_of(device.spec, choice.amounts) if suits else None
        return self._shares[key]

    def _matches(self, expression: str, device: Device) -> bool:
        key = (expression, id(device))
        if key not in self._answers:
            self._answers[key] = matches(expression, device.driver, device.spec)
        return self._answers[key]

    def _tolerated(self, choice: Choice, device: Device) -> bool:
        """Whether the request tolerates all taints of the device that keep pods away."""
        hard = (taint for taint in device.spec.taints if taint.effect in ("NoSchedule", "NoExecute"))
        return all(any(t.tolerates(taint) for t in choice.tolerations) for taint in hard)


class _Selected:
    """The devices that a choice is about, in their order. Each device is looked at once, and not before it is needed:
    a selector that fails on a later one does no harm."""

    def __init__(self, choice: Choice, devices: Sequence[Device], matching: Matching) -> None:
        self._choice, self._rest, self._matching = choice, iter(devices), matching
        self._found: list[tuple[Device, Share]] = []

    def at(self, place: int) -> tuple[Device, Share] | None:
        """The device at a place among them; None when there are fewer. Raises UnreadableSelector."""
        while len(self._found) <= place:
            device = next(self._rest, None)
            if device is None:
                return None
            if (share := self._matching.share(self._choice, device)) is not None:
                self._found.append((device, share))
        return self._found[place]

    def all(self) -> Sequence[tuple[Device, Share]]:
        while self.at(len(self._found)) is not None:
            pass
        return self._found


@dataclass(slots=True, eq=False)
class Search:
    """One search. `usage` says where it is counted what is taken of a device; it is left as it was found."""

    asked: Sequence[Asked]
    devices: Sequence[Device]
    unsound: Mapping[PoolId, str]
    usage: Callable[[Device], Usage]
    narrowed: Narrowed
    matching: Matching
    why: str = ""
    steps: int = 0
    _picks: list[Pick] = field(default_factory=list)
    _requests: list[tuple[Asked, tuple[Choice, ...]]] = field(default_factory=list)
    _requirements: list[Requirements] = field(default_factory=list)
    _selected: dict[int, _Selected] = field(default_factory=dict)

    def run(self, requirements: Requirements) -> Found | None:
        """None when there is nothing; then `why` says what was missed first or last."""
        self._requests = [(one, choices) for one in self.asked for choices in one.requests]
        self._requirements = [requirements]
        try:
            if not self._answer(0):
                if self.steps >= MOST_STEPS:
                    self.why = f"no devices were found within {MOST_STEPS} steps"
                return None
            return Found(tuple(self._picks), self._requirements[-1])
        except (UnreadableSelector, ValueError) as error:
            self.why = str(error)
            return None
        finally:
            while self._picks:
                self._undo()

    def _answer(self, number: int) -> bool:
        """Devices for this request and all after it."""
        if number == len(self._requests):
            return True
        one, choices = self._requests[number]
        for choice in choices:
            if self._every(number, one, choice) if choice.every else self._some(number, one, choice, 0, choice.count):
                return True
            self.why = self.why or _missing(one, choice, len(self._candidates(choice).all()))
        return False

    def _candidates(self, choice: Choice) -> _Selected:
        """The devices that a choice is about, for as long as this search."""
        known = self._selected.get(id(choice))
        if known is None:
            known = self._selected[id(choice)] = _Selected(choice, self.devices, self.matching)
        return known

    def _every(self, number: int, one: Asked, choice: Choice) -> bool:
        """All of them, or none; where one can be reached in several ways, in the first that will do."""
        if self.unsound:
            (driver, pool), problem = next(iter(self.unsound.items()))
            raise ValueError(f"request {choice.name} asks for all devices, but pool {pool} of {driver} {problem}")
        candidates, before = self._candidates(choice).all(), len(self._picks)
        taken = bool(candidates) and all(self._take(one, choice, device, share) for device, share in candidates)
        if taken and self._answer(number + 1):
            return True
        while len(self._picks) > before:
            self._undo()
        return False

    def _some(
        self,
        number: int,
        one: Asked,
        choice: Choice,
        start: int,
        left: int,
    ) -> bool:
        """So many of the devices from here on: equal combinations are tried in one order only.

        One request gets a device once, also one that several requests may share.
        """
        if not left:
            return self._answer(number + 1)
        candidates = self._candidates(choice)
        for place in count(start):
            if (candidate := candidates.at(place)) is None:
                return False
            device, share = candidate
            for reach in device.reaches:
                if not self._take(one, choice, device, share, reach):
                    continue
                if self._some(number, one, choice, place + 1, left - 1):
                    return True
                self._undo()
            if self.steps >= MOST_STEPS:
                return False
        return False

    # --- taking -------------------------------------------------------------------------------------------------
    def _take(self, one: Asked, choice: Choice, device: Device, share: Share, only: Reach | None = None) -> bool:
        """Take the device for a request, if nothing is against it."""
        self.steps += 1
        usage = self.usage(device)
        own = sum(pick.claim == one.key for pick in self._picks)
        if own >= MOST_RESULTS or not usage.admits(device, share) or not self._within(one, choice, device):
            return False
        for reach in (only,) if only is not None else device.reaches:
            then = self.narrowed(self._requirements[-1], reach)
            if then is not None:
                usage.take(device, share)
                self._picks.append(Pick(one.key, choice.name, device, share, reach))
                self._requirements.append(then)
                return True
        return False

    def _undo(self) -> None:
        pick = self._picks.pop()
        self._requirements.pop()
        self.usage(pick.device).give_back(pick.device, pick.share)

    def _within(self, one: Asked, choice: Choice, device: Device) -> bool:
        """Whether the claim's constraints admit the device beside those that it has."""
        for bound in one.bounds:
            if not bound.concerns(choice.name):
                continue
            value = attribute(device, bound.attribute)
            others = [p.device for p in self._picks if p.claim == one.key and bound.concerns(p.request)]
            if value is None or any(_apart(bound, value, attribute(other, bound.attribute)) for other in others):
                self.why = self.why or f"request {choice.name}: no devices that agree on {bound.attribute}"
                return False
        return True


def attribute(device: Device, name: str) -> Attribute | None:
    """The value of an attribute by its full name; a device may leave out its driver's own domain."""
    domain, _, rest = name.partition("/")
    return device.spec.attributes.get(name) or (device.spec.attributes.get(rest) if domain == device.driver else None)


def _apart(bound: Bound, value: Attribute, other: Attribute | None) -> bool:
    """Whether the two values break the constraint."""
    return (value == other) == bound.distinct


def _missing(one: Asked, choice: Choice, candidates: int) -> str:
    name = one.key.rpartition("/")[2]
    wanted = "all devices" if choice.every else f"{choice.count} {'devices' if choice.count > 1 else 'device'}"
    there = f"too few of the {candidates} devices that it selects are free" if candidates else NONE
    return f'resourceclaim "{name}", request {choice.name} asks for {wanted}: {there}'
