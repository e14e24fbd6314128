"""The one control plane that all tests in this folder share, started when the first of them asks for it.

Building it may take longer than one test is allowed to: run `python -m tests.cluster build` once before.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.needed import needed

from .binaries import ControlPlaneUnavailable, find_binaries
from .charts import Helm
from .control_plane import ControlPlane


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
