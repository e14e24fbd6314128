"""The types of a scenario file: a world, workloads over time, weather, assertions (docs/simulate.md).

Names in the file are camelCase. A duration is text such as `1h30m`; times (`at`) count from the start.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

#: The longest scenario.
LONGEST: Final = timedelta(days=31)
Count = Annotated[int, Meta(ge=0, le=100_000)]
Share = Annotated[float, Meta(ge=0, le=1)]
Factor = Annotated[float, Meta(ge=0.001, le=1000)]
#: Also a bound of `.inf`, which YAML can write.
Money = Annotated[float, Meta(ge=0, le=1_000_000_000)]
Text = Annotated[str, Meta(min_length=1, max_length=253)]
CapacityType = Literal["on-demand", "spot"]
Manifest = dict[str, Any]


class Span:
    """A duration of a scenario file."""

    __slots__ = ("value",)

    def __init__(self, value: timedelta) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return shortest(self.value)


def shortest(value: timedelta) -> str:
    """A duration without its units of zero: `1h30m`, `2m`, `0s`."""
    seconds = int(value.total_seconds())
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


class Part(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of a scenario file."""


# --- the world ----------------------------------------------------------------------------------------------------
class NodeTimes(Part, frozen=True, kw_only=True):
    """The behaviour of new instances and nodes; an absent field keeps its value.

    `boot` is the time from the running instance to its registered node, `ready` from there to the Ready node, and
    `pod_start` from the binding of a pod to its running containers. The shares are those of new instances that never
    register, and of new nodes that never become Ready.
    """

    boot: Span | None = None
    ready: Span | None = None
    pod_start: Span | None = None
    unregistered_share: Share | None = None
    unready_share: Share | None = None
    spot_interruptions_per_hour: Money | None = None
    out_of_stock_share: Share | None = None


class Setup(Part, frozen=True, kw_only=True):
    """The cluster and the account at the start.

    `manifests` are files and folders, relative to the scenario; `objects` are manifests in place. `snapshot` is a file
    of `kerf snapshot` whose cluster the world copies. `settings` are variables of `kerf run`.
    """

    manifests: tuple[Text, ...] = ()
    objects: tuple[Manifest, ...] = ()
    snapshot: str = ""
    zones: Annotated[tuple[Text, ...], Meta(max_length=8)] = ()
    instance_types: tuple[Text, ...] = ()
    settings: dict[str, str] = {}
    nodes: NodeTimes = NodeTimes()


# --- the workload -------------------------------------------------------------------------------------------------
class Replicas(Part, frozen=True, kw_only=True):
    """A change of the number of replicas."""

    at: Span
    replicas: Count


class Workload(Part, frozen=True, kw_only=True):
    """A Deployment. `pod` is merged into the spec of its pod template, `annotations` are those of its pods.

    `cpu` and `memory` are requests of the first container; without `pod.containers` they default to 500m and 512Mi.
    `replicas_file` is a CSV file with the columns `time` and `replicas`.
    """

    name: Text
    namespace: Text = "default"
    replicas: Count = 1
    over_time: tuple[Replicas, ...] = ()
    replicas_file: str = ""
    cpu: str | int | float | None = None
    memory: str | int | None = None
    pod: dict[str, Any] = {}
    annotations: dict[str, str] = {}
    pod_disruption_budget: dict[str, Any] = {}


class Step(Part, frozen=True, kw_only=True):
    """An action of a user at a time.

    `apply` are files and folders, `objects` manifests in place. `delete` lists `KIND/NAME` or `KIND/NAMESPACE/NAME`,
    and `scale` the replicas of Deployments by `NAME` or `NAMESPACE/NAME`.
    """

    at: Span
    apply: tuple[Text, ...] = ()
    objects: tuple[Manifest, ...] = ()
    delete: tuple[Text, ...] = ()
    scale: dict[str, Count] = {}


# --- the weather --------------------------------------------------------------------------------------------------
class Offerings(Part, frozen=True, kw_only=True):
    """A selection of offerings; an empty list selects all."""

    instance_types: tuple[Text, ...] = ()
    zones: tuple[Text, ...] = ()
    capacity_types: tuple[CapacityType, ...] = ()


