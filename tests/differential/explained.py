"""Differences that are known: whose they are, and why. A rule holds in every world; the rest goes by seed.

`peer` is a quirk of Karpenter's that is not copied, `choice` is one of several right answers, and `open` is ours to
mend. A difference without an explanation is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.differential.judge import Difference


@dataclass(frozen=True, slots=True)
class Explained:
    """Fits differences of a kind in the worlds of these seeds (None: in all), those that `when` admits."""

    kind: str
    whose: str
    why: str
    seeds: frozenset[int] | None = None
    when: Callable[[Difference], bool] = lambda _: True

    def fits(self, seed: int, difference: Difference) -> bool:
        known = self.seeds is None or seed in self.seeds
        return known and difference.kind == self.kind and self.when(difference)


#: In every world.
_ALWAYS: Final = (
    Explained(
        "unplaced",
        "peer",
        "the referee finds Karpenter's place for these very pods wrong: Kubernetes would not bind them there",
        when=lambda difference: difference.blamed,
    ),
    Explained(
        "swapped",
        "choice",
        "limits are short, and as many pods of each priority have a place: who, nobody has asked for",
        when=lambda difference: difference.short,
    ),
)

#: By seed, of seeds 0 to 299. Where Karpenter picks a domain by dice, not every run shows the difference.
_BY_SEED: Final = (
    Explained(
        "dearer",
        "open",
        "nodes of the best price for what they hold cost more together than one larger one, or a pod is left over",
        frozenset((7, 78)),
    ),
    Explained(
        "dearer",
        "open",
        "spread and anti-affinity settle a zone before prices are asked: it is a dear one, or one node more is needed",
        frozenset((6, 8, 25, 110, 141)),
    ),
    Explained(
        "dearer",
        "open",
        "few pods, one order of filling: others find a cheaper one; not looked into one by one",
        frozenset((30, 69, 85, 91, 123, 125, 154, 202, 213, 221, 246, 247, 262, 298, 299)),
    ),
    Explained(
        "dearer",
        "open",
        "a pod that any NodePool would do for joins no new node of a NodePool that comes later by name",
        frozenset((169,)),
    ),
    Explained("dearer", "open", "a follower takes the room that one of those it follows would need", frozenset((186,))),
    Explained(
        "dearer",
        "peer",
        "a soft spread or preferred anti-affinity is kept, which Karpenter forgets while a node's zone is not settled",
        frozenset((116, 132, 284)),
    ),
    Explained(
        "dearer",
        "peer",
        "a PreferNoSchedule taint is respected, which Karpenter gives up when the zone that its dice chose is no good",
        frozenset((38,)),
    ),
    Explained(
        "unplaced",
        "open",
        "nodes of the best price use a limit up, within which others would hold all pods",
        frozenset((156, 160, 217, 287, 291)),
    ),
    Explained(
        "unplaced",
        "open",
        "pods are put together on types too few for minValues, though each alone would have enough of them",
        frozenset((297,)),
    ),
)
EXPLAINED: Final = (*_ALWAYS, *_BY_SEED)


def explanation(seed: int, difference: Difference) -> Explained | None:
    """Why the answers to a seed's world may differ so; None when nobody knows."""
    return next((known for known in EXPLAINED if known.fits(seed, difference)), None)


def unneeded(seed: int, differences: tuple[Difference, ...]) -> Iterator[Explained]:
    """What is said of the seed alone and explains nothing; the peer may have had another answer this time."""
    for known in EXPLAINED:
        if known.seeds is not None and seed in known.seeds and not any(known.fits(seed, d) for d in differences):
            yield known
