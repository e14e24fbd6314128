"""The tiers.

The tests on the real control plane need the Go toolchain once, to build it, and so do the comparisons with Karpenter's
scheduler and the kube-scheduler's plugins; those of the container image need the image's Python and a package index.
Without these they are left out with one visible line each, and with CI=true that is a failure.

`make test` has a part of the tests on the real control plane: that Kerf installs, launches, binds and removes nodes
there, survives a crash, and that its ports and manifests behave as with the emulated one. `make e2e` has all of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from benchmarks.peers.karpenter import find_program
from tests.cluster.binaries import find_binaries
from tests.cluster.flux_programs import FluxUnavailable, find_flux
from tests.cluster.prometheus_programs import PrometheusUnavailable, find_prometheus
from tests.image.images import find_images
from tests.oracle.binaries import find_oracle
from tests.sources import ROOT

from .running import Tier

#: Each run ends with its slowest tests: who adds one sees what it costs.
PYTEST = (sys.executable, "-m", "pytest", "--durations=10", "--durations-min=5")
NOT_LONG = "not cluster and not long"
#: Beside tests on the real control plane, which mostly wait: it takes the CPU that these leave.
PATIENT = ("nice", "-n", "15", *PYTEST, "--timeout=900")
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
REAL, REAL_AND_LONG = "cluster and not long", "cluster and long"

#: What Kerf asks of all these control planes, and what is made of that at the end.
RECORD = ROOT / "build" / "rights"

#: The numbers of calls of AWS that were judged, a file for each run of pytest.
AWS_CALLS = ROOT / "build" / "aws-calls"

#: Small worlds that are put to Karpenter's scheduler, too.
SEEDS, MANY_SEEDS = 60, 300
#: Worlds that are compared with the kube-scheduler's plugins.
ORACLE_SEEDS, MANY_ORACLE_SEEDS = 300, 5000


def _tool(name: str, *arguments: str) -> tuple[str, ...]:
    return (str(Path(sys.executable).parent / name), *arguments)


def _module(name: str, *arguments: object) -> tuple[str, ...]:
    return (sys.executable, "-m", name, *map(str, arguments))


def _on_the_real_one(*arguments: str, which: str = REAL) -> tuple[str, ...]:
    return (*PYTEST, *arguments, "-n0", "-s", "-m", which)


def _files(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/cluster/test_{name}.py" for name in names)


def _real(name: str, *files: str, needs: Callable[[], object] = find_binaries) -> Tier:
    return Tier(f"real control plane: {name}", (_on_the_real_one(*files),), needs)


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


CHARTS = tuple(sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/cluster/test_chart*.py")))
LIFE = _files("binding", "control_plane", "end_to_end")
CRASHES = _files("admission", "crash_points")

#: The tests on the real control plane mostly wait: in parts, each with a plane of its own, they wait together.
CORE = (
    _real("life of nodes", *LIFE),
    _real("admission and crashes", *CRASHES),
    _real("charts", *CHARTS, *_files("getting_started")),
    Tier(
        "real control plane: contracts",
        ((*PYTEST, "tests/contract", "tests/gitops", *PARALLEL, "-m", REAL),),
        needs=find_binaries,
    ),
)

FAILURES = _files("drills", "kube_scheduler_worlds", "leadership", "operations")
NODES = _files("annotations", "bootstrapper", "devices", "ends", "overlays", "trust")
GIT = _files("argocd", "conversion", "deletions", "flux", "flux_health", "no_noise")
INSTALLED = _files("adoption", "alerts", "dashboards", "metrics")
CHANGES = _files("approval", "canary", "node_user_data", "old_definitions", "one_tick", "roll_out", "version_upgrade")
PODS = _files("cold_start", "early_orders", "facts_of_pods", "hostile_times", "messages", "missing_role", "pod_status")
ELSEWHERE = (*LIFE, *CRASHES, *CHARTS, *_files("getting_started"), *FAILURES, *NODES, *GIT, *INSTALLED, *CHANGES, *PODS)

#: All other tests on the real control plane that end within minutes.
OTHERS = (
    _real("failures", *FAILURES),
    _real("ends and devices of nodes", *NODES),
    _real("from Git", *GIT, needs=_with_flux),
    _real("adoption and monitoring", *INSTALLED, needs=_with_prometheus),
    _real("all else", "tests/cluster", *(f"--ignore={path}" for path in ELSEWHERE)),
    _real("changes", *CHANGES),
    _real("pods", *PODS),
)

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
    (Tier("unit, laws and fuzzing", ((*PYTEST, *UNIT, *PARALLEL, "-m", NOT_LONG),)),),
    (
        *CORE,
        Tier("scenarios, contracts and simulation", ((*PATIENT, *SANDBOX, *PARALLEL, "-m", NOT_LONG),)),
        Tier("container image", ((*PYTEST, "tests/image", "-n0", "-m", NOT_LONG),), needs=find_images),
        Tier("beside Karpenter's scheduler", (_module("tests.differential", "--seeds", SEEDS),), needs=find_program),
        Tier(
            "beside the kube-scheduler's plugins",
            (
                (*PYTEST, "tests/oracle", "-n0", "-m", NOT_LONG),
                _module("tests.oracle", "--seeds", ORACLE_SEEDS),
            ),
            needs=find_oracle,
        ),
    ),
    # The tests of `make e2e` need the other rights.
    (Tier("real control planes: rights", (_module("tests.cluster.rights", RECORD, "--part"),), needs=find_binaries),),
)

E2E: tuple[tuple[Tier, ...], ...] = (
    (*CORE, *OTHERS),
    (Tier("real control planes: rights", (_module("tests.cluster.rights", RECORD),), needs=find_binaries),),
)


def _long(name: str, *commands: tuple[str, ...], needs: Callable[[], object] | None = None) -> tuple[Tier]:
    return (Tier(f"long: {name}", commands, needs),)


def _long_on_the_real_one(name: str, *files: str) -> tuple[Tier]:
    return _long(name, _on_the_real_one(*files, which=REAL_AND_LONG), needs=find_binaries)


def _not_real(*folders: str) -> tuple[str, ...]:
    """Hours: what has passed before on the same sources is left out, test by test."""
    return (*PYTEST, "-p", "tests.tiers.passed", *folders, *PARALLEL, "-m", "long and not cluster")


#: One after the other: each of these keeps two cores busy, or waits for seconds that must not grow.
LONG: tuple[tuple[Tier, ...], ...] = (
    _long(
        "laws, searched anew", (*PYTEST, "tests/laws", "--hypothesis-profile=search", *PARALLEL, "-m", "not cluster")
    ),
    _long("units, laws and fuzzing", _not_real(*UNIT)),
    _long("scenarios and simulation", _not_real("tests/simulation", "tests/scenarios")),
    _long(
        "the kube-scheduler's plugins",
        _not_real("tests/oracle"),
        _module("tests.oracle", "--seeds", MANY_ORACLE_SEEDS),
        needs=find_oracle,
    ),
    _long("Karpenter's scheduler", _module("tests.differential", "--seeds", MANY_SEEDS), needs=find_program),
    _long("planted bugs", _not_real("tests/mutations")),
    _long_on_the_real_one(
        "failures and crashes on the real control plane", *_files("crash_points", "drills", "one_tick")
    ),
    _long_on_the_real_one(
        "life of nodes there", *_files("cold_start", "ends", "roll_out", "steady_state", "topology_facts")
    ),
    _long_on_the_real_one(
        "upgrades and Git there", *_files("adoption", "argocd_live", "flux", "old_definitions", "version_upgrade")
    ),
    _long_on_the_real_one("after binding", *_files("kube_scheduler_worlds")),
    _long_on_the_real_one("plans and a recorded load", *_files("plans", "replay")),
    _long_on_the_real_one("faults", *_files("faults")),
    _long("the scale feed", _module("benchmarks.feed"), _module("benchmarks.feed", "--handover")),
)
