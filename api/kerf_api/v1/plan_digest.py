"""The digest of a plan: the specs and images that new nodes of a NodePool are made of, as a short text.

`kerf plan` computes it from manifests, the controller from live objects, and both must agree: so it covers the fields
of the API only, with defaults left out and lists in any order. Fields of the NodePool that replace no node by
themselves are left out: limits, weight, replicas and budgets. A new version of Kerf computes the same
digest for the same objects.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import NODEFAULT
from msgspec.structs import fields

from kerf_api.approval import DIGITS
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import Value
from kerf_api.v1.nodepool import NodePool

#: It changes only together with the digests of all NodePools, which then wait for approval again.
_VERSION: Final = "1"
#: Fields of a NodePool's spec that replace no node by themselves.
_LEFT_OUT: Final = frozenset({"limits", "weight", "replicas"})
#: The order of lists in it may matter to the kubelet, such as that of clusterDNS.
_IN_ORDER: Final = "kubelet"


class Parts(Value, frozen=True, kw_only=True):
    """The digests of a NodePool's spec, of its EC2NodeClass's spec, and of the images that the class selects."""

    node_pool: str
    node_class: str
    images: str

    @property
    def digest(self) -> str:
        """The digest of the plan."""
        return _hashed([_VERSION, self.node_pool, self.node_class, self.images])

    def changed_since(self, other: Parts) -> tuple[str, ...]:
        """The parts that differ, in words."""
        pairs = (
            ("spec of the NodePool", self.node_pool, other.node_pool),
            ("spec of the EC2NodeClass", self.node_class, other.node_class),
            ("images", self.images, other.images),
        )
        return tuple(name for name, one, two in pairs if one != two)


def of_pool(pool: NodePool) -> str:
    """The digest of a NodePool's spec."""
    spec = {key: value for key, value in _plain(pool.spec).items() if key not in _LEFT_OUT}
    disruption = {key: value for key, value in spec.get("disruption", {}).items() if key != "budgets"}
    return _hashed({**spec, "disruption": disruption})


def of_class(node_class: EC2NodeClass) -> str:
    """The digest of an EC2NodeClass's spec."""
    return _hashed(_plain(node_class.spec))


def of_images(ids: Iterable[str]) -> str:
    """The digest of images, by their IDs."""
    return _hashed(sorted(set(ids)))


def _hashed(value: Any) -> str:
    return hashlib.sha256(_text(value).encode()).hexdigest()[:DIGITS]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    """As data for JSON without defaults, be they written or not, and with lists in one order where it means nothing."""
    if isinstance(value, Value):
        return dict(_written(value))
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return sorted(map(_plain, value), key=_text) if isinstance(value, list | tuple) else value


def _written(value: Value) -> Iterator[tuple[str, Any]]:
    """The fields that differ from their defaults, by their names in the API."""
    for field in fields(value):
        found = getattr(value, field.name)
        unset = field.default_factory() if field.default_factory is not NODEFAULT else field.default
        if found != unset:
            yield field.encode_name, found if field.encode_name == _IN_ORDER else _plain(found)
