"""Laws never fail for being slow (machines are noisy), and `make test` tries the same examples each time.

`make long` searches anew: `--hypothesis-profile=search`.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("repeatable")
