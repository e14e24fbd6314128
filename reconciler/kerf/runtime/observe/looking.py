"""One look at a cluster and at AWS, for a command that only wants to know: lists and describes, and writes nothing.

It processes the same events as the controller does, so that the snapshot is the one that the controller would decide
from, but for what only its memory holds: what is out of stock, whom it nominated where, whom it leaves alone for a
while.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from typing import Protocol

from kerf.ec2.instance_types import catalogue
from kerf.ec2.pricing.prices import priced
from kerf.model import kinds
from kerf.model.aws.cloud import ClassFacts, ClusterFacts, Impairment, Region, ZonalShift
from kerf.model.kinds import Kind
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.ports import Clock, Forbidden, Lease, Listing, PortError
from kerf.runtime.inbox import ClusterRead, Examined, Listed, RegionRead, Resolved, ShiftsRead
from kerf.runtime.leadership.leases import LeaseName, leading_since
from kerf.runtime.state.state import State
from kerf.snapshots.captured import Captured
from kerf_api.v1.ec2nodeclass import EC2NodeClass


class Lists(Protocol):
    """Of Kube what a look needs."""

    def list(self, kind: Kind) -> Listing: ...


class Reads(Protocol):
    """Of Kube what reading a lease needs."""

    def get_lease(self, namespace: str, name: str) -> Lease | None: ...


class Describes(Protocol):
    """Of Cloud what a look needs."""

    def region(self) -> Region: ...

    def on_demand_prices(self) -> Mapping[str, int]: ...

    def spot_prices(self) -> Mapping[tuple[str, str], int]: ...

    def cluster(self) -> ClusterFacts: ...

    def impairments(self) -> Sequence[Impairment]: ...

    def zonal_shifts(self, cluster: ClusterFacts) -> Sequence[ZonalShift]: ...

    def resolve(self, node_class: EC2NodeClass, cluster: ClusterFacts) -> ClassFacts: ...


def region(cloud: Describes) -> Region:
    """With prices: those that cannot be read are estimated. Raises PortError when types cannot be read."""
    on_demand: Mapping[str, int] = {}
    spot: Mapping[tuple[str, str], int] = {}
    with suppress(PortError):
        on_demand = cloud.on_demand_prices()
    with suppress(PortError):
        spot = cloud.spot_prices()
    return priced(cloud.region(), on_demand, spot)


def look(kube: Lists, cloud: Describes, settings: Settings, clock: Clock) -> Snapshot:
    """The cluster as it is. Raises PortError when something cannot be read."""
    return capture(kube, cloud, settings, clock).snapshot


def capture(kube: Lists, cloud: Describes, settings: Settings, clock: Clock) -> Captured:
    """The same with the region's facts, as it is saved. Raises PortError when something cannot be read."""
    state = State(settings, build=catalogue.build, interpret=lambda message: None)
    now = clock.now()
    for kind, found in _listed(kube, settings):
        state.take(Listed(kind, found.items, found.resource_version, now), now)
    cluster = cloud.cluster()
    state.take(ClusterRead(cluster, now), now)
    state.take(RegionRead(region(cloud), now), now)
    with suppress(Forbidden):  # who looks need not be allowed all that the controller is
        state.take(Examined(cloud.impairments(), now), now)
    if settings.zonal_shift:
        with suppress(Forbidden):
            state.take(ShiftsRead(cloud.zonal_shifts(cluster), now), now)
    for node_class in state.cluster.objects(kinds.NODE_CLASS).values():
        if not node_class.metadata.unreadable:
            facts = cloud.resolve(node_class, cluster)
            state.take(Resolved(node_class.name, node_class.metadata.uid, facts, now), now)
    seen = captured(state, now)  # no plan is to serve these pods: their wait delays nothing
    return replace(seen, snapshot=replace(seen.snapshot, batch=None))


def _listed(kube: Lists, settings: Settings) -> Iterator[tuple[Kind, Listing]]:
    """Each kind with its objects. Raises Forbidden, at the end and with every permission that is missing."""
    missing: list[str] = []
    for kind in kinds.watched(settings):
        try:
            found = kube.list(kind)
        except Forbidden as error:
            if ": 401" in str(error):  # of credentials that are not valid the error has the details
                raise
            missing.append(kind.resource)
        else:
            yield kind, found
    if missing:
        raise Forbidden(f"needs permission to list {', '.join(missing)}")


def captured(state: State, now: datetime) -> Captured:
    """What a state contains, as it is saved: a copy that later events do not change. Only its thread may ask."""
    return Captured(state.snapshot(now).detached(), state.catalogues.region, software())


def software() -> dict[str, str]:
    """The versions of Kerf, of Python and of the libraries whose results depend on their version, by name."""
    libraries = {name: version(name) for name in ("kerf", "numpy", "highspy")}
    return {**libraries, "python": platform.python_version(), "machine": platform.machine()}


def stored_since(kube: Reads, names: Iterable[LeaseName]) -> datetime | None:
    """Since when Kerf leads by the newest of these leases; None if none of them that can be read says so."""
    found: list[datetime] = []
    for name in names:
        with suppress(PortError):
            lease = kube.get_lease(name.namespace, name.name)
            since = leading_since(lease) if lease is not None else None
            found += [since] if since is not None else []
    return max(found, default=None)
