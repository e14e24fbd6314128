"""Many seeds, or one, or worlds from files, through our scheduler and Karpenter's own.

python -m tests.differential --seeds 300                 # seeds 0 ... 299, and the table of features
python -m tests.differential --seed 17                   # one seed; its world is made smaller if the answers differ
python -m tests.differential --seeds 300 --out found/    # each difference as a file: the smallest world that has it
python -m tests.differential --world found/*.json        # worlds from files, again
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.karpenter import PeerUnavailable
from benchmarks.peers.worlds import PeerSession
from tests.differential.campaign import Tried, smallest, table, thin, tried
from tests.differential.explained import explanation, unneeded
from tests.differential.generator import drawn, world_of
from tests.differential.judge import Comparison, compare


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when nothing differs that is not explained; 1 when something does, or when the peer cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description="Beside Karpenter's scheduler.")
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds (default 300)")
    parser.add_argument("--start", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--seed", type=int, help="this seed alone, told in full")
    parser.add_argument("--out", type=Path, help="a folder for the smallest world of each difference")
    parser.add_argument("--world", type=Path, nargs="+", help="worlds from files")
    chosen = parser.parse_args(arguments)
    try:
        with PeerSession.start() as session:
            if chosen.world is not None:
                return _replay(session, chosen.world)
            if chosen.seed is not None:
                return _one(session, chosen.seed)
            return _many(session, range(chosen.start, chosen.start + chosen.seeds), chosen.out)
    except PeerUnavailable as missing:
        print(missing, file=sys.stderr)
        return 1


def _many(session: PeerSession, seeds: range, out: Path | None) -> int:
    found: list[Tried] = []
    for one in tried(session, seeds):
        found.append(one)
        for difference in one.differences:
            known = explanation(one.seed, difference)
            print(f"seed {one.seed}: {difference}{f' [{known.whose}: {known.why}]' if known else ''}", flush=True)
            if out is not None:
                _write(session, one, out)
    print("\n".join(["", *table(found)]))
    for one in found:
        for known in unneeded(one.seed, one.differences):
            print(f"seed {one.seed}: explained, but not there this time: {known.kind}, {known.why}")
    rare = thin(found)
    print("".join(f"too rare: {name}\n" for name in rare), end="")
    return 1 if rare or any(one.unexplained for one in found) else 0


def _write(session: PeerSession, one: Tried, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for difference in one.differences:
        world = smallest(session, world_of(one.seed), difference)
        told = {"seed": one.seed, "kind": difference.kind, "words": difference.words, "breaks": difference.breaks}
        content = {**told, "features": sorted(map(str, drawn(one.seed))), "world": world}
        (out / f"{one.seed:05}-{difference.kind}.json").write_text(json.dumps(content, indent=1))


def _one(session: PeerSession, seed: int) -> int:
    world = world_of(seed)
    print(f"seed {seed}: {', '.join(map(str, drawn(seed)))}")
    comparison = compare(world, session.ask(world))
    for difference in comparison.differences:
        print(f"\n{difference}\nThe smallest world that has it:")
        world = smallest(session, world, difference)
        print(json.dumps(world, indent=1))
        _tell(compare(world, session.ask(world)))
    if not comparison.differences:
        _tell(comparison)
    return 1 if comparison.differences else 0


def _replay(session: PeerSession, paths: Sequence[Path]) -> int:
    differ = 0
    for path in paths:
        content: Any = json.loads(path.read_text())
        world = content.get("world", content)
        found = compare(world, session.ask(world)).differences
        differ += bool(found)
        print(f"{path.name}: {'; '.join(map(str, found)) or 'no difference'}")
    return 1 if differ else 0


def _tell(comparison: Comparison) -> None:
    """Both answers, node by node."""
    solution, peer = comparison.ours.solution, comparison.peer
    print(f"ours: {comparison.our_cost / 1e6:.4f}, {dict(solution.placed)}")
    for node in solution.new_nodes:
        print(f"  {node.pool}: {node.instance_types[:4]} {node.zones} {node.price / 1e6:.4f} {node.pods}")
    for key, why in solution.unplaced.items():
        print(f"  {key} stays: {why}")
    print(f"peer: {peer.cost / 1e6:.4f}, {dict(peer.placed)}")
    for made in peer.new_nodes:
        print(f"  {made.pool}: {made.instance_types[:4]} {made.requirements} {made.price / 1e6:.4f} {made.pods}")
    for key in peer.unplaced:
        print(f"  {key} stays")
    for problem in peer.problems:
        print(f"  breaks {problem}")


if __name__ == "__main__":
    sys.exit(main())
