"""A Snapshot with the facts of the region from which its instance types were computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kerf.model.aws.cloud import Region
from kerf.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Captured:
    """A Snapshot as it is saved.

    Attributes:
        snapshot: what `decide` sees. It may share its maps with the cluster's indexes.
        region: instance types, zones and prices; None until AWS has answered.
        software: the versions of Kerf and of the libraries that made it, by name.
        unknown: kinds and facts of a file that this version does not know.
        of_file: it has been read from a file, which lacks user data and annotations.
        names: `plain`, or `pseudonyms` for those of a file in their place.
        plans: digests of plans in the file, with those in the cluster.
        key: the fingerprint of the key of the file's digests; empty when it is not known.
    """

    snapshot: Snapshot
    region: Region | None = None
    software: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    names: str = "plain"
    of_file: bool = False
    plans: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
