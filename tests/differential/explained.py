"""Differences that are known: whose they are, and why. Some rules hold in every world; the rest goes by seed.

`peer` is a quirk of Karpenter's that is not copied, `choice` is one of several right answers, and `open` is ours to
mend. An explanation of a seed that nothing needs is an error, as is a difference without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tests.differential.judge import Difference


@dataclass(frozen=True, slots=True)
class Explained:
    """Fits differences of a kind, those that `when` admits."""

    kind: str
    whose: str
    why: str
    when: Callable[[Difference], bool] = lambda _: True

    def fits(self, difference: Difference) -> bool:
        return difference.kind == self.kind and self.when(difference)


RULES: Final = (
    Explained(
        "swapped",
        "choice",
        "limits are short, and as many pods of each priority have a place: who, nobody has asked for",
        lambda difference: difference.short,
    ),
)
BY_SEED: Final[Mapping[int, Explained]] = {}


def explanations(seed: int) -> Iterator[Explained]:
    """What may explain a difference in the world of a seed."""
    yield from RULES
    if seed in BY_SEED:
        yield BY_SEED[seed]
