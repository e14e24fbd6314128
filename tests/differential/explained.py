"""Differences that are known: whose they are, and why. A rule holds in every world; the rest goes by seed.

`peer` is a quirk of Karpenter's that is not copied, and `choice` is one of several right answers. A difference without
an explanation is an error.
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
        "peer",
        "a soft spread or preferred anti-affinity is kept, which Karpenter forgets while a node's zone is not settled",
        frozenset((116, 132, 160, 284)),
    ),
    Explained(
        "dearer",
        "peer",
        "a PreferNoSchedule taint is respected, which Karpenter gives up when the zone that its dice chose is no good",
        frozenset((38,)),
    ),
    Explained(
        "swapped",
        "choice",
        "there is a place for some of the pods that are spread over zones or shun each other, and as many have it",
        frozenset((67,)),
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
