"""Programs that not every machine can have: tests that need one are skipped there, except in CI, where they fail."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")


def needed(find: Callable[[], T], name: str, missing: type[Exception]) -> T:
    """Return what `find` returns. When it raises `missing`, whose text is the reason, skip the test, or fail in CI."""
    try:
        return find()
    except missing as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no {name}: {reason}", pytrace=False)
        pytest.skip(f"no {name}: {reason}")