class StockOut(Offerings, frozen=True, kw_only=True):
    """Offerings without capacity for a time."""

    for_: Span = msgspec.field(name="for")


class Price(Offerings, frozen=True, kw_only=True):
    """Prices of offerings are multiplied by `factor`, also for running instances."""

    factor: Factor


class Machines(Part, frozen=True, kw_only=True):
    """A selection of running instances: all, or `count` of them by launch time."""

    zone: str = ""
    instance_type: str = ""
    node_pool: str = ""
    count: Annotated[int, Meta(ge=1)] | None = None


class ZoneLoss(Part, frozen=True, kw_only=True):
    """All instances of a zone fail, and no instance can be launched in the zone for a time."""

    zone: Text
    for_: Span = msgspec.field(name="for")


class Quota(Part, frozen=True, kw_only=True):
    """The most vCPUs of running instances of a capacity type in the account."""

    capacity_type: CapacityType
    vcpus: Count


class Throttle(Part, frozen=True, kw_only=True):
    """Requests are refused for a time: of `aws` all, or those of `calls`; or all requests to the API server."""

    api: Literal["aws", "kubernetes"] = "aws"
    calls: tuple[Literal["CreateFleet", "DescribeInstances", "TerminateInstances"], ...] = ()
    for_: Span = msgspec.field(name="for")


class Weather(Part, frozen=True, kw_only=True):
    """An event of AWS or of nodes at a time."""

    at: Span
    spot_interruption: Machines | None = None
    instance_failure: Machines | None = None
    node_not_ready: Machines | None = None
    zone_loss: ZoneLoss | None = None
    stock_out: StockOut | None = None
    price: Price | None = None
    quota: Quota | None = None
    throttle: Throttle | None = None
    nodes: NodeTimes | None = None


# --- assertions ---------------------------------------------------------------------------------------------------
class RunWithin(Part, frozen=True, kw_only=True):
    """Every pod (of a workload) runs within this time of its creation."""

    duration: Span
    workload: str = ""


class Cost(Part, frozen=True, kw_only=True):
    """The price of all instances in US dollars: the sum over the time, or per hour at any time."""

    at_most: Money
    per_hour: bool = False


class Evictions(Part, frozen=True, kw_only=True):
    """The number of evictions by the controller (of pods of a workload)."""

    at_most: Count = 0
    workload: str = ""


class Disruptions(Part, frozen=True, kw_only=True):
    """The number of nodes (of a NodePool) whose deletion starts within any hour. `reasons` are those counted; all
    without them."""

    at_most: Count
    node_pool: str = ""
    reasons: tuple[Text, ...] = ()


class RunningPods(Part, frozen=True, kw_only=True):
    """The number of running pods of a workload, at any time after its first `at_least` pods run."""

    workload: Text
    at_least: Annotated[int, Meta(ge=1, le=100_000)]


class ZonesShort(Part, frozen=True, kw_only=True):
    """The number of zones without a running pod of a workload, at any time, of the zones that had one."""

    workload: Text
    at_most: Count = 1


class NodesAtEnd(Part, frozen=True, kw_only=True):
    """The number of nodes (of a NodePool) at the end, all or only those that have drifted."""

    at_most: Count
    node_pool: str = ""
    drifted: bool = False


class Assertion(Part, frozen=True, kw_only=True):
    """One of the fields."""

    pods_run_within: RunWithin | None = None
    cost: Cost | None = None
    evictions: Evictions | None = None
    disruptions_per_hour: Disruptions | None = None
    running_pods: RunningPods | None = None
    zones_short: ZonesShort | None = None
    nodes_at_end: NodesAtEnd | None = None


class Scenario(Part, frozen=True, kw_only=True):
    """A scenario file. Assertions apply from `warm_up` on; `duration` includes the warm-up."""

    name: Text
    duration: Span
    world: Setup
    assertions: Annotated[tuple[Assertion, ...], Meta(min_length=1)]
    description: str = ""
    warm_up: Span | None = None
    seed: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0
    workloads: tuple[Workload, ...] = ()
    timeline: tuple[Step, ...] = ()
    weather: tuple[Weather, ...] = ()

    @property
    def warmed(self) -> timedelta:
        """The length of the warm-up."""
        return timedelta(0) if self.warm_up is None else self.warm_up.value
