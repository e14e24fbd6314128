"""Realised savings: the price of nodes that consolidation removed, less the price of their replacements.

Only removals count whose begin and end were seen, with known prices. Nodes that were launched later for the same pods
are not subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.command import Command, command_of
from kerf.disruption.view import View
from kerf.model.snapshot import Snapshot
from kerf.views.cluster import known_price
from kerf_api.v1.budgets import EMPTY, UNDERUTILIZED
from kerf_api.v1.nodeclaim import NodeClaim

_REASONS: Final = (EMPTY, UNDERUTILIZED)
_HOUR, _MICROSECOND = timedelta(hours=1), timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class PoolSaving:
    """The commands of consolidation that removed nodes of a NodePool. Money is in millionths of a dollar per hour.

    A command with nodes of several NodePools counts for each. `after` is then the part of the replacements' price that
    the nodes of this NodePool were of the price of all its nodes.
    """

    name: str
    commands: int = 0
    removed: int = 0
    before: int = 0
    after: int = 0

    @property
    def saved(self) -> int:
        """Negative when the replacements cost more."""
        return self.before - self.after

    def __add__(self, other: PoolSaving) -> PoolSaving:
        commands, removed = self.commands + other.commands, self.removed + other.removed
        return PoolSaving(self.name, commands, removed, self.before + other.before, self.after + other.after)


@dataclass(frozen=True, slots=True)
class Savings:
    """The NodePools with the highest savings first.

    Attributes:
        amount: in millionths of a dollar: each saving per hour, times the time from the removal to `ended`.
        unpriced: commands that are not counted, because a price is not known.
        open: commands whose nodes were not removed completely before `ended`.
    """

    pools: tuple[PoolSaving, ...]
    began: datetime
    ended: datetime
    amount: int
    unpriced: int
    open: int

    @property
    def all(self) -> PoolSaving:
        """The sum; a command with nodes of two NodePools counts twice in `commands`."""
        return sum(self.pools, PoolSaving(""))


@dataclass(slots=True)
class _Running:
    """A command; `removed` has NodePool and price by NodeClaim."""

    command: Command
    removed: dict[str, tuple[str, int | None]] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """Adds up what snapshots show, one after another. Memory grows with NodePools and running commands only."""

    _pools: dict[str, PoolSaving] = field(default_factory=dict)
    _running: dict[str, _Running] = field(default_factory=dict)
    _began: datetime | None = None
    _counted_to: datetime | None = None
    _rate: int = 0
    #: In millionths of a dollar per hour, times microseconds: decisions follow each other within a second.
    _price_time: int = 0
    _unpriced: int = 0

    def concerns(self, claims: Mapping[str, NodeClaim], names: Iterable[str]) -> bool:
        """Whether changes of these NodeClaims can change a sum: one is being deleted, or a command is running."""
        return bool(self._running) or any(claims[name].metadata.deleting for name in names if name in claims)

    def take(self, view: View, names: Iterable[str]) -> None:
        """The next snapshot; `names` are NodeClaims that may have changed since the one before."""
        self.advance(view.snapshot.now)
        claims = view.snapshot.node_claims
        for claim in (claims[name] for name in names if name in claims):
            command = _command(claim)
            if command is not None and claim.metadata.deleting:
                one = self._running.setdefault(command.id, _Running(command))
                price = known_price(view, claim.pool_name, claim.metadata.labels)
                one.removed.setdefault(claim.name, (claim.pool_name, price))
        for id_ in [id_ for id_, one in self._running.items() if _finished(one, view.snapshot)]:
            self._count(view, self._running.pop(id_))

    def advance(self, now: datetime) -> None:
        """Count the time up to now."""
        self._began = self._began or now
        passed = now - (self._counted_to or now)
        if passed > timedelta(0):
            self._price_time += self._rate * (passed // _MICROSECOND)
        self._counted_to = max(now, self._counted_to or now)

    def found(self) -> Savings | None:
        """The sums; None before the first snapshot."""
        if self._began is None or self._counted_to is None:
            return None
        pools = sorted(self._pools.values(), key=lambda one: (-one.saved, one.name))
        amount = self._price_time // (_HOUR // _MICROSECOND)
        return Savings(tuple(pools), self._began, self._counted_to, amount, self._unpriced, len(self._running))

    def _count(self, view: View, one: _Running) -> None:
        before, after = [price for _, price in one.removed.values()], list(_replacements(view, one.command))
        if None in before or None in after:
            self._unpriced += 1
            return
        whole, came = sum(price or 0 for price in before), sum(price or 0 for price in after)
        self._rate += whole - came
        for pool in sorted({pool for pool, _ in one.removed.values()}):
            prices = [price or 0 for name, price in one.removed.values() if name == pool]
            part = came * sum(prices) // whole if whole else came * len(prices) // len(one.removed)
            row = PoolSaving(pool, 1, len(prices), sum(prices), part)
            self._pools[pool] = self._pools.get(pool, PoolSaving(pool)) + row


def _command(claim: NodeClaim) -> Command | None:
    """The command of consolidation that removes the NodeClaim."""
    command = None if claim.metadata.unreadable else command_of(claim.metadata.annotations)
    return command if command is not None and command.reason in _REASONS else None


def _finished(one: _Running, snapshot: Snapshot) -> bool:
    """Whether no NodeClaim of the command is left; those that it does not remove any more do not count."""
    claims = (snapshot.node_claims.get(name) for name in {*one.removed, *one.command.peers})
    left = (command_of(claim.metadata.annotations) for claim in claims if claim is not None)
    return all(command is None or command.id != one.command.id for command in left)


def _replacements(view: View, command: Command) -> Iterator[int | None]:
    """The prices of the replacements; None for one that is not there any more."""
    for name in command.replacements:
        claim = view.snapshot.node_claims.get(name)
        yield None if claim is None else known_price(view, claim.pool_name, claim.metadata.labels)
