"""The cluster as the passes leave it: NodeClaims that they create, and objects with the patches that they write.

AWS is no part of it: the EC2NodeClass is ready from the beginning, and stays so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from benchmarks.clusters import NOW
from kerf.model import kinds
from kerf.model.cluster import Cluster
from kerf.model.plan import Action, CreateNodeClaim, PatchObject
from kerf.sandbox.api.manifests import merged
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import decode, encode

_READY: Final = {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]}


def node_class() -> EC2NodeClass:
    """The class of all NodePools."""
    return decode(EC2NodeClass, {"metadata": {"name": "default", "uid": "class"}, "status": _READY})


@dataclass
class Written:
    """The indexes, changed in place. `perform` deletes nothing: what a plan deletes is there again in the next pass."""

    cluster: Cluster = field(default_factory=Cluster)
    _created: int = 0

    def add(self, objects: Iterable[Any]) -> None:
        for one in objects:
            self.cluster.apply(kinds.BY_NAME[kinds.ref(one).kind], one)

    def perform(self, actions: Iterable[Action]) -> None:
        """Create NodeClaims and write patches, as the API server would."""
        for action in actions:
            if isinstance(action, CreateNodeClaim):
                meta = replace(action.claim.metadata, uid=f"claim-{self._created}", creation_timestamp=NOW)
                self._created += 1
                self.add([replace(action.claim, metadata=meta)])
            elif isinstance(action, PatchObject):
                old = self.cluster.get(action.ref)
                if old is not None and not isinstance(old, EC2NodeClass):
                    self.add([decode(type(old), merged(encode(old), action.patch))])
