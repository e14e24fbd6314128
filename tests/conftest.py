"""Laws never fail for being slow (machines are noisy), and `make test` tries the same examples each time.

`make long` searches anew: `--hypothesis-profile=search`. Every call of AWS is judged by the table of AWS's rules.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.aws_calls.plugin import AwsCalls

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(AwsCalls(), "aws-calls")
