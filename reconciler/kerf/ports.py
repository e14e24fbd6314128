"""The ports: everything the reconciler asks of the outside world, as Protocols, and the errors that may come back.

Adapters translate foreign errors by what the caller must do next. A request that timed out or met a 5xx may or may
not have taken effect (`Unavailable`): the next tick looks and decides again, so nothing is retried in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from kerf.model.aws.cloud import (
    ClassFacts,
    ClusterFacts,
    FleetRequest,
    FleetResult,
    Impairment,
    Instance,
    LaunchTemplate,
    Region,
    ZonalShift,
)
from kerf.model.aws.interruptions import Message
from kerf.model.aws.inventory import Resource
from kerf.model.kinds import Kind, Ref
from kerf_api.v1.ec2nodeclass import EC2NodeClass


# --- errors -----------------------------------------------------------------------------------------------------
class PortError(Exception):
    """Base of what a port may raise. Its text names the call and the answer.

    `details` are fields of their own wherever the error is logged.
    """

    details: Mapping[str, str] = {}


class AlreadyGone(PortError):
    """The object or instance is not there (404): what was to be ended has ended."""


class AlreadyExists(PortError):
    """An object of this name is there already: an earlier try took effect."""


class Conflict(PortError):
    """The object (or its UID) changed since it was read: look again."""


class WorldChanged(PortError):
    """A last look before an action that destroys found something new: decide again."""


class NotLeading(PortError):
    """Between two requests of one action this process ceased to lead: the rest is for the new leader."""


class Expired(PortError):
    """The watch's resource version is too old (410): list again."""


class Disconnected(PortError):
    """The watch ended or was cut: watch again from the last version seen."""


class EvictionBlocked(PortError):
    """A PodDisruptionBudget does not allow the eviction now (429)."""


class SeveralBudgets(EvictionBlocked):
    """More than one PodDisruptionBudget selects the pod, which the Eviction API does not support (500)."""


