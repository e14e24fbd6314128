"""`make test`: every tier that this machine can run, and at the end what ran and what did not.

The stages run one after the other, the tiers of one stage side by side. A tier that fails fails the run, but the others
still run, so that one look shows everything. The tiers on the real control plane, beside Karpenter's scheduler and
beside the kube-scheduler's plugins need the Go toolchain once, to build them; that of the container image needs the
image's Python and a package index. Without these they are left out with one visible line each, and with CI=true that is
a failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.peers.karpenter import PeerUnavailable, find_program
from image.player import ImageUnavailable
from tests.aws_calls import record as aws_calls
from tests.aws_rules import RULES
from tests.cluster import record
from tests.cluster.binaries import ControlPlaneUnavailable, find_binaries
from tests.cluster.flux_programs import FluxUnavailable, find_flux
from tests.cluster.prometheus_programs import PrometheusUnavailable, find_prometheus
from tests.image.images import find_images
from tests.oracle.binaries import find_oracle
from tests.sources import ROOT

#: Each run ends with its slowest tests: who adds one sees what it costs.
PYTEST = (sys.executable, "-m", "pytest", "--durations=10", "--durations-min=5")
NOT_LONG = "not cluster and not long"
#: What has the longest tests comes first: at the end the workers share short ones.
UNIT = ("tests/laws", "tests/fuzz", "tests/gitops", "tests/unit")
SANDBOX = (
    "tests/simulation",
    "tests/scenarios",
    "tests/contract",
    "tests/adoption",
    "tests/mutations",
    "tests/cluster",
)
#: A worker that has nothing left takes over from the others: handed out beforehand, the long tests end up in one queue.
PARALLEL = ("-n", str(min(4, os.cpu_count() or 1)), "--dist", "worksteal")
ON_THE_REAL_ONE = ("-m", "cluster and not long")

#: What Kerf asks of all these control planes, and what is made of that at the end.
RECORD = ROOT / "build" / "rights"

#: The numbers of calls of AWS that were judged, a file for each run of pytest.
AWS_CALLS = ROOT / "build" / "aws-calls"

#: Small worlds that are put to Karpenter's scheduler, too; `make differential` asks for more.
SEEDS = 60
#: Worlds that are compared with the kube-scheduler's plugins; `make oracle` asks for more.
ORACLE_SEEDS = 300


@dataclass(frozen=True, slots=True)
class Tier:
    """A named list of commands, run one after the other; all must succeed.

    `needs` finds, or builds, what not every machine can have.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    needs: Callable[[], object] | None = None


def _tool(name: str, *arguments: str) -> tuple[str, ...]:
    return (str(Path(sys.executable).parent / name), *arguments)


def _on_the_real_one(*arguments: str) -> tuple[str, ...]:
    return (*PYTEST, *arguments, "-n0", "-s", *ON_THE_REAL_ONE)


