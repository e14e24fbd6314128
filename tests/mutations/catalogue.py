"""Behaviours of the catalogues, each with the bug that its test dies of; and the draw that says of which.

A seed puts all numbers of a catalogue in an order, and the first thirty that are built are drawn: each needs a bug
here (as `test_mutations.py` says). The scheduler's referee, who looks at all answers that its tests get, is left out: a
test has to see by itself what its name says.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType

from tests.mutations import (
    behaviours_of_aws_classes,
    behaviours_of_aws_controllers,
    behaviours_of_aws_filters,
    behaviours_of_aws_fleets,
    behaviours_of_aws_launches,
    behaviours_of_aws_offerings,
    behaviours_of_aws_templates,
    behaviours_of_budgets,
    behaviours_of_candidates,
    behaviours_of_claims,
    behaviours_of_company,
    behaviours_of_consolidation,
    behaviours_of_consolidation_policies,
    behaviours_of_drains,
    behaviours_of_drift,
    behaviours_of_nodes,
    behaviours_of_pods,
)
from tests.mutations.bug import Bug
from tests.mutations.edits import Edit
from tests.unit.catalogues import AWS, DISRUPTION, SCHEDULING, Catalogue

SEED = 20261122
DRAWN = 30
_NO_REFEREE = Edit("tests/unit:run", "assert violations(snapshot, pods, solution) == []", "")
NO_BUG, NO_TEST = "has no bug planted here", "is not built yet: it has no test"


@dataclass(frozen=True, slots=True)
class Behaviours:
    """A catalogue, and by number the bugs that break its behaviours and the tests that bear them."""

    catalogue: Catalogue
    bugs: Mapping[int, Bug]
    tests: Mapping[int, list[str]]

    @classmethod
    def of(cls, catalogue: Catalogue, parts: Iterable[ModuleType], always: Iterable[Edit] = ()) -> Behaviours:
        """`always` is changed whichever behaviour is broken."""
        tests = catalogue.tests()
        bugs = {
            number: Bug(f"{catalogue.name} {number:03d}", sentence, (*edits, *always), tuple(tests.get(number, ())))
            for part in parts
            for number, (sentence, edits) in part.BREAKS.items()
        }
        return cls(catalogue, dict(sorted(bugs.items())), tests)

    def drawn(self, seed: int) -> list[int]:
        """Thirty numbers of the catalogue that are not to come, in the order in which they are drawn."""
        numbers = self.catalogue.numbers
        shuffled = random.Random(seed).sample(numbers, len(numbers))
        return [number for number in shuffled if number not in self.catalogue.to_come][:DRAWN]

    def broken(self, numbers: Iterable[int]) -> list[Bug]:
        """The bugs of these numbers, of those that have one."""
        return [self.bugs[number] for number in numbers if number in self.bugs]

    def lacking(self, numbers: Iterable[int]) -> dict[int, str]:
        """What the others lack: a bug, or even the test that would find it."""
        return {n: NO_BUG if n in self.tests else NO_TEST for n in numbers if n not in self.bugs}


BROKEN = {
    each.catalogue.name: each
    for each in (
        Behaviours.of(SCHEDULING, (behaviours_of_pods, behaviours_of_nodes, behaviours_of_company), (_NO_REFEREE,)),
        Behaviours.of(
            DISRUPTION,
            (
                behaviours_of_candidates,
                behaviours_of_budgets,
                behaviours_of_consolidation,
                behaviours_of_consolidation_policies,
                behaviours_of_drift,
                behaviours_of_claims,
                behaviours_of_drains,
            ),
        ),
        Behaviours.of(
            AWS,
            (
                behaviours_of_aws_launches,
                behaviours_of_aws_fleets,
                behaviours_of_aws_filters,
                behaviours_of_aws_offerings,
                behaviours_of_aws_templates,
                behaviours_of_aws_classes,
                behaviours_of_aws_controllers,
            ),
        ),
    )
}
