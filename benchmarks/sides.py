"""One workload by our scheduler and by Karpenter's own: both read the same files, each in a process of its own.

A process of its own for every run: what one run leaves in memory or has warmed up is nobody else's gain, and the peak
of memory is of this run. The referee judges our answer; the bound that it works out is of the pods, and stands beside
the peer's cost too when both sides have placed all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from benchmarks import scheduling, workloads
from benchmarks.peers import karpenter
from benchmarks.scheduling import Outcome

#: The head of a table of figures.
HEAD: Final = (
    "workload",
    "by",
    "seconds",
    "CPU s",
    "nodes",
    "unplaced",
    "$/h",
    "LP bound",
    "ratio",
    "violations",
    "peak MiB",
)


@dataclass(frozen=True, slots=True)
class Inputs:
    """A workload and a catalogue as files, with the one market that may be bought (None: both)."""

    name: str
    workload: Path
    catalogue: Path
    capacity_type: str | None = None

    @property
    def files(self) -> tuple[Path, Path, str | None]:
        return self.workload, self.catalogue, self.capacity_type


@dataclass(frozen=True, slots=True)
class Figures:
    """What came of one side. `bound`, `ratio` and `violations` are None where nobody knows."""

    seconds: float
    cpu_seconds: float
    nodes: int
    unplaced: int
    cost_usd_per_hour: float
    peak_mib: float
    bound_usd_per_hour: float | None = None
    violations: int | None = None

    @property
    def ratio(self) -> float | None:
        return self.cost_usd_per_hour / self.bound_usd_per_hour if self.bound_usd_per_hour else None

    def cells(self, name: str, by: str) -> tuple[str, ...]:
        """A line under `HEAD`."""
        return (
            name,
            by,
            f"{self.seconds:.3f}",
            f"{self.cpu_seconds:.3f}",
            f"{self.nodes:,}",
            f"{self.unplaced:,}",
            f"{self.cost_usd_per_hour:.2f}",
            _known(self.bound_usd_per_hour, ".2f"),
            _known(self.ratio, ".3f"),
            _known(self.violations, "d"),
            f"{self.peak_mib:.0f}",
        )


def _known(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


# --- inputs -------------------------------------------------------------------------------------------------------
def write(folder: Path, kind: str, count: int, catalogue: str | int, market: str | None) -> Inputs:
    """A generated workload and a generated catalogue (by name, or as the number of its types) as files."""
    made = workloads.synthetic(catalogue) if isinstance(catalogue, int) else workloads.CATALOGUES[catalogue]()
    files = folder / f"{kind}-{count}.json", folder / f"{catalogue}-{len(made)}.json"
    for path, content in zip(files, (workloads.workload(kind, count), made), strict=True):
        if not path.exists():
            path.write_bytes(msgspec.json.encode(content))
    return Inputs(f"{kind}-{count}", *files, market)


# --- running ------------------------------------------------------------------------------------------------------
def ours(inputs: Inputs, *, improve: float = 0.0, runs: int = 3, judged: bool = True) -> Figures:
    """Our side: the times are the median of so many runs, of which the first is judged."""
    one = partial(scheduling.run, *inputs.files, improve=improve)
    outcomes = [_apart(partial(one, judged=judged and not number)) for number in range(runs)]
    first = outcomes[0]
    return Figures(
        median(o.seconds for o in outcomes),
        median(o.cpu_seconds for o in outcomes),
        first.nodes,
        first.unplaced,
        first.cost_usd_per_hour,
        max(o.peak_mib for o in outcomes),
        first.lp_bound_usd_per_hour,
        first.violations,
    )


def _apart(run: partial[Outcome]) -> Outcome:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(run).result()


def peers(inputs: Inputs) -> Figures:
    """Karpenter's side, once. Raises PeerUnavailable when it cannot be built or run here, or does not end in time."""
    found = karpenter.run(*inputs.files)
    if found.timed_out:
        raise karpenter.PeerUnavailable(f"Karpenter's scheduler did not come to an end with {inputs.name}")
    return Figures(
        found.seconds, found.cpu_seconds, found.nodes, found.unplaced, found.cost_usd_per_hour, found.peak_mib
    )


def beside(own: Sequence[Figures], other: Figures) -> Figures:
    """The other side with the bound of ours, if both have placed all pods."""
    bound = own[0].bound_usd_per_hour
    return other if other.unplaced or any(one.unplaced for one in own) else replace(other, bound_usd_per_hour=bound)
