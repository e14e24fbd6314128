"""Instants as our own annotations hold them. A person may have edited one: a time without a zone is not understood."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

Instant = Annotated[datetime, msgspec.Meta(tz=True)]
