"""`kerf replay --with`: the objects of a change for a record, and the differences as text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kerf.cli.answering import changed
from kerf.cli.arguments import Mistake
from kerf.cli.terminal import columns
from kerf.model import kinds
from kerf.model.instants import rfc3339
from kerf.model.snapshot import Snapshot
from kerf.planning import changes
from kerf.records.supposing import Course, Disruption, Launch, Substitutes, Supposition
from kerf_api import lint
from kerf_api.defaulting import default
from kerf_api.v1.meta import decode

_KINDS: Final = (kinds.NODE_POOL, kinds.NODE_CLASS)
#: What the answer cannot know, for every format.
LIMITS: Final = (
    "the cluster of each decision is the recorded one: nodes of the change are in no later decision",
    "images, subnets and security groups of an EC2NodeClass are the recorded ones",
    "proposals of consolidation are the recorded ones",
    "recorded nodes that do not match the change drift, also those launched later; none of them is replaced",
    "a disruption has no effect on later decisions: kerf plan --snapshot shows the whole roll-out",
)


def substitutes(path: str, snapshot: Snapshot, note: Callable[[str], object]) -> Substitutes:
    """The objects of some manifests, for the record with this snapshot. Raises Mistake."""
    comparison = changed.of_record(snapshot, {})
    found = [*map(_checked, changed.of_files([path]).change.applied)]
    found = [*comparison.comparable(changes.Change(tuple(found))).applied]
    tables: dict[str, dict[str, Any]] = {kind.name: {} for kind in _KINDS}
    for manifest in found:
        kind, _, name = changes.key(manifest)
        known = snapshot.node_pools if kind == kinds.NODE_POOL.name else snapshot.node_classes
        if name not in known:
            raise Mistake(f"--with {path}: the record has no {kind} {name}; only objects of the record can be replaced")
        tables[kind][name] = decode(kinds.BY_NAME[kind].type, manifest)
    for words in comparison.assumed:
        note(words)
    bundle = snapshot.cluster.ca_bundle if snapshot.cluster is not None else ""
    return Substitutes(tables[kinds.NODE_POOL.name], tables[kinds.NODE_CLASS.name], bundle)


def _checked(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    kind, _, name = changes.key(manifest)
    if kind not in {one.name for one in _KINDS}:
        raise Mistake(f"--with: {kind} {name}: only NodePools and EC2NodeClasses can be replaced in a record")
    filled = default(manifest)
    if errors := [str(one) for one in lint.validate(filled) if one.severity == "error"]:
        raise Mistake(f"--with: {kind} {name}: {errors[0]}; kerf validate shows the place")
    return filled


# --- shown ------------------------------------------------------------------------------------------------------
def as_data(found: Supposition) -> dict[str, Any]:
    """For JSON. Prices are in millionths of a dollar per hour."""
    span = {"from": _instant(found.began), "to": _instant(found.ended), "decisions": found.decisions}
    both = {"recorded": _course(found.recorded), "changed": _course(found.changed)}
    return {"version": 1, **span, **both, "limits": list(LIMITS)}


def _course(one: Course) -> dict[str, Any]:
    launches = [{**_placed(row), "pods": row.pods, "price": row.price} for row in one.launches]
    disruptions, drifted = (
        [{**_placed(row), "reason": row.reason} for row in rows.values()] for rows in (one.disruptions, one.drifted)
    )
    refused = [{"pod": pod, "reason": reason} for pod, reason in sorted(one.refused.items())]
    counted = {"launches": launches, "disruptions": disruptions, "drifted": drifted, "refused": refused}
    return {"price": one.price, **counted}


def _placed(row: Any) -> dict[str, Any]:
    return {"at": rfc3339(row.at), "nodeClaim": row.name, "nodePool": row.nodepool}


def _instant(at: Any) -> str | None:
    return None if at is None else rfc3339(at)


def page(found: Supposition, most: int) -> Iterator[str]:
    """Lines of text. `most` rows of each list are shown."""
    before, after = found.recorded, found.changed
    yield f"{found.decisions:,} decisions from {_instant(found.began)} to {_instant(found.ended)}"
    rows = [
        ("", "recorded", "with the change"),
        ("nodes launched", f"{len(before.launches):,}", f"{len(after.launches):,}"),
        *(("  " + pool, str(one), str(two)) for pool, one, two in _by_pool(before.launches, after.launches)),
        ("nodes disrupted", f"{len(before.disruptions):,}", f"{len(after.disruptions):,}"),
        ("nodes drifted", f"{len(before.drifted):,}", f"{len(after.drifted):,}"),
        ("pods refused", f"{len(before.refused):,}", f"{len(after.refused):,}"),
        ("price of launches per hour", _dollars(before.price), _dollars(after.price)),
    ]
    yield from columns(rows)
    yield from _listed("launched only with the change", _only(after.launches, before.launches), most)
    yield from _listed("launched only as recorded", _only(before.launches, after.launches), most)
    yield from _listed("disrupted only with the change", _reasons(after.disruptions, before.disruptions), most)
    yield from _listed("disrupted only as recorded", _reasons(before.disruptions, after.disruptions), most)
    yield from _listed("drifted only with the change", _reasons(after.drifted, before.drifted), most)
    yield from _listed("drifted only as recorded", _reasons(before.drifted, after.drifted), most)
    yield from _listed("refused only with the change", _refused(after, before), most)
    yield from _listed("refused only as recorded", _refused(before, after), most)
    yield "limits of this answer:"
    yield from (f"  {words}" for words in LIMITS)


def _by_pool(one: Sequence[Launch], other: Sequence[Launch]) -> Iterator[tuple[str, int, int]]:
    first, second = (Counter(row.nodepool for row in rows) for rows in (one, other))
    yield from ((pool, first[pool], second[pool]) for pool in sorted({*first, *second}))


def _only(some: Sequence[Launch], others: Sequence[Launch]) -> list[str]:
    """The launches that have no equal one, by NodePool, pods and price: their names may differ."""
    left, found = Counter((one.nodepool, one.pods, one.price) for one in others), []
    for one in some:
        key = one.nodepool, one.pods, one.price
        if left[key]:
            left[key] -= 1
        else:
            price = "no offering" if one.price is None else f"{_dollars(one.price)}/h"
            found.append(f"{rfc3339(one.at)}  NodePool {one.nodepool}  pods {one.pods}  {price}")
    return found


def _reasons(some: Mapping[str, Disruption], others: Mapping[str, Disruption]) -> list[str]:
    rows = (one for name, one in some.items() if name not in others)
    return [f"{rfc3339(one.at)}  {one.name}  {one.reason}" for one in rows]


def _refused(some: Course, others: Course) -> list[str]:
    return [f"{pod}  {reason}" for pod, reason in sorted(some.refused.items()) if pod not in others.refused]


def _listed(title: str, rows: Iterable[str], most: int) -> Iterator[str]:
    found = list(rows)
    if found:
        yield f"{title}:"
        yield from (f"  {row}" for row in found[:most])
    if len(found) > most:
        yield f"  ... and {len(found) - most:,} more; --all lists them"


def _dollars(price: int) -> str:
    return f"${price / 1_000_000:.4f}"
