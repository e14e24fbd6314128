"""The mass-kill guard: garbage collection ends few instances in an hour; when there are more it ends none, and asks.

An etcd that was restored, deleted CRDs and two clusters of one name all look like a fleet of orphans. What is to be
ended is written down first, on the NodePool (or EC2NodeClass) that the instance was launched for; only what stands
there is ended, so a restart forgets nothing, and a few now and a few soon add up. Too many, and the object gets the
condition GarbageCollectionHalted, which stays until nothing is in question or a person allows exactly what is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as change
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Final

from kerf.lifecycle.view import View
from kerf.model import kinds
from kerf.model.annotations import read, text_of
from kerf.model.boundaries import guarded
from kerf.model.gauges import Labels, PlanGauge
from kerf.model.instants import SKEW, Instant
from kerf.model.kinds import Ref
from kerf.model.plan import NOTHING, Plan, Reason, Refusal, Source, joined
from kerf.model.writes import act, changed, warning, with_condition, with_metadata
from kerf_api import labels
from kerf_api.texts import counted
from kerf_api.v1 import conditions
from kerf_api.v1.conditions import FALSE, TRUE
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import Value
from kerf_api.v1.nodepool import NodePool

SOURCES: Final = (Source.INSTANCES, Source.NODE_CLAIMS)
HALTED: Final = "GarbageCollectionHalted"
#: At most this many in an hour, or this share (one in …) of the fleet when that is more.
_FEW, _ONE_IN = 5, 20
WINDOW: Final = timedelta(hours=1)
#: An annotation holds no more IDs than this.
_MOST_AT_ONCE = 4000
_TOLD_AGAIN_SECONDS = 600
#: Why collection is halted. Too many stays so until an operator has allowed it; a doubt only while there is one.
_TOO_MANY, _DOUBTFUL, _UNREADABLE = "TooMany", "Doubtful", "Unreadable"

Keeper = NodePool | EC2NodeClass


@dataclass(frozen=True, slots=True)
class Suspect:
    """An instance that nothing stands for, or one that a claim stands for but EC2 does not know; not before `due`."""

    id: str
    pool: str
    node_class: str
    due: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """`released` are the IDs that may be ended now; `plan` is what is to be written and said."""

    released: frozenset[str]
    plan: Plan


class Entry(Value, frozen=True, kw_only=True):
    """Instances that are ended, since when; `allowed` by a person, or few enough."""

    at: Instant
    instances: tuple[str, ...]
    allowed: bool = False


def judge(view: View, suspects: Sequence[Suspect], doubt: str) -> Verdict:
    """What becomes of the suspects. `doubt` says why they may not be what they seem (empty: nothing)."""
    books = {ref: (keeper, _book(keeper)) for ref, keeper in _keepers(view).items()}
    written = frozenset(id_ for _, book in books.values() for entry in book or () for id_ in entry.instances)
    open_ = [suspect for suspect in suspects if suspect.id not in written]
    why = _why(view, open_, [book for _, book in books.values()], doubt)
    shares: dict[Ref | None, list[Suspect]] = {ref: [] for ref in books}
    for suspect in sorted(open_, key=lambda s: s.id):
        shares.setdefault(_keeper_of(view, suspect, books), []).append(suspect)
    orphaned = shares.pop(None, [])
    known = {suspect.id for suspect in suspects}
    plans = [
        guarded(str(ref), partial(_keep, view, *books[ref], share, why, known))
        for ref, share in shares.items()
        if ref is not None
    ]
    return Verdict(written, joined((*plans, _nobody(orphaned), *(_look_again(view, s) for s in open_))))


# --- who is asked -----------------------------------------------------------------------------------------------
def _keepers(view: View) -> dict[Ref, Keeper]:
    """Objects that can hold the list and be asked: pools by name, then classes by name."""
    pools: Iterable[Keeper] = (p for _, p in sorted(view.snapshot.node_pools.items()) if p.managed)
    classes: Iterable[Keeper] = (c for _, c in sorted(view.snapshot.node_classes.items()))
    return {kinds.ref(one): one for one in chain(pools, classes) if not one.metadata.deleting}


def _keeper_of(view: View, suspect: Suspect, keepers: Mapping[Ref, object]) -> Ref | None:
    """Its own pool, else its own class, else the first that there is."""
    own = (Ref(kinds.NODE_POOL.name, "", suspect.pool), Ref(kinds.NODE_CLASS.name, "", suspect.node_class))
    return next((ref for ref in (*own, *keepers) if ref in keepers), None)


def _nobody(suspects: Sequence[Suspect]) -> Plan:
    """Without any pool or class there is no object for the annotation, and nothing is terminated."""
    if not suspects:
        return Plan()
    text = f"Kerf does not terminate {_named(suspects)}: the cluster has no NodePool or EC2NodeClass for their record"
    refusal = Refusal("garbage", Reason(HALTED, text))
    return Plan(refusals=(refusal,), gauges=_gauge("", suspects))


def _gauge(subject: str, suspects: Sequence[Suspect]) -> dict[tuple[PlanGauge, Labels], float]:
    return {(PlanGauge.GARBAGE_COLLECTION_HELD, (("object", subject),)): float(len(suspects))}


# --- whether it is too much -------------------------------------------------------------------------------------
def _why(
    view: View, suspects: Sequence[Suspect], books: Iterable[tuple[Entry, ...] | None], doubt: str
) -> tuple[str, str] | None:
    """(code, words) of what speaks against ending anything; None when nothing does. Those too young count as well."""
    known = list(books)
    if None in known:
        return _UNREADABLE, f"an annotation {labels.GARBAGE} cannot be read"
    lately = sum(len(e.instances) for book in known for e in book or () if _late(view, e) and not e.allowed)
    fleet = max(len(view.snapshot.instances), len(view.snapshot.node_claims))
    limit = max(_FEW, fleet // _ONE_IN)
    if len(suspects) + lately > limit:
        before = f" after {lately:,} within the last hour" if lately else ""
        number = f"{counted(len(suspects), 'instance')} of {fleet:,}{before}"
        return _TOO_MANY, f"{number}: more than the {limit:,} that Kerf may terminate"
    return (_DOUBTFUL, doubt) if doubt else None


def _halted(keeper: Keeper) -> bool:
    """Whether it was too much once, and no operator has allowed it since."""
    known = conditions.get(keeper.status.conditions, HALTED)
    return known is not None and known.status == TRUE and known.reason in (_TOO_MANY, _UNREADABLE)


# --- one pool or class ------------------------------------------------------------------------------------------
def _keep(
    view: View,
    keeper: Keeper,
    book: tuple[Entry, ...] | None,
    share: Sequence[Suspect],
    why: tuple[str, str] | None,
    known: set[str],
) -> Plan:
    """Its share of the suspects: allowed by a person, held, or few enough to be written down; and its list kept."""
    share = share[:_MOST_AT_ONCE]
    ripe = [suspect for suspect in share if suspect.due <= view.snapshot.now]
    kept = tuple(e for e in book or () if _late(view, e) or not known.isdisjoint(e.instances))
    if share and keeper.metadata.annotations.get(labels.ALLOW_GARBAGE) == mark(share):
        return _write(view, keeper, (*kept, _entry(view, share, allowed=True)), allow=False)
    if why is None and _halted(keeper):
        why = (_TOO_MANY, "there were too many, and no user has allowed the termination of the others")
    if ripe and why is not None:
        return _hold(view, keeper, share, *why)
    if ripe:
        return joined((_write(view, keeper, (*kept, _entry(view, ripe))), _told(keeper, ripe)))
    if share:
        return Plan()
    rest = _write(view, keeper, kept) if book and kept != book else _due(view, kept)
    return joined((_relieved(view, keeper), rest))


def mark(suspects: Iterable[Suspect]) -> str:
    """A short name for exactly these instances."""
    text = "\n".join(sorted(suspect.id for suspect in suspects))
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _entry(view: View, suspects: Iterable[Suspect], *, allowed: bool = False) -> Entry:
    return Entry(at=view.now, instances=tuple(sorted(s.id for s in suspects)), allowed=allowed)


def _hold(view: View, keeper: Keeper, share: Sequence[Suspect], code: str, words: str) -> Plan:
    text = (
        f"Kerf does not terminate {_named(share)}: {words}. If nothing here needs them: "
        f"kubectl annotate {kinds.ref(keeper).kind.lower()} {keeper.name} {labels.ALLOW_GARBAGE}={mark(share)}"
    )
    reason = Reason(HALTED, text)
    event = change(warning(keeper, HALTED, text), dedupe=mark(share), dedupe_seconds=_TOLD_AGAIN_SECONDS)
    said = act(*changed(keeper, with_condition(keeper, HALTED, TRUE, code, text, now=view.now), "HaltGarbage", reason))
    subject = str(kinds.ref(keeper))
    return joined((said, Plan(refusals=(Refusal(subject, reason),), events=(event,), gauges=_gauge(subject, share))))


def _relieved(view: View, keeper: Keeper) -> Plan:
    """Nothing is in question any more."""
    known = conditions.get(keeper.status.conditions, HALTED)
    if known is None or known.status != TRUE:
        return NOTHING
    after = with_condition(keeper, HALTED, FALSE, "NothingHeld", now=view.now)
    return act(*changed(keeper, after, "ResumeGarbage", Reason("NothingHeld", "no instance is in question any more")))


def _named(suspects: Sequence[Suspect]) -> str:
    names = ", ".join(suspect.id for suspect in suspects[:5]) + (", …" if len(suspects) > 5 else "")
    return f"{counted(len(suspects), 'instance')} without a NodeClaim, or unknown to EC2 ({names})"


# --- the list ---------------------------------------------------------------------------------------------------
def _book(keeper: Keeper) -> tuple[Entry, ...] | None:
    """What its annotation holds; None when that cannot be read."""
    notes = keeper.metadata.annotations
    return read(notes, labels.GARBAGE, tuple[Entry, ...]) if labels.GARBAGE in notes else ()


def _late(view: View, entry: Entry) -> bool:
    """Whether it was written within the window. A time ahead of now is of a clock that was wrong, or of an editor."""
    return view.now - WINDOW < entry.at <= view.now + SKEW


def _write(view: View, keeper: Keeper, book: tuple[Entry, ...], *, allow: bool = True) -> Plan:
    """The list as it should stand there; without `allow` a person's word, which is used up, goes with it."""
    gone = {labels.GARBAGE} if allow else {labels.GARBAGE, labels.ALLOW_GARBAGE}
    notes = {key: value for key, value in keeper.metadata.annotations.items() if key not in gone}
    if book:
        notes[labels.GARBAGE] = text_of(book)
    number = sum(len(entry.instances) for entry in book)
    reason = Reason("GarbageCollected", f"instances terminated by Kerf, now or within the last hour: {number:,}")
    return act(*changed(keeper, with_metadata(keeper, annotations=notes), "NoteGarbage", reason, *SOURCES))


def _told(keeper: Keeper, suspects: Sequence[Suspect]) -> Plan:
    event = warning(keeper, "GarbageCollected", f"Kerf terminates {_named(suspects)}")
    return Plan(events=(change(event, dedupe=mark(suspects)),))


def _look_again(view: View, suspect: Suspect) -> Plan:
    return Plan(next_due=suspect.due) if suspect.due > view.snapshot.now else NOTHING


def _due(view: View, book: tuple[Entry, ...]) -> Plan:
    """When the next entry has had its time; one that had it already waits for its instances to go."""
    ends = [end for entry in book if (end := entry.at + WINDOW) > view.now]
    return Plan(next_due=min(ends)) if ends else NOTHING