def _files(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/cluster/test_{name}.py" for name in names)


def _with_flux() -> None:
    """Where Flux alone cannot be had its own tests are left out, which say so, and the others run."""
    find_binaries()
    with suppress(FluxUnavailable):
        find_flux()


def _with_prometheus() -> None:
    """Where Prometheus alone cannot be had its own tests are left out, which say so, and the others run."""
    find_binaries()
    with suppress(PrometheusUnavailable):
        find_prometheus()


#: The tests on the real control plane mostly wait: in parts, each with a plane of its own, they wait together.
FAILURES = _files("crash_points", "drills", "kube_scheduler_worlds", "leadership", "operations")
LIFE = _files("annotations", "binding", "bootstrapper", "devices", "end_to_end", "ends", "overlays", "trust")
GIT = _files("argocd", "conversion", "deletions", "flux", "flux_health", "no_noise")
INSTALL = tuple(sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/cluster/test_chart*.py"))) + _files(
    "adoption", "alerts", "control_plane", "dashboards", "getting_started"
)
CHANGES = _files("approval", "canary", "node_user_data", "old_definitions", "one_tick", "roll_out", "version_upgrade")
PODS = _files(
    "cold_start",
    "early_orders",
    "facts_of_pods",
    "hostile_times",
    "messages",
    "metrics",
    "missing_role",
    "pod_status",
)

ELSEWHERE = (*FAILURES, *LIFE, *GIT, *INSTALL, *CHANGES, *PODS)

#: So many tiers run side by side: with more, two cores are too busy at the beginning for the tests that wait. The
#: longest come first: what is left at the end is short.
SIDE_BY_SIDE = 7

STAGES: tuple[tuple[Tier, ...], ...] = (
    (
        Tier(
            "static checks",
            (
                _tool("ruff", "format", "--check", "--quiet", "."),
                _tool("ruff", "check", "--quiet", "."),
                _tool("mypy"),
                _tool("lint-imports"),
                _tool("hadolint", "Dockerfile"),
            ),
        ),
    ),
    (
        Tier(
            "unit, laws and fuzzing",
            ((*PYTEST, *UNIT, *PARALLEL, "-m", NOT_LONG),),
        ),
    ),
    (Tier("scenarios, contracts and simulation", ((*PYTEST, *SANDBOX, *PARALLEL, "-m", NOT_LONG),)),),
    (
        Tier("real control plane: failures", (_on_the_real_one(*FAILURES),), needs=find_binaries),
        Tier("real control plane: life of nodes", (_on_the_real_one(*LIFE),), needs=find_binaries),
        Tier(
            "real control plane: from Git",
            (_on_the_real_one(*GIT), (*PYTEST, "tests/contract", "tests/gitops", *PARALLEL, *ON_THE_REAL_ONE)),
            needs=_with_flux,
        ),
        Tier("real control plane: installing", (_on_the_real_one(*INSTALL),), needs=_with_prometheus),
        Tier(
            "real control plane: all else",
            (_on_the_real_one("tests/cluster", *(f"--ignore={path}" for path in ELSEWHERE)),),
            needs=find_binaries,
        ),
        Tier("real control plane: changes", (_on_the_real_one(*CHANGES),), needs=find_binaries),
        Tier("real control plane: pods", (_on_the_real_one(*PODS),), needs=find_binaries),
        Tier("container image", ((*PYTEST, "tests/image", "-n0", "-m", NOT_LONG),), needs=find_images),
        Tier(
            "beside Karpenter's scheduler",
            ((sys.executable, "-m", "tests.differential", "--seeds", str(SEEDS)),),
            needs=find_program,
        ),
        Tier(
            "beside the kube-scheduler's plugins",
            (
                (*PYTEST, "tests/oracle", "-n0", "-m", NOT_LONG),
                (sys.executable, "-m", "tests.oracle", "--seeds", str(ORACLE_SEEDS)),
            ),
            needs=find_oracle,
        ),
    ),
    (
        Tier(
            "real control planes: rights",
            ((sys.executable, "-m", "tests.cluster.rights", str(RECORD)),),
            needs=find_binaries,
        ),
    ),
)


def main(stages: Sequence[Sequence[Tier]] = STAGES, *, all_must_run: bool = False) -> int:
    """Run the tiers; 0 when all that could run passed (and, if `all_must_run`, all could run)."""
    rows = [row for stage in stages for row in _run_stage(stage)]
    if os.environ.get(aws_calls.VARIABLE):
        judged = aws_calls.read(Path(os.environ[aws_calls.VARIABLE]))
        print(f"\n{aws_calls.line(aws_calls.total(judged), len(RULES))}")
    print("\nTiers:")
    for name, outcome, seconds in rows:
        print(f"  {name:<36} {outcome:<8} {seconds:6.0f} s")
    failed = [name for name, outcome, _ in rows if outcome == "FAILED" or (all_must_run and outcome == "skipped")]
    print("All tiers that this machine can run passed." if not failed else f"Failed: {', '.join(failed)}")
    return 1 if failed else 0


def _run_stage(tiers: Sequence[Tier]) -> list[tuple[str, str, float]]:
    if len(tiers) == 1:
        print(f"\n=== {tiers[0].name} ===", flush=True)
        return [_run(tiers[0], sys.stdout)]
    print(f"\n=== side by side, each shown when it has ended: {', '.join(tier.name for tier in tiers)} ===", flush=True)
    showing = threading.Lock()
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return list(pool.map(lambda tier: _run_aside(tier, showing), tiers))


def _run_aside(tier: Tier, showing: threading.Lock) -> tuple[str, str, float]:
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        row = _run(tier, said)
        said.seek(0)
        with showing:
            print(f"\n=== {tier.name} ===\n{said.read()}", flush=True)
    return row


def _run(tier: Tier, out: IO[str]) -> tuple[str, str, float]:
    started = time.monotonic()
    try:
        if tier.needs is not None:
            tier.needs()
    except (ControlPlaneUnavailable, ImageUnavailable, PeerUnavailable) as reason:
        print(f"left out: {reason}", file=out, flush=True)
        return tier.name, "skipped", time.monotonic() - started
    # All of them, whatever becomes of the first, so that one look shows everything.
    succeeded = [
        subprocess.run(command, cwd=ROOT, stdout=out, stderr=out, check=False).returncode == 0
        for command in tier.commands
    ]
    return tier.name, "passed" if all(succeeded) else "FAILED", time.monotonic() - started


if __name__ == "__main__":
    record.fresh(RECORD)
    aws_calls.fresh(AWS_CALLS)
    sys.exit(main(all_must_run=os.environ.get("CI") == "true"))
