"""What every object has: metadata, owner references, conditions, taints. And the one way to decode and encode."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from kerf_api.bounds import Seconds, bounded
from kerf_api.decoders import decoder_of

T = TypeVar("T")


class Value(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of all decoded values: immutable, camelCase on the wire, unknown fields ignored, defaults omitted."""


class OwnerReference(Value, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Value, frozen=True, kw_only=True):
    """Kubernetes ObjectMeta, only the fields that are read. `resource_version` is opaque but compares as an integer.

    `unreadable` is no field of Kubernetes: what of the object did not fit its type; such a part has its default here.
    """

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: Seconds | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()
    unreadable: str = ""

    @property
    def deleting(self) -> bool:
        return self.deletion_timestamp is not None


class Taint(Value, frozen=True, kw_only=True):
    key: str
    effect: str = ""
    value: str = ""
    time_added: datetime | None = None

    def matches(self, other: Taint) -> bool:
        """The same taint as Kubernetes sees it: key and effect."""
        return self.key == other.key and self.effect == other.effect

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Condition(Value, frozen=True, kw_only=True):
    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int = 0

    @property
    def text(self) -> str:
        """Reason and message, as a person reads them."""
        return ": ".join(filter(None, (self.reason, self.message)))


class Entry(Value, frozen=True, kw_only=True):
    """A requirement as a manifest writes it (`key`, `operator`, `values`, `minValues`)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    min_values: int | None = None


class NodeClassRef(Value, frozen=True, kw_only=True):
    group: str = ""
    kind: str = ""
    name: str = ""


def decode(kind: type[T], manifest: Mapping[str, Any]) -> T:
    """A manifest (from YAML or a parsed API answer) as a typed value, its times within bounds (`kerf_api.bounds`).

    Raises msgspec.ValidationError, naming the path, when the shape is wrong.
    """
    decoder_of(kind)  # works the type out
    return bounded(msgspec.convert(manifest, kind, strict=True), kind)


def encode(value: Value) -> dict[str, Any]:
    """A typed value as plain JSON-ready data (times as RFC 3339 text), defaults omitted."""
    data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return data
