"""Kerf's mark on a NodeClaim says that Kerf itself wrote the launch group and the launch request that stand there.

A decision sees only whether a mark is valid, never the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kerf_api.v1.nodeclaim import NodeClaim


@dataclass(frozen=True, slots=True)
class LaunchMark:
    """Whether the mark covers the launch group, and whether it covers the request as it stands there.

    `doubted_since`: from when on no other process can have launched for a group that no mark covers; None for others.
    """

    group: bool = False
    request: bool = False
    doubted_since: datetime | None = None


#: A NodeClaim of which nothing is known yet.
UNKNOWN_MARK = LaunchMark()


@dataclass(frozen=True, slots=True)
class MarkedLaunch:
    """The facts that a mark covers beside the cluster's name. `request` is the text of the annotation."""

    claim_uid: str
    group: str
    request: str

    @classmethod
    def of(cls, claim: NodeClaim, group: str, request: str) -> MarkedLaunch:
        return cls(claim.metadata.uid, group, request)
