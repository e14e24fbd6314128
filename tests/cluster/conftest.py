"""The one control plane that all tests in this folder share, started when the first of them asks for it.

Building it may take longer than one test is allowed to: run `python -m tests.cluster build` once before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needed import needed

from .binaries import ControlPlaneUnavailable, find_binaries
from .charts import Helm
from .control_plane import ControlPlane

FOLDER = Path(__file__).parent
#: Seconds that a test has at most. What it waits for has bounds of its own, which grow on a busy machine (`pressure`):
#: the test's own end must not come before theirs, which say what did not happen.
TIMEOUT = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(FOLDER) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT))


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A running control plane; without one the tests are skipped, except in CI, where that is a failure."""
    with _control_plane() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def own_control_plane() -> Iterator[ControlPlane]:
    """One that a file has for itself: on the shared one others have left definitions and objects."""
    with _control_plane() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster."""
    return Helm(
        needed(find_binaries, "control plane", ControlPlaneUnavailable) / "helm", tmp_path_factory.mktemp("helm")
    )


def _control_plane() -> ControlPlane:
    return needed(ControlPlane, "control plane", ControlPlaneUnavailable)
