"""Disagreements that are open: each is a defect of Kerf or of its referee, and has an entry until it is fixed.

An entry is no exception. `make oracle` prints the number of worlds of each; an entry that no world needs must go.
"""

from __future__ import annotations

from tests.oracle.exceptions import Rule

PENDING: tuple[Rule, ...] = ()
