"""What a claim asks for, read once: requests with their alternatives, and what holds between the devices of several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from kerf.model.kubernetes.devices import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    ExactRequest,
    ResourceClaim,
)
from kerf.model.kubernetes.objects import Quantities, Toleration

_encode = msgspec.msgpack.Encoder(order="deterministic").encode
#: Kubernetes gives no claim more.
MOST_RESULTS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One alternative of a request: `count` devices (or every one, at least one) that all expressions hold for.

    `name` is what the result is called: the request's, with an alternative's own name after a slash.
    """

    name: str
    expressions: tuple[str, ...]
    count: int
    every: bool
    tolerations: tuple[Toleration, ...]
    amounts: Quantities


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """The devices of these requests (of all, if none is named) have one value of an attribute, or each another."""

    attribute: str
    distinct: bool
    requests: frozenset[str]

    def concerns(self, name: str) -> bool:
        return not self.requests or name in self.requests or name.partition("/")[0] in self.requests


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A claim that has no devices yet. Each of its requests is a tuple of alternatives, the preferred one first.

    Claims of one `shape` ask for the same.
    """

    key: str
    shape: bytes
    requests: tuple[tuple[Choice, ...], ...]
    bounds: tuple[Bound, ...]


def read(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> Asked:
    """Raises ValueError, with words for a person, when the claim asks for what is not there or not supported."""
    devices = claim.spec.devices
    try:
        requests = tuple(_alternatives(request, classes) for request in devices.requests)
        return Asked(claim.key, bytes(_encode(devices)), requests, tuple(_bound(row) for row in devices.constraints))
    except ValueError as error:
        raise ValueError(f'resourceclaim "{claim.metadata.name}": {error}') from error


def _alternatives(request: DeviceRequest, classes: Mapping[str, DeviceClass]) -> tuple[Choice, ...]:
    if request.exactly is not None:
        return (_choice(request.name, request.exactly, classes),)
    if not request.first_available:
        raise ValueError(f"request {request.name} requests no known kind of device")
    return tuple(_choice(f"{request.name}/{sub.name}", sub, classes) for sub in request.first_available)


def _choice(name: str, exact: ExactRequest, classes: Mapping[str, DeviceClass]) -> Choice:
    found = classes.get(exact.device_class_name)
    if found is None:
        raise ValueError(f'request {name}: deviceclass "{exact.device_class_name}" not found')
    if exact.admin_access:
        raise ValueError(f"request {name}: adminAccess is not supported")
    if exact.allocation_mode not in ("", "ExactCount", "All"):
        raise ValueError(f"request {name}: allocation mode {exact.allocation_mode} is not supported")
    every = exact.allocation_mode == "All"
    count = exact.count or 1
    if count > MOST_RESULTS:
        raise ValueError(f"request {name}: no claim gets more than {MOST_RESULTS} devices")
    expressions = (*_expressions(found.spec.selectors), *_expressions(exact.selectors))
    amounts = exact.capacity.requests if exact.capacity is not None else {}
    return Choice(name, expressions, count, every, exact.tolerations, amounts)


def _expressions(selectors: tuple[DeviceSelector, ...]) -> tuple[str, ...]:
    if any(selector.cel is None for selector in selectors):
        raise ValueError("a selector is no CEL expression")
    return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)


def _bound(row: DeviceConstraint) -> Bound:
    attribute = row.match_attribute if row.match_attribute is not None else row.distinct_attribute
    if attribute is None:
        raise ValueError("a constraint is neither matchAttribute nor distinctAttribute")
    return Bound(attribute, row.match_attribute is None, frozenset(row.requests))
