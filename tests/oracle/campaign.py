"""Many seeds in several processes: the differences of each world, and the table of features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Final

from tests.differential.draft import Json
from tests.oracle.client import Oracle
from tests.oracle.compare import Comparison, compare
from tests.oracle.difference import Difference
from tests.oracle.exceptions import EXCEPTIONS, MOST, Case, Rule
from tests.oracle.features import FEATURES
from tests.oracle.pending import PENDING
from tests.oracle.sandbox import pairs
from tests.oracle.worlds import world_of

#: Of 5,000 worlds each feature must be in so many; in fewer worlds, in as large a share of them.
LEAST, OF = 300, 5000
#: From so many seeds on the shares are checked.
MANY: Final = 1000
_CHUNK: Final = 10


@dataclass(frozen=True, slots=True)
class Tried:
    """A seed, the features of its world, and the differences with the rule that names each, if there is one."""

    seed: int
    features: frozenset[str]
    placed: int
    planned: int
    refused: int
    exceptions: tuple[tuple[Difference, str], ...]
    open: tuple[tuple[Difference, str], ...]
    unexplained: tuple[Difference, ...]

    @property
    def differs(self) -> bool:
        return bool(self.exceptions or self.open or self.unexplained)


def features_of(world: Json) -> frozenset[str]:
    return frozenset(feature.name for feature in FEATURES if feature.found(world))


def tried(seed: int, oracle: Oracle) -> Tried:
    world = world_of(seed)
    found = compare(world, oracle)
    exceptions, open_, unexplained = sorted_out(found)
    solution = found.ours.solution if found.ours is not None else None
    numbers = (
        (len(solution.placed), sum(len(n.pods) for n in solution.new_nodes), len(solution.unplaced))
        if solution is not None
        else (0, 0, 0)
    )
    sandbox = tuple(pairs(world, oracle))
    return Tried(seed, features_of(world), *numbers, exceptions, open_, (*unexplained, *sandbox))


Named = tuple[tuple[Difference, str], ...]


def sorted_out(found: Comparison) -> tuple[Named, Named, tuple[Difference, ...]]:
    """Differences that are exceptions, that are open, and the others."""
    exceptions, open_, left = [], [], []
    for difference in found.differences:
        known = (found.refused, found.later, found.soon, found.apart, found.lifted)
        case = Case(found.world, difference, *known)
        if rule := _rule(EXCEPTIONS, case):
            exceptions.append((difference, rule))
        elif rule := _rule(PENDING, case):
            open_.append((difference, rule))
        else:
            left.append(difference)
    return tuple(exceptions), tuple(open_), tuple(left)


def _rule(rules: Iterable[Rule], case: Case) -> str:
    return next((rule.name for rule in rules if rule.admits(case)), "")


# --- many seeds ---------------------------------------------------------------------------------------------------
def campaign(seeds: Sequence[int], workers: int) -> Iterator[Tried]:
    """All seeds, in order, in so many processes; each has an oracle of its own."""
    chunks = [seeds[at : at + _CHUNK] for at in range(0, len(seeds), _CHUNK)]
    with ProcessPoolExecutor(workers, initializer=_start) as pool:
        for found in pool.map(_chunk, chunks):
            yield from found


_oracles: list[Oracle] = []


def _start() -> None:
    _oracles.append(Oracle.started())


def _chunk(seeds: Sequence[int]) -> list[Tried]:
    return [tried(seed, _oracles[-1]) for seed in seeds]


# --- the report ---------------------------------------------------------------------------------------------------
def table(found: Sequence[Tried]) -> Iterator[str]:
    """A line for each feature: worlds with it, and those of them with a difference of each sort."""
    yield f"{'feature':<32} {'worlds':>6} {'exception':>9} {'open':>6} {'unexplained':>11}"
    rows = [(feature.name, [one for one in found if feature.name in one.features]) for feature in FEATURES]
    for name, some in [*rows, ("all", list(found))]:
        counts = (sum(bool(one.exceptions) for one in some), sum(bool(one.open) for one in some))
        left = sum(bool(one.unexplained) for one in some)
        yield f"{name:<32} {len(some):>6} {counts[0]:>9} {counts[1]:>6} {left:>11}"
    yield (
        f"pods: {sum(one.placed for one in found)} on existing nodes, {sum(one.planned for one in found)} on planned "
        f"nodes, {sum(one.refused for one in found)} refused"
    )


def kinds(found: Sequence[Tried]) -> Iterator[str]:
    """Each exception, each open disagreement and each kind of unexplained difference, with its first seed."""
    for title, named in (
        ("exception", [(rule, one.seed) for one in found for _, rule in one.exceptions]),
        ("open", [(rule, one.seed) for one in found for _, rule in one.open]),
        ("unexplained", [(difference.kind, one.seed) for one in found for difference in one.unexplained]),
    ):
        worlds = Counter(name for name, _ in set(named))
        for name, count in sorted(worlds.items(), key=lambda row: (-row[1], row[0])):
            first = min(seed for other, seed in named if other == name)
            yield f"{title}: {name}: {count} worlds, first seed {first}"


def faults(found: Sequence[Tried]) -> Iterator[str]:
    """The reasons for which a campaign fails."""
    left = [one for one in found if one.unexplained]
    if left:
        yield f"{len(left)} worlds with an unexplained difference"
    if len(found) < MANY:
        return
    features = Counter(name for one in found for name in one.features)
    for feature in FEATURES:
        if features[feature.name] * OF < LEAST * len(found):
            yield f"too rare: {feature.name} is in {features[feature.name]} of {len(found)} worlds"
    for rule in EXCEPTIONS:
        worlds = sum(any(name == rule.name for _, name in one.exceptions) for one in found)
        if worlds > MOST * len(found):
            yield f"too common: the exception {rule.name} is in {worlds} of {len(found)} worlds"
    needed = {name for one in found for _, name in one.open}
    for rule in PENDING:
        if rule.name not in needed:
            yield f"open, but in no world: {rule.name}"
