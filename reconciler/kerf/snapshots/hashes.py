"""The hashes that cover names, user data and annotations: a file that changes these has other ones in their place."""

from __future__ import annotations

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


def _of(value: NodePool | EC2NodeClass, ca_bundle: str) -> tuple[str, ...]:
    """None of an object with a field that cannot be read: no node has such a hash."""
    try:
        if isinstance(value, EC2NodeClass):
            return nodeclass_hash(value, ca_bundle), identity(value)
        return (nodepool_hash(value),)
    except ValueError:
        return ()
