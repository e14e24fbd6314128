"""Deletions that would empty the cluster are asked about: of a NodePool with nodes, and of the definitions themselves.

Who deletes a NodePool deletes its NodeClaims, and with them its nodes; who deletes a definition deletes all objects of
it. From Git that is one line that is gone. What a NodePool has is in its own status, so nothing need be remembered or
looked up here. It is refused until the object says that it is meant (`api/kerf_api/deletion.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kerf_api import labels
from kerf_api.deletion import ALL, FEW, allowance, how_to_allow
from kerf_api.lint.reading.reading import mapping, part

from .review import Review

_POOLS: Final = f"nodepools.{labels.GROUP}"
_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
#: By definition, what its deletion comes to.
GUARDED: Final[Mapping[str, str]] = {
    _POOLS: "deletes every NodePool, and with it all of its nodes are drained",
    f"nodeclaims.{labels.GROUP}": "deletes every NodeClaim, and all of their nodes are drained",
    f"ec2nodeclasses.{labels.AWS_GROUP}": "deletes every EC2NodeClass, and nothing can be launched any more",
}


def is_ours(review: Review) -> bool:
    return review.operation == "DELETE" and review.resource in (_POOLS, _DEFINITIONS) and not review.subresource


def objection(review: Review) -> str:
    """What speaks against it, and how to say that it is meant; empty when nothing does.

    A NodePool of another controller is that controller's business.
    """
    if review.foreign:
        return ""
    name = str(part(review.old, "metadata", "name") or review.name)
    notes = mapping(review.old, "metadata", "annotations")
    allowed = allowance({key: text for key, text in notes.items() if isinstance(text, str)})
    if review.resource == _DEFINITIONS:
        return "" if allowed or name not in GUARDED else _of_definition(name)
    nodes = part(review.old, "status", "nodes")
    count = nodes if isinstance(nodes, int) else 0
    return "" if count <= max(FEW, allowed) else _of_pool(name, count)


def _of_pool(name: str, nodes: int) -> str:
    return (
        f"NodePool {name} has {nodes} nodes, and its deletion drains all of them. If that is meant: "
        f"{how_to_allow('nodepool', name, nodes)} (or commit this annotation, and remove the NodePool when it is there)"
    )


def _of_definition(name: str) -> str:
    return (
        f"the deletion of CustomResourceDefinition {name} {GUARDED[name]}. If that is meant: "
        f"{how_to_allow('crd', name, ALL)}"
    )