class Throttled(PortError):
    """Too many requests (429 and its AWS kin): later. `retry_after_seconds` is what the server asked for, or 0."""

    def __init__(self, text: str, retry_after_seconds: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after_seconds = retry_after_seconds


class Forbidden(PortError):
    """We lack a permission (401, 403): a person must act. Never read as "nothing is there"."""


class Invalid(PortError):
    """The request itself is wrong (400, 422): repeating it cannot help."""


class RoleNotFound(Invalid):
    """IAM has no role of this name: an instance profile cannot carry it."""


class Unavailable(PortError):
    """Time-out, connection lost or 5xx: it may have taken effect."""


class TemplateMissing(PortError):
    """A launch template was deleted behind our back: make it again."""


class IdempotencyMismatch(PortError):
    """The client token was used with another request: this group is spent."""


# --- Kubernetes -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Listing:
    """A complete list (all pages) as of `resource_version`; items are decoded values of the kind's type."""

    items: tuple[Any, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Change:
    """One watch event. `type` is ADDED, MODIFIED, DELETED or BOOKMARK (then `value` is None)."""

    type: str
    value: Any | None
    resource_version: str


class Watch(Protocol):
    """An open watch. One thread reads it."""

    def read(self, timeout_seconds: float) -> Sequence[Change]:
        """The changes that have arrived, waiting for the first one up to the time-out; empty when none came.

        Raises Expired, Disconnected, Forbidden, Unavailable.
        """
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Lease:
    """A coordination.k8s.io/v1 Lease; `resource_version` guards the next write ("" to create it).

    `uid` is the server's word: writes leave it out. A write replaces all annotations.
    """

    holder: str
    acquired: datetime | None = None
    renewed: datetime | None = None
    duration_seconds: int = 15
    transitions: int = 0
    resource_version: str = ""
    uid: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


class Kube(Protocol):
    """The Kubernetes API. Every request has a time-out. Writes return the object as the server now has it."""

    def list(self, kind: Kind, *, namespace: str = "", field_selector: str = "", label_selector: str = "") -> Listing:
        """All objects of a kind, read in pages. Raises Forbidden, Throttled, Unavailable."""
        ...

    def watch(self, kind: Kind, resource_version: str) -> Watch: ...

    def get(self, ref: Ref) -> Any:
        """One object, read from the server. Raises AlreadyGone."""
        ...

    def create(self, kind: Kind, manifest: Mapping[str, Any]) -> Any:
        """Raises AlreadyExists, Invalid, Forbidden, Throttled, Unavailable."""
        ...

    def patch(self, ref: Ref, patch: Mapping[str, Any], *, subresource: str = "", resource_version: str = "") -> Any:
        """A JSON merge patch; with a resource version it is refused when the object has changed (Conflict).

        Raises AlreadyGone, Conflict, Invalid, Forbidden, Throttled, Unavailable.
        """
        ...

    def delete(self, ref: Ref, *, uid: str = "", grace_seconds: int | None = None) -> None:
        """Raises AlreadyGone, Conflict (another UID), Forbidden, Throttled, Unavailable."""
        ...

    def evict(self, ref: Ref, *, uid: str = "") -> None:
        """POST to the pod's eviction subresource. Raises EvictionBlocked, AlreadyGone, Conflict, Unavailable."""
        ...

    def emit(
        self, ref: Ref, uid: str, type_: str, reason: str, message: str, *, annotations: Mapping[str, str] | None = None
    ) -> None:
        """Write an event about an object (core/v1 Event, source component `karpenter`)."""
        ...

    def get_lease(self, namespace: str, name: str) -> Lease | None: ...

    def put_lease(self, namespace: str, name: str, lease: Lease) -> Lease:
        """Create or replace. Raises Conflict when another wrote it since."""
        ...


# --- AWS --------------------------------------------------------------------------------------------------------
class Cloud(Protocol):
    """EC2 and its neighbours. Every request has a time-out; errors as above."""

    def region(self) -> Region:
        """Types and where they are offered, for the whole region. Slow; the runtime refreshes it rarely."""
        ...

    def on_demand_prices(self) -> Mapping[str, int]:
        """In millionths of the region's currency per hour, by type; empty where there is no price list to ask."""
        ...

    def spot_prices(self) -> Mapping[tuple[str, str], int]:
        """The same by type and zone, now."""
        ...

    def cluster(self) -> ClusterFacts:
        """The cluster's endpoint, version and addresses, for user data."""
        ...

    def resolve(self, node_class: EC2NodeClass, cluster: ClusterFacts) -> ClassFacts:
        """What the selectors of a node class match now. Selector trouble is in `problems`, not an exception."""
        ...

    def instances(self) -> Sequence[Instance]:
        """Every instance of this cluster that is not terminated, all pages."""
        ...

    def impairments(self, of: Sequence[str] | None = None) -> Sequence[Impairment]:
        """All impairments of these instances (None: all of the account and region), all pages; sorted.

        It may return others too; an instance that is gone has nothing, and delays no other.
        """
        ...

    def zonal_shifts(self, cluster: ClusterFacts) -> Sequence[ZonalShift]:
        """The zones that traffic of the cluster is shifted away from; sorted. Those whose time is over may be there.

        Raises AlreadyGone when the cluster takes no part in zonal shifts, Invalid when it is none of EKS.
        """
        ...

    def create_fleet(self, request: FleetRequest, may_act: Callable[[], bool] = lambda: True) -> FleetResult:
        """Ensure the templates, then one CreateFleet of type instant with the group as client token.

        Templates may take long: `may_act` is asked again before the CreateFleet. Errors of single overrides are in
        the result. Raises NotLeading, TemplateMissing, IdempotencyMismatch, Forbidden, Invalid, Throttled, Unavailable.
        """
        ...

    def ensure_template(self, template: LaunchTemplate) -> None:
        """Make one, if it is not there. Raises Forbidden, Invalid, Throttled, Unavailable."""
        ...

    def dry_run(self, request: FleetRequest) -> tuple[str, str] | None:
        """Whether EC2 would let us launch by this request, of one template, which is not kept; nothing is launched.

        Reason and message of what speaks against it (`kerf.ec2.nodeclass.validation`), None when nothing does. Raises
        what says nothing about that: Forbidden (no credentials), Throttled, Unavailable, TemplateMissing.
        """
        ...

    def terminate(self, instance_id: str) -> None:
        """Raises AlreadyGone, Forbidden, Throttled, Unavailable."""
        ...

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        """Raises AlreadyGone, Forbidden, Throttled, Unavailable."""
        ...

    def ensure_instance_profile(self, name: str, role: str, path: str, tags: Mapping[str, str]) -> None: ...

    def delete_class_resources(self, class_name: str, profile_path: str) -> None:
        """Delete the class's launch templates, and the instance profiles under `profile_path` when it is set."""
        ...

    def launch_templates(self) -> Sequence[Resource]:
        """Every launch template that was made for a node pool of this cluster, all pages; by name."""
        ...

    def instance_profiles(self) -> Sequence[Resource]:
        """Every instance profile that was made for a node class of this cluster, all pages; by name."""
        ...

    def delete_resource(self, resource: Resource) -> None:
        """Delete one of these. Raises AlreadyGone, Forbidden, Throttled, Unavailable."""
        ...

    def receive(self) -> Sequence[Message]:
        """Messages of the interruption queue (long polling); empty when no queue is set."""
        ...

    def delete_message(self, message: Message) -> None: ...


# --- time -------------------------------------------------------------------------------------------------------
class Clock(Protocol):
    """The only source of time outside the sandbox's own world."""

    def now(self) -> datetime:
        """The time of day, UTC, aware. It may be set back."""
        ...

    def monotonic(self) -> float:
        """Seconds since some instant, for deadlines: it never goes back, and no correction of the time moves it."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after so long at least; at once for nothing or less."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """The outside world of one controller."""

    kube: Kube
    cloud: Cloud
    clock: Clock
