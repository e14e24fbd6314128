"""Behaviours of the scheduling catalogue, each with the bug that its test dies of; and the draw that says of which.

A seed draws thirty of all the catalogue's numbers, whatever is built so far, so a number that is drawn stays drawn. One
that has a test needs a bug here, and one that gets a test later will (`test_mutations.py` says so). The referee, who
looks at every answer that these tests get, is left out: a test has to see by itself what its name says.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from tests.mutations import behaviours_of_company, behaviours_of_nodes, behaviours_of_pods
from tests.mutations.bug import Bug, Edit
from tests.unit.scheduling.test_catalogue_is_complete import NUMBERS, numbered_tests

SEED = 20261122
DRAWN = 30
_NO_REFEREE = Edit(
    "tests/unit/scheduling/catalogue_world.py", "    assert violations(snapshot, pods, solution) == []\n", ""
)
NO_BUG, NO_TEST = "has no bug planted here", "is not built yet: it has no test"
_TESTS = numbered_tests()


def drawn(seed: int) -> list[int]:
    """Thirty numbers of the catalogue, in the order in which they are drawn."""
    return random.Random(seed).sample(NUMBERS, DRAWN)


def broken(numbers: Iterable[int]) -> list[Bug]:
    """The bugs of these numbers, of those that have one."""
    return [BROKEN[number] for number in numbers if number in BROKEN]


def lacking(numbers: Iterable[int]) -> dict[int, str]:
    """What the others lack: a bug, or even the test that would find it."""
    return {n: NO_BUG if n in _TESTS else NO_TEST for n in numbers if n not in BROKEN}


BROKEN = {
    number: Bug(f"{number:03d}", sentence, (*edits, _NO_REFEREE), tuple(_TESTS.get(number, ())))
    for part in (behaviours_of_pods, behaviours_of_nodes, behaviours_of_company)
    for number, (sentence, edits) in part.BREAKS.items()
}
