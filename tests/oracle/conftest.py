"""The oracles that all tests of a process share, each built when the first of them asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.needed import needed
from tests.oracle.binaries import NEWEST, OLDEST, OracleUnavailable
from tests.oracle.client import Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """The oracle of the newest version; without one the tests are skipped, except in CI, where that is a failure."""
    with _started(NEWEST) as started:
        yield started


@pytest.fixture(scope="session")
def oldest_oracle() -> Iterator[Oracle]:
    """The oracle of the oldest version."""
    with _started(OLDEST) as started:
        yield started


def _started(version: str) -> Oracle:
    return needed(lambda: Oracle.started(version), "oracle", OracleUnavailable)
