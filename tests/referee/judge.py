"""All rules, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from kerf.model.kubernetes.objects import Pod
from kerf.model.snapshot import Snapshot
from tests.referee import arriving, company, devices, reserved, spread, standing
from tests.referee.answers import Answer, Violation
from tests.referee.census import Census
from tests.referee.daemons import Daemons
from tests.referee.defaults import with_defaults
from tests.referee.kinds import Kinds
from tests.referee.places import existing
from tests.referee.planned import Planned, limits


def violations(
    snapshot: Snapshot, pods: Sequence[Pod], answer: Answer, exclude: frozenset[str] = frozenset()
) -> list[Violation]:
    """Every rule that the answer breaks; empty when it is right. `exclude` are nodes that are to go."""
    by_key = {pod.key: with_defaults(snapshot, pod) for pod in pods}
    found = list(_bookkeeping(by_key, answer))
    if found:
        return found
    found.extend(devices.problems(snapshot, by_key, answer))
    kinds, daemons = Kinds(), Daemons(snapshot)
    planned = Planned(snapshot, daemons, by_key)
    places = existing(snapshot, daemons, by_key, answer, exclude, found)
    arriving.settle(snapshot, daemons, kinds, places)
    for number, node in enumerate(answer.new_nodes):
        found.extend(planned.problems(node))
        places.append(planned.place(node, number))
    found.extend(standing.problems(snapshot, kinds, places))
    found.extend(limits(snapshot, answer, exclude))
    found.extend(reserved.problems(snapshot, answer))
    census = Census(snapshot, kinds, places)
    found.extend(spread.problems(census))
    found.extend(company.problems(census))
    return found


def _bookkeeping(by_key: Mapping[str, Pod], answer: Answer) -> Iterator[Violation]:
    seen = Counter([*answer.placed, *answer.unplaced, *(k for n in answer.new_nodes for k in n.pods)])
    for key in sorted(set(seen) | set(by_key)):
        if key not in by_key:
            yield Violation("answers", f"{key} was not asked for")
        elif seen[key] != 1:
            yield Violation("answers", f"{key} has {seen[key]} answers")
