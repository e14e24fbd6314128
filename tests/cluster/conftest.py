"""The one control plane that all tests in this folder share, started when the first of them asks for it.

Building it may take longer than one test is allowed to: run `python -m tests.cluster build` once before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .binaries import ControlPlaneUnavailable
from .control_plane import ControlPlane


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A running control plane; without one the tests are skipped, except in CI, where that is a failure."""
    try:
        cluster = ControlPlane()
    except ControlPlaneUnavailable as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no control plane: {reason}", pytrace=False)
        pytest.skip(f"no control plane: {reason}")
    with cluster:
        yield cluster
