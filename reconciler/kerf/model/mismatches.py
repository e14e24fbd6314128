"""Nodes that came up other than planned: the records that a NodePool keeps of them in its annotation.

A record says that a node which Kerf made for a pod was initialized, and that the pod could not run there. Records are
by shape of pods (`scheduling/placing/pod_shapes.py`), so a new ReplicaSet or more replicas find the same record. They
stand in the API server: a restart loses nothing. Only Kerf writes the annotation, but a person can edit it: one that is
not readable counts as empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Final

import msgspec
from msgspec.structs import replace

from kerf.model.annotations import read, text_of
from kerf.model.instants import SKEW, Instant
from kerf_api import labels
from kerf_api.v1.meta import Value
from kerf_api.v1.nodepool import NodePool

#: One node in this time is made for a shape whose nodes did not help.
PROBE_EVERY: Final = timedelta(hours=24)
#: So many attempts in a row, each with a node that pods could not use, are not delayed.
FREE_ATTEMPTS: Final = 10
#: The delay of the attempt after these, which doubles with each further one, and the longest.
_FIRST_DELAY, _LONGEST_DELAY = timedelta(minutes=1), timedelta(hours=1)
#: A NodePool remembers unused nodes of so many shapes of pods: in an outage of a zone those of all pods are unused.
MOST_UNUSED: Final = 20
#: Attempts this long after the latest are in another series.
_SERIES_ENDS: Final = timedelta(hours=3)
#: A record is forgotten this long after its latest node.
KEPT: Final = timedelta(days=7)
#: Facts about nodes hold for so long.
FACTS_KEPT: Final = timedelta(hours=24)
#: So many facts are kept, the newest.
_MOST_FACTS: Final = 20
TAINT: Final = "taint"
LABEL: Final = "label"
#: The annotation is no longer than this, in bytes.
LONGEST: Final = 16 * 1024
#: A record from the future is not believed, but for clocks that differ.
_MOST_NODES: Final = 1_000_000
#: A record names so many NodeClaims before the latest.
_MOST_EARLIER: Final = 8
#: A fact that is seen again has its time renewed no more often than this: each time is a write.
_RENEWED_EVERY: Final = timedelta(hours=6)

#: What two nodes may have in common that explains why neither helped, the most telling last.
PLACES: Final = (labels.NODEPOOL, labels.ZONE, labels.ARCH, labels.INSTANCE_TYPE)

LONGEST_TEXT: Final = 256
Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]


def place(own: Mapping[str, str]) -> Mapping[str, str]:
    """The labels among these that say where a node is."""
    return {key: own[key][:LONGEST_TEXT] for key in PLACES if key in own}


class Record(Value, frozen=True, kw_only=True):
    """Nodes made for pods of one shape did not help.

    Args:
        shape: hash of the pods' shape.
        since: creation of the first of these nodes' NodeClaims.
        at: the latest verdict.
        nodes: number of nodes that did not help.
        inputs: hash of everything that may change the outcome, as of the latest verdict.
        claim: UID of the latest NodeClaim.
        earlier: UIDs of the NodeClaims before it, the latest last: each node counts once.
        node: name of its Node.
        differs: the differences between that Node and the plan, in words; of an unused one what kept pods off it.
        where: the NodePool, zone, architecture and instance type of that Node, by label.
        unused: the nodes are as planned, as far as Kerf knows, and something else kept the pods off each of them: it
            was cordoned, or others used its capacity.
    """

    shape: Text
    since: Instant
    at: Instant
    nodes: Annotated[int, msgspec.Meta(ge=1, le=_MOST_NODES)] = 1
    inputs: Text = ""
    claim: Text = ""
    earlier: Annotated[tuple[Text, ...], msgspec.Meta(max_length=_MOST_EARLIER)] = ()
    node: Text = ""
    differs: Text = ""
    where: Annotated[Mapping[Text, Text], msgspec.Meta(max_length=len(PLACES))] = {}
    unused: bool = False

    def counts(self, claim_uid: str) -> bool:
        """Whether the node of a NodeClaim is in the count."""
        return claim_uid == self.claim or claim_uid in self.earlier

    def after(self, claim_uid: str) -> tuple[str, ...]:
        """The `earlier` NodeClaims when that one is the latest."""
        others = (uid for uid in (*self.earlier, self.claim) if uid and uid != claim_uid)
        return tuple(others)[-_MOST_EARLIER:]

    @property
    def next_probe(self) -> datetime:
        """The instant of the next node while nothing changes: the second node is due at once."""
        if self.unused:
            doublings = min(max(0, self.nodes - FREE_ATTEMPTS), 10)
            return self.at + min(_LONGEST_DELAY, _FIRST_DELAY * (1 << doublings))
        return self.at if self.nodes == 1 else self.at + PROBE_EVERY

    @property
    def limits(self) -> bool:
        """Whether it bears on new nodes: a few nodes that pods could not use are nothing unusual."""
        return not self.unused or self.nodes >= FREE_ATTEMPTS

    def is_over(self, now: datetime) -> bool:
        """Whether the next node would be the first of another series of unused ones."""
        return self.unused and now >= self.at + _SERIES_ENDS


class Size(Value, frozen=True, kw_only=True):
    """Amounts that a node of an instance type has, where they are less than planned or not known before.

    They hold for the type with this image and this hash of the EC2NodeClass.
    """

    instance_type: Text
    image: Text
    hash: Text
    amounts: Mapping[Text, Annotated[int, msgspec.Meta(ge=0)]]
    at: Instant

    @property
    def key(self) -> tuple[str, str, str]:
        return self.instance_type, self.image, self.hash


class Trait(Value, frozen=True, kw_only=True):
    """A taint that a NodePool does not declare, or a label that never came, and up to two `nodes` that showed it.

    It holds for this hash of the NodePool.
    """

    kind: Text
    text: Text
    hash: Text
    nodes: Annotated[tuple[Text, ...], msgspec.Meta(max_length=2)]
    at: Instant

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.text, self.hash

    @property
    def lasts(self) -> bool:
        """Whether a node has it for as long as it is there. A taint that evicts may come at any time, and go."""
        return not self.text.endswith(":NoExecute")

    @property
    def is_proven(self) -> bool:
        return len(set(self.nodes)) > 1


class Mismatches(Value, frozen=True, kw_only=True):
    """The content of the annotation; `records` are sorted by shape, one for each; `sizes` and `traits` are facts."""

    records: tuple[Record, ...] = ()
    sizes: tuple[Size, ...] = ()
    traits: tuple[Trait, ...] = ()

    def of(self, shape: str) -> Record | None:
        return next((record for record in self.records if record.shape == shape), None)

    @property
    def limiting(self) -> tuple[Record, ...]:
        """The records that bear on new nodes."""
        return tuple(record for record in self.records if record.limits)


EMPTY: Final = Mismatches()


def remembered(pool: NodePool) -> Mismatches:
    """The mismatches that a NodePool's annotation holds; none when it is not readable."""
    return _stored(pool) or EMPTY


