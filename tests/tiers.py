"""`make test`: every tier that this machine can run, one after the other, and at the end what ran and what did not.

A tier that fails fails the run, but the later ones still run, so that one look shows everything. The tiers on the real
control plane and beside Karpenter's scheduler need the Go toolchain once, to build them; without it they are left out
with one visible line each, and with CI=true that is a failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.karpenter import PeerUnavailable, find_program
from tests.cluster.binaries import ControlPlaneUnavailable, find_binaries

ROOT = Path(__file__).resolve().parents[1]
#: Each run ends with its slowest tests: who adds one sees what it costs.
PYTEST = (sys.executable, "-m", "pytest", "--durations=10", "--durations-min=5")
NOT_LONG = "not cluster and not long"
SANDBOX = ("tests/scenarios", "tests/contract", "tests/simulation", "tests/mutations", "tests/cluster")
#: A worker that has nothing left takes over from the others: handed out beforehand, the long tests end up in one queue.
PARALLEL = ("-n", str(min(4, os.cpu_count() or 1)), "--dist", "worksteal")
#: Half of the tests on the real control plane. Like the other half they mostly wait; each half has a plane of its own.
REAL = tuple(
    f"tests/cluster/test_{name}.py"
    for name in ("crash_points", "drills", "kube_scheduler_worlds", "leadership", "operations")
)

#: Small worlds that are put to Karpenter's scheduler, too; `make differential` asks for more.
SEEDS = 60


@dataclass(frozen=True, slots=True)
class Tier:
    """A named list of commands; all must succeed. One more may run beside them, and is shown when it has ended.

    `needs` finds, or builds, what not every machine can have.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    needs: Callable[[], object] | None = None
    beside: tuple[str, ...] = ()


def _tool(name: str, *arguments: str) -> tuple[str, ...]:
    return (str(Path(sys.executable).parent / name), *arguments)


TIERS = (
    Tier(
        "static checks",
        (
            _tool("ruff", "format", "--check", "--quiet", "."),
            _tool("ruff", "check", "--quiet", "."),
            _tool("mypy"),
            _tool("lint-imports"),
        ),
    ),
    Tier("unit, laws and fuzzing", ((*PYTEST, "tests/unit", "tests/laws", "tests/fuzz", *PARALLEL, "-m", NOT_LONG),)),
    Tier("scenarios, contracts and simulation", ((*PYTEST, *SANDBOX, *PARALLEL, "-m", NOT_LONG),)),
    Tier(
        "beside Karpenter's scheduler",
        ((sys.executable, "-m", "tests.differential", "--seeds", str(SEEDS)),),
        needs=find_program,
    ),
    Tier(
        "real control plane",
        (
            (*PYTEST, *REAL, "-n0", "-s", "-m", "cluster and not long"),
            (*PYTEST, "tests/contract", *PARALLEL, "-m", "cluster and not long"),
        ),
        needs=find_binaries,
        beside=(
            *PYTEST,
            "tests/cluster",
            *(f"--ignore={path}" for path in REAL),
            "-n0",
            "-s",
            "-m",
            "cluster and not long",
        ),
    ),
)


def main() -> int:
    """Run the tiers; 0 when all that could run passed (and, in CI, all could run)."""
    rows = [(tier.name, *_run(tier)) for tier in TIERS]
    print("\nTiers:")
    for name, outcome, seconds in rows:
        print(f"  {name:<36} {outcome:<8} {seconds:6.0f} s")
    failed = [name for name, outcome, _ in rows if outcome == "FAILED"]
    print("All tiers that this machine can run passed." if not failed else f"Failed: {', '.join(failed)}")
    return 1 if failed else 0


def _run(tier: Tier) -> tuple[str, float]:
    print(f"\n=== {tier.name} ===", flush=True)
    started = time.monotonic()
    if tier.needs is not None:
        try:
            tier.needs()
        except (ControlPlaneUnavailable, PeerUnavailable) as reason:
            print(f"left out: {reason}", flush=True)
            return "FAILED" if os.environ.get("CI") == "true" else "skipped", time.monotonic() - started
    with tempfile.TemporaryFile() as shown:
        beside = subprocess.Popen(tier.beside, cwd=ROOT, stdout=shown, stderr=shown) if tier.beside else None
        outcomes = [_succeeds(command) for command in tier.commands]  # all of them, so that one look shows everything
        if beside is not None:
            outcomes.append(beside.wait() == 0)
            shown.seek(0)
            print(shown.read().decode(errors="replace"), flush=True)
    return "passed" if all(outcomes) else "FAILED", time.monotonic() - started


def _succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
