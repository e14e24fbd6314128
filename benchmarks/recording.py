"""The cost of the recorder: per reconcile, in memory, and on disk.

    python -m benchmarks.recording --pods 10000

A cluster in which 20 pods change at every reconcile, and each plan writes the status of all
nodes, so that the recorder has a plan to encode. Each reconcile is measured without the recorder and then with it, on
the same changes: the time of the loop's thread for the plan, and for handing it over. Times are CPU time of one thread,
so that other processes of the machine do not count.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from time import process_time, thread_time
from typing import Final

from msgspec.structs import replace

from benchmarks.clusters import NOW, Shape, Yard, half_empty, node_pool
from benchmarks.table import Row, conclude, milliseconds, quantile
from kerf.decide import decide
from kerf.model import kinds
from kerf.model.cluster import Cluster
from kerf.model.kinds import Ref
from kerf.model.memory import Memory
from kerf.model.snapshot import Snapshot
from kerf.records.encoding import Encoder
from kerf.runtime.recording.recorder import Recorder
from kerf.runtime.recording.ring import Ring, parts

#: The share of a reconcile, and the memory, that the recorder may take.
SHARE, MIB = 0.03, 30
_TICKS, _CHANGED, _EVERY = 300, 20, timedelta(seconds=1)
_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of the loop's thread for one reconcile, without the recorder and for it, at the median; of the recorder's
    own thread on average; bytes of memory at most; bytes on disk for one decision, without the first checkpoint."""

    plan: float
    note: float
    thread: float
    memory: int
    disk: float


def snapshots(yard: Yard) -> Iterator[Snapshot]:
    """One cluster at each reconcile: some pods have another version, a second after the one before."""
    cluster, keys = Cluster(), list(yard.pods)
    for value in [*yard.objects(), node_pool(consolidateAfter="Never")]:
        cluster.apply(kinds.BY_NAME[Ref.of(_kind(value), value).kind], value)
    facts, number = yard.facts(), 0
    while True:
        facts["now"] = NOW + number * _EVERY
        facts["fresh_at"] = dict.fromkeys(facts["fresh_at"], facts["now"])
        yield cluster.snapshot(**facts)
        for place in range(number * _CHANGED, (number + 1) * _CHANGED):
            pod = yard.pods[keys[place % len(keys)]]
            meta = replace(pod.metadata, resource_version=str(number + 1))
            cluster.apply(kinds.POD, replace(pod, metadata=meta))
        number += 1


def _kind(value: object) -> kinds.Kind:
    return next(kind for kind in kinds.KNOWN if isinstance(value, kind.type))


def measured(pods: int, folder: Path, ticks: int = _TICKS) -> Cost:
    """The cost in a cluster that had so many pods before it lost most of them."""
    ring, errors, memory = Ring(folder, 1024 * _BYTES, timedelta(days=1)), list[Exception](), Memory()
    feed = snapshots(half_empty(Shape(pods=pods)))
    first = next(feed)
    plan = decide(first, memory)
    tracemalloc.start()
    recorder = Recorder(ring, Encoder(b"key", {}), errors.append)
    recorder.note(first, plan, None)
    recorder.wait()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    ring.flush(NOW)
    before, began, own = _size(folder), process_time(), thread_time()
    plans, notes = list[float](), list[float]()
    for snapshot in islice(feed, ticks):
        began_plan = thread_time()
        plan = decide(snapshot, memory)
        began_note = thread_time()
        recorder.note(snapshot, plan, None)
        plans.append(began_note - began_plan)
        notes.append(thread_time() - began_note)
        recorder.wait()
    thread = (process_time() - began) - (thread_time() - own)
    recorder.close()
    if errors:
        raise errors[0]
    disk = (_size(folder) - before) / ticks
    return Cost(quantile(plans, 0.5), quantile(notes, 0.5), thread / ticks, peak, disk)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in parts(folder))


def rows(pods: int = 10_000) -> list[Row]:
    """The table's rows."""
    with tempfile.TemporaryDirectory() as folder:
        found = measured(pods, Path(folder))
    share, mib = found.note / found.plan, found.memory / _BYTES
    return [
        Row(f"a reconcile without the recorder, {pods} pods before, {_CHANGED} change", milliseconds(found.plan)),
        Row("  the recorder in the loop's thread", milliseconds(found.note)),
        Row("  its share", f"{share:.1%}", f"≤ {SHARE:.0%}", share <= SHARE),
        Row("  the recorder's own thread", milliseconds(found.thread)),
        Row("  most memory, with the first checkpoint", f"{mib:.1f} MiB", f"≤ {MIB} MiB", mib <= MIB),
        Row("  1,000 decisions on disk", f"{found.disk * 1000 / 1024:,.0f} KiB"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recording", description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000, help="pods before the cluster lost most of them")
    return conclude(rows(parser.parse_args().pods))


if __name__ == "__main__":
    sys.exit(main())
