"""Many worlds, one after the other: what differs, and the table of features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.peers.worlds import PeerSession
from tests.differential.draft import Json
from tests.differential.explained import explanation
from tests.differential.features import FEATURES
from tests.differential.generator import world_of
from tests.differential.judge import Comparison, Difference, compare
from tests.differential.shrink import shrunk

#: From so many seeds on, each feature must be in so many worlds.
MANY: Final = 300
LEAST: Final = 20


@dataclass(frozen=True, slots=True)
class Tried:
    """A seed, what its world has, and what came of it."""

    seed: int
    features: frozenset[str]
    comparison: Comparison

    @property
    def differences(self) -> tuple[Difference, ...]:
        return self.comparison.differences

    @property
    def unexplained(self) -> tuple[Difference, ...]:
        return tuple(d for d in self.differences if explanation(self.seed, d) is None)


def tried(session: PeerSession, seeds: Iterable[int]) -> Iterator[Tried]:
    for seed in seeds:
        world = world_of(seed)
        yield Tried(seed, features_of(world), compare(world, session.ask(world)))


def features_of(world: Json) -> frozenset[str]:
    return frozenset(feature.name for feature in FEATURES if feature.found(world))


def smallest(session: PeerSession, world: Json, difference: Difference) -> Json:
    """The world made smaller while the kind of difference stays, and while the peer's answer breaks the same rules."""

    def stays(smaller: Json) -> bool:
        found = compare(smaller, session.ask(smaller)).differences
        return any((one.kind, one.breaks) == (difference.kind, difference.breaks) for one in found)

    return shrunk(world, stays)


# --- the table ----------------------------------------------------------------------------------------------------
def table(found: Sequence[Tried]) -> list[str]:
    """A line per feature: in how many worlds it is, and what came of those worlds.

    `differ` counts worlds with a difference, `unexplained` those of them with one that nobody has explained;
    `cheaper` are worlds where the same pods cost less on our side, `more` those where we place pods that the peer does
    not.
    """
    rows = [(feature.name, [one for one in found if feature.name in one.features]) for feature in FEATURES]
    head = f"{'feature':<30} {'worlds':>6} {'differ':>6} {'unexplained':>11} {'cheaper':>7} {'more':>5}"
    return [head, *(_line(name, some) for name, some in [*rows, ("all", list(found))])]


def _line(name: str, some: Sequence[Tried]) -> str:
    differ, left = sum(bool(one.differences) for one in some), sum(bool(one.unexplained) for one in some)
    cheaper = sum(one.comparison.our_cost < one.comparison.peer.cost for one in some)
    more = sum(bool(one.comparison.more) for one in some)
    return f"{name:<30} {len(some):>6} {differ:>6} {left:>11} {cheaper:>7} {more:>5}"


def thin(found: Sequence[Tried]) -> list[str]:
    """Features that too few worlds have, if there are many worlds."""
    counted = Counter(name for one in found for name in one.features)
    return [f.name for f in FEATURES if counted[f.name] < LEAST] if len(found) >= MANY else []
