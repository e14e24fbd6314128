"""Laws never fail for being slow (machines are noisy), and `make test` tries the same examples each time.

`make long` searches anew: `--hypothesis-profile=search`. Every call of AWS is judged by the table of AWS's rules.
"""

from __future__ import annotations

import gc
from typing import Final

import pytest
from hypothesis import settings

from tests.aws_calls.plugin import AwsCalls

#: New objects before the collector looks at the young, and how often it then looks at older ones.
THRESHOLDS: Final = (20_000, 20, 50)

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(AwsCalls(), "aws-calls")


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there stays to the end: a collector that walks it again and again takes a seventh of the CPU."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
