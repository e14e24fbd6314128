"""NodePools and NodeClaims of other controllers: Kerf serves the EC2NodeClass and leaves every other node class alone.

An object is foreign when its nodeClassRef names another group or another kind. EKS Auto Mode, for example, has
NodePools of `karpenter.sh` with the group `eks.amazonaws.com` and the kind `NodeClass`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kerf_api import labels

_NAME: Final = re.compile(r"[A-Za-z0-9.-]{1,253}")
KIND: Final = "EC2NodeClass"
_PLACES: Final = {
    "NodePool": ("spec", "template", "spec", "nodeClassRef"),
    "NodeClaim": ("spec", "nodeClassRef"),
}


def names_foreign(group: object, kind: object) -> bool:
    """Return whether a nodeClassRef with these fields is another controller's.

    A field that is missing decides nothing, and neither does one that no API can have, such as a group with a version.
    """
    given = ((group, labels.AWS_GROUP), (kind, KIND))
    return any(isinstance(value, str) and value != own and _NAME.fullmatch(value) is not None for value, own in given)


def is_foreign(manifest: Mapping[str, Any]) -> bool:
    """Return whether a manifest is a NodePool or NodeClaim of another controller. Never raises, whatever is given."""
    kind, version = manifest.get("kind"), manifest.get("apiVersion")
    known = isinstance(kind, str) and isinstance(version, str) and version.partition("/")[0] == labels.GROUP
    return known and is_foreign_object(str(kind), manifest)


def is_foreign_object(kind: str, manifest: Mapping[str, Any]) -> bool:
    """Return the same for an object that is known to be of a kind of group `karpenter.sh`."""
    part: object = manifest
    for step in _PLACES.get(kind, ()):
        part = part.get(step) if isinstance(part, Mapping) else None
    return kind in _PLACES and isinstance(part, Mapping) and names_foreign(part.get("group"), part.get("kind"))


def own_pool(of_node: Mapping[str, str]) -> str:
    """Return the NodePool of a Node by its labels; empty for a Node without one, and for one of another controller.

    Each controller labels its Nodes with `<group>/<kind in lower case>: <name>` of their node class.
    """
    pool = of_node.get(labels.NODEPOOL, "")
    if not pool or labels.NODECLASS in of_node or not any(key.endswith("nodeclass") for key in of_node):
        return pool
    return ""
