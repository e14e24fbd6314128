"""The annotation of nodes that came up other than planned: bounds, and text that a person has edited."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from kerf.model import mismatches
from kerf.model.mismatches import EMPTY, LONGEST, Mismatches, Record
from kerf_api import labels
from kerf_api.v1.nodepool import NodePool
from tests.unit.scheduling import worlds as w

HOUR = timedelta(hours=1)
RECORD = Record(shape="a" * 12, since=w.NOW - 2 * HOUR, at=w.NOW - HOUR, inputs="i", claim="uid", node="n1")
#: As the first release that has it wrote it.
STORED = (
    '{"records":[{"shape":"aaaaaaaaaaaa","since":"2026-01-01T10:00:00Z","at":"2026-01-01T11:00:00Z","inputs":"i",'
    '"claim":"uid","node":"n1"}]}'
)


def pool(text: str, name: str = "default") -> NodePool:
    made = w.pool(name)
    return msgspec.structs.replace(
        made, metadata=msgspec.structs.replace(made.metadata, annotations={labels.MISMATCHES: text})
    )


def test_the_annotation_is_read_as_it_was_written() -> None:
    found = Mismatches(records=(RECORD,))
    assert mismatches.annotation(found) == STORED
    assert mismatches.remembered(pool(STORED)) == found
    assert mismatches.annotation(EMPTY) == ""


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[]", '{"records": 1}', STORED.replace('"inputs":"i"', '"nodes":0'), STORED + " " * LONGEST],
)
def test_an_unreadable_annotation_counts_as_empty_and_is_reported(text: str) -> None:
    assert mismatches.remembered(pool(text)) == EMPTY
    assert mismatches.is_unreadable(pool(text))
    assert not mismatches.is_unreadable(pool(STORED))
    assert not mismatches.is_unreadable(w.pool())


def test_records_from_the_future_and_old_ones_are_not_believed() -> None:
    odd = (
        msgspec.structs.replace(RECORD, shape="b", at=w.NOW + HOUR),
        msgspec.structs.replace(RECORD, shape="c", at=w.NOW - mismatches.KEPT),
    )
    assert mismatches.believable(Mismatches(records=(*odd, RECORD)), w.NOW).records == (RECORD,)


def test_the_annotation_is_bounded_and_the_newest_records_stay() -> None:
    rows = tuple(
        msgspec.structs.replace(RECORD, shape=f"{n:012}", at=w.NOW - n * timedelta(minutes=1), differs="d" * 200)
        for n in range(300)
    )
    text = mismatches.annotation(Mismatches(records=rows))
    kept = mismatches.remembered(pool(text)).records
    assert len(text) <= LONGEST
    assert len(kept) > 60
    assert [record.shape for record in kept] == [f"{n:012}" for n in range(len(kept))]


def test_nodes_of_all_pools_add_up() -> None:
    later = msgspec.structs.replace(RECORD, at=w.NOW, node="n2")
    pools = [pool(mismatches.annotation(Mismatches(records=(r,))), n) for n, r in (("a", RECORD), ("b", later))]
    (found,) = mismatches.merged(pools, w.NOW).values()
    assert (found.nodes, found.node, found.next_probe) == (2, "n2", w.NOW + mismatches.PROBE_EVERY)
    assert RECORD.next_probe == RECORD.at


@pytest.mark.parametrize(("nodes", "minutes"), [(10, 1), (11, 2), (13, 8), (16, 60), (1_000_000, 60)])
def test_attempts_after_unused_nodes_are_delayed_more_and_more(nodes: int, minutes: int) -> None:
    record = msgspec.structs.replace(RECORD, unused=True, nodes=nodes)
    assert record.next_probe == record.at + timedelta(minutes=minutes)


def test_few_unused_nodes_bear_on_nothing() -> None:
    few, many = (msgspec.structs.replace(RECORD, unused=True, nodes=nodes) for nodes in (9, 10))
    assert [record.limits for record in (RECORD, few, many)] == [True, False, True]
    assert mismatches.merged([pool(mismatches.annotation(Mismatches(records=(few,))))], w.NOW) == {}
    assert mismatches.merged([pool(mismatches.annotation(Mismatches(records=(many,))))], w.NOW) == {many.shape: many}


@pytest.mark.parametrize(
    "text",
    [
        '{"records":[{"shape":"s","since":"2026-01-01T11:00:00Z","at":"9999-12-31T23:59:59Z"}]}',
        '{"records":[{"shape":"s","since":"2026-01-01T11:00:00Z","at":"9999-12-31T23:59:59-14:00"}]}',
        '{"records":[{"shape":"s","since":"0001-01-01T00:00:00+14:00","at":"0001-01-01T00:00:00+14:00"}]}',
        '{"x":' + "[" * 7000 + "]" * 7000 + "}",
    ],
    ids=["end of time", "beyond it", "before it", "nested"],
)
def test_times_at_the_ends_of_the_calendar_and_nested_values_are_not_believed(text: str) -> None:
    assert mismatches.merged([pool(text)], w.NOW) == {}
