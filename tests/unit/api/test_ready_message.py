"""The message of Ready lists the dependents that are not True in Karpenter's order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kerf_api.v1 import conditions
from kerf_api.v1.conditions import FALSE, NODECLAIM_DEPENDENTS, NODECLASS_DEPENDENTS, NODEPOOL_DEPENDENTS, TRUE, UNKNOWN
from kerf_api.v1.meta import Condition

NOW = datetime(2026, 1, 1, 12, 0, 5, 700_000, tzinfo=UTC)
CREATED = NOW.replace(microsecond=0)


def message(dependents: tuple[str, ...], *sets: tuple[str, str, str, float], generation: int = 1) -> str:
    """After these (type, status, reason, seconds after NOW), from a new object."""
    rows = conditions.initial((), dependents, CREATED)
    for type_, status, reason, seconds in sets:
        at = NOW + timedelta(seconds=seconds)
        rows = conditions.put(rows, type_, status, reason, generation=1, now=at)
    rows = conditions.with_root(rows, dependents, generation=generation, now=NOW)
    ready = conditions.get(rows, "Ready")
    assert ready is not None
    return ready.message


def true(*types: str) -> list[tuple[str, str, str, float]]:
    return [(type_, TRUE, type_, 0) for type_ in types]


@pytest.mark.parametrize("late", [0, 1, 7])
def test_a_class_without_security_groups(late: float) -> None:
    """As Karpenter's own words are: validation comes after the groups, in the same second or later."""
    sets = [
        *true("AMIsReady", "SubnetsReady", "InstanceProfileReady", "PlacementGroupReady"),
        ("SecurityGroupsReady", FALSE, "SecurityGroupsNotFound", 0),
        ("ValidationSucceeded", FALSE, "DependenciesNotReady", late),
    ]
    assert message(NODECLASS_DEPENDENTS, *sets) == "ValidationSucceeded=False, SecurityGroupsReady=False"


def test_the_newest_transition_is_first() -> None:
    sets = [
        *true("AMIsReady", "InstanceProfileReady", "PlacementGroupReady"),
        ("ValidationSucceeded", FALSE, "DependenciesNotReady", 0),
        ("SubnetsReady", FALSE, "SubnetsNotFound", 60),
        ("SecurityGroupsReady", FALSE, "SecurityGroupsNotFound", 30),
    ]
    found = message(NODECLASS_DEPENDENTS, *sets)
    assert found == "SubnetsReady=False, SecurityGroupsReady=False, ValidationSucceeded=False"


def test_a_claim_that_waits_for_its_node() -> None:
    launched = ("Launched", TRUE, "Launched", 2.0)
    assert message(NODECLAIM_DEPENDENTS, launched) == "Registered=Unknown, Initialized=Unknown"
    waiting = ("Registered", UNKNOWN, "NodeNotFound", 3.0)
    assert message(NODECLAIM_DEPENDENTS, launched, waiting) == "Initialized=Unknown, Registered=Unknown"
    failed = ("Launched", FALSE, "LaunchFailed", 4.0)
    assert message(NODECLAIM_DEPENDENTS, failed) == "Launched=False, Registered=Unknown, Initialized=Unknown"


def test_a_pool_without_its_class() -> None:
    sets = [("ValidationSucceeded", FALSE, "NodePoolValidationFailed", 0), ("NodeClassReady", FALSE, "NotFound", 0)]
    assert message(NODEPOOL_DEPENDENTS, *sets) == "NodeClassReady=False, ValidationSucceeded=False"


def test_a_condition_of_an_earlier_generation_is_listed_with_its_status() -> None:
    sets = [(type_, TRUE, type_, place) for place, type_ in enumerate(NODECLAIM_DEPENDENTS)]
    found = message(NODECLAIM_DEPENDENTS, *sets, generation=2)
    assert found == "Initialized=True, Registered=True, Launched=True"


def test_a_stored_status_gives_the_same_message() -> None:
    """Times lose their fractions when they are stored."""
    rows = conditions.initial((), NODEPOOL_DEPENDENTS, CREATED)
    for place, type_ in enumerate(NODEPOOL_DEPENDENTS):
        at = NOW + timedelta(milliseconds=100 * place)
        rows = conditions.put(rows, type_, FALSE, "No", generation=1, now=at)
    once = conditions.with_root(rows, NODEPOOL_DEPENDENTS, generation=1, now=NOW)
    stored = tuple(_stored(row) for row in once)
    again = conditions.with_root(stored, NODEPOOL_DEPENDENTS, generation=1, now=NOW + timedelta(hours=1))
    assert sorted(again, key=lambda row: row.type) == sorted(stored, key=lambda row: row.type)


def _stored(row: Condition) -> Condition:
    assert row.last_transition_time is not None
    return Condition(
        type=row.type,
        status=row.status,
        reason=row.reason,
        message=row.message,
        observed_generation=row.observed_generation,
        last_transition_time=row.last_transition_time.replace(microsecond=0),
    )
