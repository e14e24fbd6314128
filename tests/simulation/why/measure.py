"""The worlds of pods and of nodes one after the other, and the table of what came of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.simulation.why import nodes, pods
from tests.simulation.why.play import Unbroken
from tests.simulation.why.pods import Found


@dataclass(frozen=True)
class Measured:
    """A world of pods or of nodes; `found` is None where no draw of the seed was any use."""

    pods: bool
    seed: int
    found: Found | None

    @classmethod
    def read(cls, line: str) -> Measured:
        """What `line` writes."""
        row = json.loads(line)
        return cls(row["pods"], row["seed"], Found(**row["found"]) if row["found"] else None)

    @property
    def line(self) -> str:
        return json.dumps({"pods": self.pods, "seed": self.seed, "found": asdict(self.found) if self.found else None})


def measured(
    count_of_pods: int, count_of_nodes: int, first: int, known: Sequence[Measured] = (), kept: Path | None = None
) -> list[Measured]:
    """So many worlds of each, from a seed on; those that are known are not lived again."""
    found = {(one.pods, one.seed): one for one in known}
    for of_pods, seed in _asked(count_of_pods, count_of_nodes, first):
        if (of_pods, seed) in found:
            continue
        found[of_pods, seed] = one = _lived(of_pods, seed)
        print(one.line, file=sys.stderr, flush=True)
        if kept is not None:
            with kept.open("a", encoding="utf-8") as file:
                file.write(f"{one.line}\n")
    return [found[key] for key in sorted(found, key=lambda key: (not key[0], key[1]))]


def _asked(count_of_pods: int, count_of_nodes: int, first: int) -> Iterator[tuple[bool, int]]:
    yield from ((True, seed) for seed in range(first, first + count_of_pods))
    yield from ((False, seed) for seed in range(first, first + count_of_nodes))


def _lived(of_pods: bool, seed: int) -> Measured:
    try:
        return Measured(of_pods, seed, pods.judged(seed) if of_pods else nodes.judged(seed))
    except Unbroken:
        return Measured(of_pods, seed, None)


# --- the table --------------------------------------------------------------------------------------------------
def table(found: Iterable[Measured]) -> str:
    """Pods, then nodes: a row per kind, the sum, and each miss."""
    some = list(found)
    parts = []
    for title, of_pods in (("pending pods", True), ("nodes to disrupt", False)):
        rows = [one.found for one in some if one.pods is of_pods and one.found is not None]
        if rows:
            unused = sum(one.pods is of_pods and one.found is None for one in some)
            parts.append(_table(title, rows, unused))
    return "\n".join(parts)


def _table(title: str, found: Sequence[Found], unused: int) -> str:
    kinds = list(dict.fromkeys(one.kind for one in sorted(found, key=lambda one: one.seed)))
    lines = [f"| {title} | worlds | cause first | edit enough |", "|---|---|---|---|"]
    for kind in kinds:
        rows = [one for one in found if one.kind == kind]
        lines.append(f"| {kind} | {len(rows)} | {sum(r.named for r in rows)} | {sum(r.works for r in rows)} |")
    lines += ["", summary(found, unused), ""]
    misses = [f"- {one.kind} (seed {one.seed}): {one.miss}. Cause: {_cut(one.cause)}" for one in found if one.miss]
    return "\n".join([*lines, *(["Misses:", "", *misses, ""] if misses else [])])


def summary(found: Sequence[Found], unused: int = 0) -> str:
    """The shares in a sentence."""
    several = sum(one.nodepools >= 3 for one in found)
    own = sum(one.action in ("Create", "Correct") for one in found)
    count = len(found)
    text = f"{count} worlds, {several} of them with three NodePools or more"
    text += f" ({unused} draws were no use)" if unused else ""
    named, works = (100 * sum(rows) / count for rows in ([o.named for o in found], [o.works for o in found]))
    text += f". Cause first: {named:.1f} %. First edit enough: {works:.1f} %; "
    return text + f"in {own} worlds the edit names a field or an object whose right value only the user knows."


def _cut(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:159]}…"
