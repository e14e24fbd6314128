"""Kerf and Karpenter's controller for AWS under the same loads, one after the other on a real control plane.

    python -m benchmarks.race                          # all loads, three runs each; writes docs/performance.md
    python -m benchmarks.race --loads a,b --runs 1     # some of them
    python -m benchmarks.race --pods 100 --seconds 60  # small, to try it out; writes nothing

Each run has a control plane, an AWS (moto) and machines of its own; the sides alternate. A finished run is a file in
`.cache/race`: a second call goes on where the first one stopped, and runs of a side whose sources have changed are made
again. `--fresh` begins again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.document import rewrite
from benchmarks.growth import DOCUMENT, machine
from benchmarks.peers.karpenter import PeerUnavailable
from benchmarks.race.loads import LOADS
from benchmarks.race.measuring import measure
from benchmarks.race.records import Key, Run
from benchmarks.race.report import NAMES, USE, WAITING, Found, calls, minutes, table, targets
from benchmarks.race.sides import BOOTS, SIDES
from benchmarks.race.sizes import WHOLE
from benchmarks.race.store import KARPENTER, KERF, Store, code
from benchmarks.table import aligned, conclude, markdown

RUNS: Final = 3
SHORT: Final = "short"


def keys(chosen: argparse.Namespace) -> Iterator[Key]:
    """The runs that are asked for, in their order: who begins changes from run to run."""
    codes = {side: code(side) for side in SIDES}
    for number in range(1, chosen.runs + 1):
        sides = (KERF, KARPENTER) if number % 2 else (KARPENTER, KERF)
        for load in chosen.loads:
            for side in sides:
                if chosen.side in (None, side):
                    seconds = LOADS[load].seconds if chosen.seconds is None else chosen.seconds
                    yield Key(load, side, chosen.seed, number, chosen.pods, seconds, chosen.boots, codes[side])


def collected(store: Store, wanted: Sequence[Key]) -> Found:
    """The finished ones of these runs, Kerf's first."""
    found: dict[str, dict[str, list[Run]]] = {}
    for key in sorted(wanted, key=lambda one: (one.load, one.side != KERF, one.number)):
        if (run := store.read(key)) is not None:
            found.setdefault(key.load, {}).setdefault(key.side, []).append(run)
    return found


def run_all(store: Store, chosen: argparse.Namespace) -> None:
    """Make the runs that are missing. Raises PeerUnavailable when there is no peer here."""
    for key in keys(chosen):
        if store.read(key) is not None:
            continue
        print(f"load {key.load}, run {key.number}: {NAMES[key.side]} …", file=sys.stderr, flush=True)
        with TemporaryDirectory() as temporary:
            folder = (chosen.logs or Path(temporary)) / key.name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "audit.log").unlink(missing_ok=True)
            run = measure(key, folder)
        store.write(run)
        print(aligned(list(minutes(run))), end="\n\n", flush=True)


def publishable(store: Store, chosen: argparse.Namespace) -> Found:
    """What the document shows: all loads that both sides have run. Empty when less than whole runs are asked for."""
    if (chosen.pods, chosen.seconds, chosen.boots, chosen.side) != (WHOLE, None, SHORT, None):
        return {}
    every = argparse.Namespace(**{**vars(chosen), "loads": list(LOADS)})
    found = collected(store, list(keys(every)))
    return {load: by_side for load, by_side in found.items() if len(by_side) == len(SIDES)}


def write(found: Found) -> None:
    """The tables of the document."""
    parts = {"race": table(found, WAITING), "race-use": table(found, USE), "race-calls": calls(found)}
    tables = {name: markdown(lines) for name, lines in parts.items()}
    rewrite(DOCUMENT, {**tables, "race": f"{machine()}\n\n{tables['race']}"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; whole runs of both sides are written into the document. 1 when a target is missed."""
    chosen = _parsed(arguments)
    store = Store()
    if chosen.fresh:
        for key in keys(chosen):
            store.forget(key)
    try:
        run_all(store, chosen)
    except PeerUnavailable as missing:
        print(missing, file=sys.stderr)
    found = collected(store, list(keys(chosen)))
    for columns in (WAITING, USE):
        print(aligned(table(found, columns)), end="\n\n")
    print(aligned(calls(found)), end="\n\n")
    if whole := publishable(store, chosen):
        write(whole)
    return conclude(targets(found))


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.race", description="Kerf beside Karpenter for AWS.")
    parser.add_argument("--loads", type=_loads, default=list(LOADS), help="such as a,b (default: all)")
    parser.add_argument("--side", choices=list(SIDES), help="only this one")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each load and side (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pods", type=int, default=WHOLE, help="of load a, others in proportion (default %(default)s)")
    parser.add_argument("--seconds", type=float, help="end each load so soon")
    parser.add_argument("--boots", choices=list(BOOTS), default=SHORT, help="1 s, or 30 to 60 s (default %(default)s)")
    parser.add_argument("--fresh", action="store_true", help="make these runs again")
    parser.add_argument("--logs", type=Path, help="keep what the controllers wrote, and the audit logs")
    return parser.parse_args(arguments)


def _loads(text: str) -> list[str]:
    found = [name for name in text.split(",") if name]
    if unknown := [name for name in found if name not in LOADS]:
        raise argparse.ArgumentTypeError(f"no load {', '.join(unknown)}; there are {', '.join(LOADS)}")
    return found


if __name__ == "__main__":
    sys.exit(main())
