"""`python -m tests.cluster up`: a Kubernetes control plane to play with, until Ctrl-C.

`python -m tests.cluster build` only builds its programs, so that a later start takes seconds.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from .binaries import ControlPlaneUnavailable, find_binaries
from .control_plane import ControlPlane
from .flux_programs import find_flux
from .processes import ComponentFailed
from .prometheus_programs import find_prometheus

CHECK_SECONDS = 1.0


def main() -> int:
    """Run the command that was asked for and return the exit code."""
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        if options.command == "build":
            print(find_binaries())
            print(find_flux())
            print(find_prometheus())
        else:
            _up(options.audit_log)
    except (ControlPlaneUnavailable, ComponentFailed) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="only build the programs and print the folders they are in")
    up = commands.add_parser("up", help="build, start, and stay until Ctrl-C")
    up.add_argument("--audit-log", type=Path, help="write every API request to this file")
    return parser


def _up(audit_log: Path | None) -> None:
    cluster = ControlPlane(audit_log=audit_log)
    began = time.monotonic()
    with cluster:
        print(f"started in {time.monotonic() - began:.1f} s from {cluster.binaries}\n")
        print(cluster.kubectl("version").stdout)
        print(f"logs are in {cluster.folder}; kwok plays the kubelet of every Node you create\n")
        print(f"  export KUBECONFIG={cluster.kubeconfig}")
        print(f"  alias kubectl={cluster.binaries / 'kubectl'} helm={cluster.binaries / 'helm'}\n")
        print("Ctrl-C stops it.", flush=True)
        while True:
            time.sleep(CHECK_SECONDS)
            cluster.check()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    raise SystemExit(main())