def is_unreadable(pool: NodePool) -> bool:
    """Whether the annotation is there and Kerf cannot use it."""
    return labels.MISMATCHES in pool.metadata.annotations and _stored(pool) is None


def _stored(pool: NodePool) -> Mismatches | None:
    text = pool.metadata.annotations.get(labels.MISMATCHES, "")
    return read(pool.metadata.annotations, labels.MISMATCHES, Mismatches) if len(text) <= LONGEST else None


def believable(found: Mismatches, now: datetime) -> Mismatches:
    """Without records and facts that are too old, or from the future; one record for each shape."""
    recent = (r for r in found.records if now - KEPT < r.at and max(r.at, r.since) <= now + SKEW)
    kept = {record.shape: record for record in recent if not record.is_over(now)}
    return Mismatches(
        records=tuple(kept[shape] for shape in sorted(kept)),
        sizes=tuple(size for size in found.sizes if now - FACTS_KEPT < size.at <= now + SKEW),
        traits=tuple(trait for trait in found.traits if now - FACTS_KEPT < trait.at <= now + SKEW),
    )


def with_sizes(found: Mismatches, sizes: Iterable[Size]) -> Mismatches:
    """With facts about types that are seen now; of each type, image and hash the least amounts count."""
    seen: dict[tuple[str, str, str], Size] = {}
    for one in sizes:
        known = seen.get(one.key)
        seen[one.key] = one if known is None else replace(known, amounts=_least(known.amounts, one.amounts))
    kept = []
    for size in found.sizes:
        new = seen.pop(size.key, None)
        stands = new is None or (size.amounts == new.amounts and new.at < size.at + _RENEWED_EVERY)
        kept.append(size if stands or new is None else new)
    return replace(found, sizes=(*kept, *seen.values())[-_MOST_FACTS:])


def _least(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return {name: min(a for a in (one.get(name), other.get(name)) if a is not None) for name in {**one, **other}}


def with_trait(found: Mismatches, trait: Trait) -> Mismatches:
    """With one more node that showed a taint or the lack of a label, unless two have shown it lately."""
    known = next((one for one in found.traits if one.key == trait.key), None)
    if known is None:
        return replace(found, traits=(*found.traits, trait)[-_MOST_FACTS:])
    if set(trait.nodes) <= set(known.nodes) or (known.is_proven and trait.at < known.at + _RENEWED_EVERY):
        return found
    trait = replace(trait, nodes=(*known.nodes[-1:], *trait.nodes))
    return replace(found, traits=tuple(trait if one is known else one for one in found.traits))


def annotation(found: Mismatches) -> str:
    """The text of the annotation, within its bound; empty when there is nothing to remember.

    Words go first, then the records of unused nodes and those with the oldest verdicts.
    """
    if found == EMPTY:
        return ""
    text = text_of(found)
    if len(text.encode()) <= LONGEST:
        return text
    plain = tuple(replace(record, differs="", node="", where={}) for record in found.records)
    newest = sorted(plain, key=lambda record: (not record.unused, record.at, record.shape), reverse=True)
    while len(text.encode()) > LONGEST and newest:
        text = text_of(replace(found, records=tuple(sorted(newest, key=lambda record: record.shape))))
        newest = newest[: len(newest) - 1 - len(newest) // 16]
    return text if len(text.encode()) <= LONGEST else ""


def merged(pools: Iterable[NodePool], now: datetime) -> Mapping[str, Record]:
    """By shape, the records of all NodePools that bear on new nodes, as one: their nodes add up, the latest verdict
    counts."""
    found: dict[str, Record] = {}
    for pool in pools:
        for record in believable(remembered(pool), now).limiting:
            known = found.get(record.shape)
            if known is not None:
                later, other = (record, known) if record.at >= known.at else (known, record)
                record = replace(later, nodes=min(later.nodes + other.nodes, _MOST_NODES))
            found[record.shape] = record
    return found
