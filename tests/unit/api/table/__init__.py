"""What is accepted and what is refused, field by field: the facts of the v1 API as a table.

A row of ACCEPTED names a kind, a field and the values it may have. A row of REFUSED names in addition the rule that
refuses each of the values, and the place that is blamed when it is not the field itself. The layer of a rule is in its
ID: `KERF-SCHEMA-…` and IDs below 100 are what the API server refuses too, IDs of 100 and more are the controllers'.
"""

from __future__ import annotations

from typing import Final

from . import capacitybuffer, ec2nodeclass, nodeclaim, nodeoverlay, nodepool
from .rows import Row as Row

_KINDS: Final = (nodepool, nodeclaim, ec2nodeclass, nodeoverlay, capacitybuffer)
ACCEPTED: Final = tuple(row for kind in _KINDS for row in kind.ACCEPTED)
REFUSED: Final = tuple(row for kind in _KINDS for row in kind.REFUSED)
