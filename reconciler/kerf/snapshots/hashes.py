"""The hashes that cover names, user data and annotations: a file that changes these has other ones in their place.

So do the digests of plans (`kerf_api.v1.plan_digest`), by which changes are approved. `kerf plan` needs them as they
are in the cluster: the header of the file has those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kerf.disruption.candidates.approval import parts_of
from kerf.ec2.nodeclass.validation import identity
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.hashes import nodeclass_hash, nodepool_hash
from kerf_api.v1.nodepool import NodePool


def rewritten(before: NodePool | EC2NodeClass, after: NodePool | EC2NodeClass, ca_bundle: str) -> dict[str, str]:
    """The hashes of an object, and of an EC2NodeClass the identity of its dry run, to those of the object as written.

    Those that stay the same are left out.
    """
    pairs = zip(_of(before, ca_bundle), _of(after, ca_bundle), strict=True)
    return {one: other for one, other in pairs if one != other}


def plans(before: Iterable[tuple[NodePool, EC2NodeClass | None]], written: Callable[[Any], Any]) -> dict[str, str]:
    """The digests of the plans of NodePools and their parts, to those of the objects as `written` gives them."""
    found: dict[str, str] = {}
    for pool, node_class in before:
        one = parts_of(pool, node_class)
        other = parts_of(written(pool), written(node_class)) if one is not None else None
        if one is not None and other is not None:
            rows = (
                (one.digest, other.digest),
                (one.node_pool, other.node_pool),
                (one.node_class, other.node_class),
            )
            found |= {real: new for real, new in rows if real != new}
    return found


def _of(value: NodePool | EC2NodeClass, ca_bundle: str) -> tuple[str, ...]:
    """None of an object with a field that cannot be read: no node has such a hash."""
    try:
        if isinstance(value, EC2NodeClass):
            return nodeclass_hash(value, ca_bundle), identity(value)
        return (nodepool_hash(value),)
    except ValueError:
        return ()
