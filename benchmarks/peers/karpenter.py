"""Karpenter's own scheduler on our benchmark inputs: the peer that our figures are held against.

The folder `karpenter/` beside this file holds a small Go program that depends on Karpenter as a module and runs its
scheduler. It is built with full optimisation, since it is here to be fast (minutes the first time, seconds when Go's
build cache is warm), and kept in `.cache/peers/<hash of its sources>/`.

    python -m benchmarks.peers.karpenter --workload mixed.json --catalogue catalogue.json --capacity-type on-demand
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from kerf_api.v1.meta import Entry
from tests.go_build import GoBuildFailed, build_once, go_build

SOURCES: Final = Path(__file__).resolve().parent / "karpenter"
CACHE: Final = Path(__file__).resolve().parents[2] / ".cache" / "peers"
PROGRAM: Final = "karpenter-peer"

on_stderr: Final = partial(print, file=sys.stderr)


@dataclass(frozen=True, slots=True)
class Target:
    """What Go builds: a package of the module, as a program of this name; `what` is for people."""

    package: str
    program: str
    what: str


SCHEDULER: Final = Target(".", PROGRAM, "Karpenter's scheduler")


class PeerUnavailable(Exception):
    """The peer cannot be built or run on this machine; the message is one line that says why."""


class PeerClaim(msgspec.Struct, frozen=True):
    """A node that Karpenter would buy: its cheapest types first, and the offering that a launch would take.

    `requirements` are those of its claim, as a manifest writes them.
    """

    node_pool: str = msgspec.field(name="nodePool")
    types: tuple[str, ...]
    pods: tuple[str, ...]
    zone: str
    capacity_type: str = msgspec.field(name="capacityType")
    price_usd_per_hour: float = msgspec.field(name="price")
    requirements: tuple[Entry, ...] = ()


class PeerOutcome(msgspec.Struct, frozen=True):
    """What came of one run. `claims`, `existing` (pod to node) and `errors` (pod to text) are empty unless asked for.

    `cpu_seconds` is the processor time within `seconds`, on all cores: what a busy machine leaves comparable.
    A pod of the namespace `default` goes by its name alone, any other as `namespace/name`.
    """

    seconds: float
    cpu_seconds: float
    parse_seconds: float
    nodes: int
    unplaced: int
    cost_usd_per_hour: float
    peak_mib: float
    timed_out: bool
    claims: tuple[PeerClaim, ...] = ()
    existing: dict[str, str] = {}
    errors: dict[str, str] = {}


# --- running ----------------------------------------------------------------------------------------------------
def run(workload: Path, catalogue: Path, capacity_type: str | None = None, *, claims: bool = False) -> PeerOutcome:
    """Schedule a workload on an empty cluster. Raises PeerUnavailable when the peer cannot be built or run."""
    return read_outcome(_answer(workload_arguments(workload, catalogue, capacity_type, claims=claims)))


def run_world(world: Path) -> PeerOutcome:
    """Schedule what waits in a whole cluster (see `karpenter/world.go`). Raises PeerUnavailable as `run` does."""
    return read_outcome(_answer(["--world", str(world)]))


def workload_arguments(
    workload: Path, catalogue: Path, capacity_type: str | None, *, claims: bool = False
) -> list[str]:
    """What the program is called with."""
    found = ["--workload", str(workload), "--catalogue", str(catalogue)]
    if capacity_type:
        found += ["--capacity-type", capacity_type]
    return [*found, "--claims"] if claims else found


def read_outcome(content: bytes) -> PeerOutcome:
    """The program's answer as a value. Raises PeerUnavailable when it is none."""
    try:
        return msgspec.json.decode(content, type=PeerOutcome)
    except msgspec.DecodeError as error:
        raise PeerUnavailable(f"the answer of {PROGRAM} is not as expected: {error!r}") from error


def _answer(arguments: Sequence[str]) -> bytes:
    ran = subprocess.run([find_program(), *arguments], capture_output=True, check=False)
    if ran.returncode != 0:
        lines = ran.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {ran.returncode}"]
        raise PeerUnavailable(f"{PROGRAM} failed: {lines[-1]}")
    return ran.stdout


# --- building ---------------------------------------------------------------------------------------------------
def find_program(announce: Callable[[str], None] = on_stderr) -> Path:
    """Return the program, building it first if need be. Raises PeerUnavailable when it cannot be built here."""
    folder = CACHE / fingerprint(SOURCES)
    if not folder.is_dir():
        build(SOURCES, folder, shutil.which("go"), announce)
    return folder / PROGRAM


def fingerprint(sources: Path) -> str:
    """A hash of all that the program is made from."""
    asked_for = [platform.system().encode(), platform.machine().encode()]
    for path in sorted(path for path in sources.iterdir() if path.suffix in (".go", ".mod", ".sum")):
        asked_for += [path.name.encode(), path.read_bytes()]
    return hashlib.sha256(b"\0".join(asked_for)).hexdigest()[:16]


def build(
    sources: Path, folder: Path, go: str | None, announce: Callable[[str], None], target: Target = SCHEDULER
) -> None:
    """Build a program of `sources` into `folder` with the toolchain `go`. Raises PeerUnavailable."""
    if go is None:
        raise PeerUnavailable(f"no Go toolchain to build {target.what} with")
    build_once(
        folder,
        partial(_go_build, go, sources, target),
        lambda: announce(f"building {target.what} (some minutes when nothing is cached)"),
    )


def _go_build(go: str, sources: Path, target: Target, staging: Path) -> None:
    try:
        # Beside the tests that wait for a control plane: what they wait for comes first.
        program = str(staging / target.program)
        go_build(go, ["-p", "1", "-o", program, target.package], sources, {}, give_way=True)
    except GoBuildFailed as failure:
        raise PeerUnavailable(f"go build of {target.what} failed: {failure}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the peer once and print its JSON; 1 when it cannot be built or run."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers.karpenter", description="Let Karpenter's scheduler do it."
    )
    parser.add_argument("--workload", type=Path, help="JSON, see benchmarks.workloads")
    parser.add_argument("--catalogue", type=Path, help="JSON, see benchmarks.workloads")
    parser.add_argument("--world", type=Path, help="a whole cluster, instead of a workload and a catalogue")
    parser.add_argument("--capacity-type", choices=("on-demand", "spot"), help="buy only this (default: both)")
    parser.add_argument("--claims", action="store_true", help="tell the nodes and the errors too")
    chosen = parser.parse_args(arguments)
    if chosen.world is None and (chosen.workload is None or chosen.catalogue is None):
        parser.error("needs --workload and --catalogue, or --world")
    asked = ["--world", str(chosen.world)]
    if chosen.world is None:
        asked = workload_arguments(chosen.workload, chosen.catalogue, chosen.capacity_type, claims=chosen.claims)
    try:
        print(json.dumps(msgspec.json.decode(_answer(asked))))
    except PeerUnavailable as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
