"""What consolidation really saves: each command is measured some minutes after its last node has gone.

Saved is the cost of the removed nodes, less what the replacements cost that were launched, less a share of the nodes
that had to be bought meanwhile for pods of the same controllers: as much of each as these pods are of all on it, and of
each controller no more pods than were moved. A workload that has grown in these minutes looks like one that lost its
place, so that the reported saving is rather too small than too large.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from kerf.disruption.candidates import costs
from kerf.disruption.command import Command, command_of, replaced_by
from kerf.disruption.consolidation.pausing import after, pause_of
from kerf.disruption.view import View
from kerf.model import kinds
from kerf.model.annotations import text_of
from kerf.model.aws.accounts import NO_ACCOUNTS, Account, Accounts, Gone, Measured
from kerf.model.instants import earliest
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.memory import Step
from kerf.model.plan import NOTHING, Event, Plan, Reason, joined
from kerf.model.writes import annotate
from kerf.scheduling.offerings.prices import dollars
from kerf_api import labels
from kerf_api.texts import counted
from kerf_api.v1.budgets import UNDERUTILIZED
from kerf_api.v1.nodeclaim import NodeClaim

#: Nodes that are bought within this time after a command count for it; then it is measured.
FOLLOW_UP: Final = timedelta(minutes=5)
#: Pods of a command that ended so long ago belong to no other command, however long another one takes.
_SHARED: Final = timedelta(hours=1)


def measure(view: View) -> Plan:
    """The accounts as they are now, what came of those whose time has come, and the pauses that follow."""
    known = view.snapshot.accounts
    going = view.turn.all(_GOING, view.each).spoken
    if not going and known == NO_ACCOUNTS:
        return NOTHING
    open_ = {one.id: one for one in _carried_on(view, known.open, going)}
    due = [one for one in open_.values() if not one.measured and _measured_at(one, view.snapshot.now)]
    found = _results(view, open_, due)
    now = _second(view.snapshot.now)
    losses = {name: row for name, row in known.losses.items() if not _written(view, name, row[0])}
    losses |= {one.pool: (now, -one.realised) for one in found if one.realised < 0}
    open_ = _kept({**open_, **{one.id: replace(one, measured=True) for one in due}}, view.snapshot.now)
    told = tuple(_told(view, one) for one in found if one.pool in view.snapshot.node_pools)
    dues = [one.ended + FOLLOW_UP for one in open_.values() if one.ended is not None and not one.measured]
    plan = Plan(measured=found, accounts=Accounts(open_, losses), events=told, next_due=earliest(dues))
    return joined((plan, *(_pause(view, name, *losses[name]) for name in sorted(losses))))


# --- what is on its way -------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Going:
    """A node that is removed by a command whose saving is known, and how many pods of which controllers leave it."""

    command: Command
    gone: Gone
    moved: Mapping[str, int]


def _going(view: View, name: str) -> tuple[_Going | None, None]:
    claim = view.snapshot.node_claims[name]
    if not claim.metadata.deleting or claim.metadata.unreadable:
        return None, None
    command = command_of(claim.metadata.annotations)
    if command is None or command.reason != UNDERUTILIZED or command.saving is None:
        return None, None
    on_node = view.snapshot.pods.on(claim.status.node_name)
    moved = Counter(owner for pod in on_node if pods.reschedulable(pod) and (owner := _owner(pod)))
    return _Going(command, Gone(claim.pool_name, _price(view, claim)), moved), None


_GOING: Final[Step[View, _Going | None]] = Step(
    "NodeClaims removed by consolidation", "node_claims", _going, speaks=lambda found: found is not None
)


def _carried_on(view: View, known: Mapping[str, Account], going: Mapping[str, _Going | None]) -> Iterator[Account]:
    """The accounts, with the claims that have begun to be removed, and with the end of those of which all have gone."""
    fresh: dict[str, dict[str, _Going]] = {}
    for name, one in going.items():
        if one is not None and (one.command.id not in known or name not in known[one.command.id].gone):
            fresh.setdefault(one.command.id, {})[name] = one
    staying = {command.id for command in view.commands.values()}
    for id_ in sorted({*known, *fresh}):
        account = known.get(id_) or _opened(view, next(iter(fresh[id_].values())).command)
        for name, one in sorted(fresh.get(id_, {}).items()):
            moved = Counter(account.moved) + Counter(one.moved)
            account = replace(account, gone={**account.gone, name: one.gone}, moved=moved)
        if account.ended is None and id_ not in staying and not account.gone.keys() & view.snapshot.node_claims.keys():
            account = replace(account, ended=view.snapshot.now)
        yield account


def _opened(view: View, command: Command) -> Account:
    return Account(command.id, _second(view.snapshot.now), command.saving or 0, {}, command.replacements, {})


def _second(instant: datetime) -> datetime:
    """As the API keeps instants."""
    return instant.replace(microsecond=0)


def _measured_at(one: Account, now: datetime) -> bool:
    return one.ended is not None and one.ended + FOLLOW_UP <= now


def _kept(accounts: Mapping[str, Account], now: datetime) -> dict[str, Account]:
    """Without those that share no minute with one that is still to be measured, or have ended long ago."""
    first = min((one.began for one in accounts.values() if not one.measured), default=None)
    if first is None:
        return {}
    oldest = max(first - FOLLOW_UP, now - _SHARED)
    return {id_: one for id_, one in accounts.items() if not one.measured or (one.ended or now) >= oldest}


# --- what came of it ----------------------------------------------------------------------------------------------
def _results(view: View, open_: Mapping[str, Account], due: Iterable[Account]) -> tuple[Measured, ...]:
    """By NodePool: each has the share of a command that its nodes were of the price of all."""
    rows: dict[str, list[Measured]] = {}
    bought = _bought(view, open_) if due else {}
    for one in due:
        claims = (view.snapshot.node_claims.get(name) for name in one.replacements)
        came = sum(_price(view, claim) for claim in claims if claim is not None)
        realised = one.price - came - bought.get(one.id, 0)
        for pool in sorted({gone.pool for gone in one.gone.values()}):
            mine = [gone.price for gone in one.gone.values() if gone.pool == pool]
            share = (sum(mine), one.price) if one.price else (len(mine), len(one.gone))
            part = Measured(pool, len(mine), one.promised * share[0] // share[1], realised * share[0] // share[1])
            rows.setdefault(pool, []).append(part)
    return tuple(
        Measured(pool, sum(r.nodes for r in own), sum(r.promised for r in own), sum(r.realised for r in own))
        for pool, own in sorted(rows.items())
    )


def _bought(view: View, accounts: Mapping[str, Account]) -> Counter[str]:
    """What nodes cost that were bought for the pods of commands, by command; each pod counts for one of them."""
    found: Counter[str] = Counter()
    order = sorted(accounts.values(), key=lambda one: (one.began, one.id))
    by_owner: dict[str, list[tuple[Account, Counter[str]]]] = {}
    for one in order:
        left = Counter(one.moved)
        for owner in left:
            by_owner.setdefault(owner, []).append((one, left))
    for at, claim in _new_claims(view, order):
        on_node = [p for p in view.pods_on(claim.status.node_name) if pods.reschedulable(p)]
        shares: Counter[str] = Counter()
        for owner in map(_owner, on_node):
            for one, left in by_owner.get(owner, ()):
                if _during(one, at) and left[owner] > 0:
                    left[owner] -= 1
                    shares[one.id] += 1
                    break
        for id_, number in shares.items():
            found[id_] += _price(view, claim) * number // len(on_node)
    return found


def _new_claims(view: View, accounts: Iterable[Account]) -> list[tuple[datetime, NodeClaim]]:
    """Claims with a node that are no replacement and were created while an account was open, the oldest first."""
    known = list(accounts)
    first = min(one.began for one in known)
    found = [
        (at, claim)
        for claim in view.snapshot.node_claims.values()
        if (at := claim.metadata.creation_timestamp) is not None
        and at >= first
        and any(_during(one, at) for one in known)
        and claim.status.node_name
        and not replaced_by(claim)
    ]
    return sorted(found, key=lambda row: (row[0], row[1].name))


def _during(one: Account, at: datetime) -> bool:
    return one.began <= at and (one.ended is None or at <= one.ended + FOLLOW_UP)


def _price(view: View, claim: NodeClaim) -> int:
    pool = view.snapshot.node_pools.get(claim.pool_name)
    return costs.node_price(view.types_of(pool) if pool is not None else {}, claim.metadata.labels)


def _owner(pod: Pod) -> str:
    """The UID of its controller; empty when it has none, and no controller makes it again."""
    found = pods.controller(pod)
    return found.uid if found is not None else ""


def _told(view: View, one: Measured) -> Event:
    pool = view.snapshot.node_pools[one.pool]
    removed = f"{counted(one.nodes, 'node')} {'was' if one.nodes == 1 else 'were'} removed"
    words = f"{removed}: {dollars(one.promised)} an hour were promised, {_saved(one.realised)}"
    type_ = "Normal" if one.realised >= 0 else "Warning"
    return Event(kinds.ref(pool), pool.metadata.uid, type_, "ConsolidationMeasured", words, words)


def _saved(realised: int) -> str:
    return f"{dollars(realised)} saved" if realised >= 0 else f"{dollars(-realised)} lost"


# --- what follows -------------------------------------------------------------------------------------------------
def _written(view: View, pool_name: str, at: datetime) -> bool:
    """Whether a loss stands in its NodePool's annotation, or there is no such pool any more."""
    pool = view.snapshot.node_pools.get(pool_name)
    if pool is None or pool.metadata.deleting or pool.metadata.unreadable:
        return True
    pause = pause_of(pool, at)
    return pause is not None and pause.at >= at


def _pause(view: View, pool_name: str, at: datetime, lost: int) -> Plan:
    pool = view.snapshot.node_pools.get(pool_name)
    if pool is None or _written(view, pool_name, at):
        return NOTHING
    reason = Reason("ConsolidationPaused", f"consolidation of NodePool {pool_name} cost {dollars(lost)} an hour")
    pause = {labels.CONSOLIDATION_PAUSE: text_of(after(pool, at, lost))}
    return Plan(actions=(annotate(pool, "PauseConsolidation", pause, reason),))
