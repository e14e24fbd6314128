"""Our scheduler and Karpenter's, side by side in one run, and what ours is to reach.

    python -m benchmarks.comparison
    python -m benchmarks.comparison --workload mixed.json --catalogue catalogue.json --capacity-type on-demand

Without files it schedules generated workloads and holds the figures against the targets. Ours is there without any
search for a cheaper answer, which is how fast it can be, and with the second of search that the controller has by
default, which is how cheap. Where Karpenter's scheduler cannot be built one line says so, and our side runs alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks import sides
from benchmarks.peers.karpenter import PeerUnavailable
from benchmarks.scheduling import UnusableInput
from benchmarks.sides import Figures, Inputs
from benchmarks.table import Row, aligned, conclude
from kerf_api import labels

OURS: Final = "Kerf"
SEARCHED: Final = "Kerf, 1 s of search"
PEER: Final = "Karpenter"
#: Figures by who has them.
Found = Mapping[str, Figures]


@dataclass(frozen=True, slots=True)
class Case:
    """A generated workload. The peer may be left out, where it would take too long."""

    kind: str
    count: int
    catalogue: str
    capacity_type: str | None = labels.ON_DEMAND
    peer: bool = True

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.count}"


CASES: Final = (
    Case("mixed", 1000, "synthetic"),
    Case("mixed", 10_000, "synthetic"),
    Case("plain", 100, "families"),
    Case("plain", 2000, "families"),
    Case("services", 5000, "families", None),
    Case("diverse", 50_000, "families", peer=False),
)


# --- measuring ----------------------------------------------------------------------------------------------------
def measured(inputs: Inputs, *, peer: bool = True) -> Found:
    """Both sides on one input; without the peer where there is none."""
    found = {OURS: sides.ours(inputs), SEARCHED: sides.ours(inputs, improve=1.0, runs=1)}
    if peer:
        try:
            found[PEER] = sides.beside(list(found.values()), sides.peers(inputs))
        except PeerUnavailable as missing:
            print(missing, file=sys.stderr)
    return found


def lines(found: Mapping[str, Found]) -> list[tuple[str, ...]]:
    """A table of all figures, its head first."""
    return [sides.HEAD, *(one.cells(name, by) for name, both in found.items() for by, one in both.items())]


def all_cases() -> dict[str, Found]:
    """Every case, by name."""
    found = {}
    with TemporaryDirectory() as folder:
        for case in CASES:
            print(f"scheduling {case.name} …", file=sys.stderr, flush=True)
            inputs = sides.write(Path(folder), case.kind, case.count, case.catalogue, case.capacity_type)
            found[case.name] = measured(inputs, peer=case.peer)
    return found


# --- targets ------------------------------------------------------------------------------------------------------
def targets(found: Mapping[str, Found]) -> list[Row]:
    """What was measured of all cases, beside what is to be reached."""
    broken = sum(one.violations or 0 for both in found.values() for one in both.values())
    lost = {name: both[OURS].unplaced for name, both in found.items()}
    return [
        *_fast(found["mixed-10000"], "schedule 10,000 mixed pods", 0.7),
        *_against(found["mixed-10000"]),
        *_fast(found["mixed-1000"], "schedule 1,000 mixed pods", 0.2),
        *_fast(found["diverse-50000"], "schedule 50,000 plain pods of 200 sorts", 0.5),
        _near(found["plain-2000"], "cost of 2,000 plain pods by the least", 1.03),
        _near(found["plain-100"], "cost of 100 plain pods by the least", 1.06),
        *_cheaper(found["services-5000"]),
        Row("pods without a place", str(sum(lost.values())), "0", not any(lost.values())),
        Row("rules broken, as the referee sees it", str(broken), "0", broken == 0),
    ]


def _fast(both: Found, what: str, most: float) -> Iterator[Row]:
    seconds = both[OURS].seconds
    yield Row(what, f"{seconds:.3f} s", f"≤ {most} s", seconds <= most)


def _against(both: Found) -> Iterator[Row]:
    if PEER in both:
        own, other = both[OURS], both[PEER]
        times = other.seconds / own.seconds
        yield Row("  faster than Karpenter", f"{times:.0f} times", "≥ 50 times", times >= 50)
        told = f"{own.nodes:,}, Karpenter's {other.nodes:,}"
        yield Row("  nodes", told, "no more", own.nodes <= other.nodes)


def _near(both: Found, what: str, most: float) -> Row:
    ratio = both[SEARCHED].ratio
    return Row(what, f"{ratio:.3f}" if ratio else "not known", f"≤ {most}", ratio is not None and ratio <= most)


def _cheaper(both: Found) -> Iterator[Row]:
    if PEER in both:
        own, other = both[SEARCHED].cost_usd_per_hour, both[PEER].cost_usd_per_hour
        saved = f"{(1 - own / other) * 100:.1f} %"
        yield Row("5,000 pods of services cheaper than by Karpenter", saved, "≥ 20 %", own <= other * 0.8)


def rows(measure: Callable[[], Mapping[str, Found]] = all_cases) -> list[Row]:
    """Measure, print the table, and return what is to be reached."""
    found = measure()
    print(aligned(lines(found)), end="\n\n")
    return targets(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """All cases with their targets, or one workload from files; 1 when a target was missed or a rule broken."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.comparison", description="Beside Karpenter's scheduler."
    )
    parser.add_argument("--workload", type=Path, help="JSON, see benchmarks.workloads")
    parser.add_argument("--catalogue", type=Path, help="JSON, see benchmarks.workloads")
    parser.add_argument("--capacity-type", choices=(labels.ON_DEMAND, labels.SPOT), help="buy only this, of files")
    chosen = parser.parse_args(arguments)
    if chosen.workload is None and chosen.catalogue is None:
        return conclude(rows())
    if chosen.workload is None or chosen.catalogue is None:
        parser.error("--workload and --catalogue go together")
    inputs = Inputs(chosen.workload.stem, chosen.workload, chosen.catalogue, chosen.capacity_type)
    try:
        found = {inputs.name: measured(inputs)}
    except UnusableInput as error:
        print(error, file=sys.stderr)
        return 2
    print(aligned(lines(found)))
    return 1 if any(one.violations for one in found[inputs.name].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
