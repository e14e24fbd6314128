"""What is known of EC2: instances (own launches and terminations included before Describe shows them), stock-outs,
and what failed fleet calls left.

All of it is memory; the tags of the instances and the annotations of the claims are the truth after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from kerf.ec2.errors import OUT_OF_STOCK, SUBNET_CODE, closed
from kerf.ec2.quotas import QuotaKey, Refusals, closed_by_quota, in_use, of_vcpus, quota_of
from kerf.ec2.refused_launches import following
from kerf.model.aws.cloud import SHOWN_AFTER, FleetError, FleetRequest, FleetResult, Instance, Region
from kerf.model.aws.instance_type import OfferingKey
from kerf.model.aws.interruptions import Interruption, InterruptionKind
from kerf.model.changes.indexes import InstanceIndex
from kerf.model.snapshot import LaunchFailure
from kerf_api import labels

#: One whose termination EC2 accepted, and that was not shown for so long after it, is gone.
ENDED_UNSEEN = timedelta(seconds=20)
FAILURES_KEPT = timedelta(minutes=30)
#: Offerings that a quota has closed are requested again after the termination of an instance, at most once in this
#: time.
REOPENED_AFTER = timedelta(seconds=30)
_GOING = "shutting-down"
_TAKEN_BACK = frozenset({InterruptionKind.SPOT_INTERRUPTED, InterruptionKind.CAPACITY_RESERVATION_INTERRUPTED})


def full_subnet(error: FleetError) -> str:
    """The subnet without an address left that an error is about, empty for any other error."""
    return error.subnet_id if error.code == SUBNET_CODE else ""


class _OfQuotas:
    """The offerings that quotas of vCPUs have closed, and when instances that they count were gone."""

    def __init__(self) -> None:
        self.closed: set[OfferingKey] = set()
        self._refusals = Refusals()
        #: By quota, when the latest instance was seen to be gone; and when offerings were last opened again.
        self._gone: dict[QuotaKey, datetime] = {}
        self._reopened: datetime | None = None

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much."""
        self._refusals = self._refusals.set_back(by)
        self._gone = {quota: at - by for quota, at in self._gone.items()}
        self._reopened = self._reopened - by if self._reopened is not None else None

    def refused(
        self, request: FleetRequest, result: FleetResult, region: Region, instances: Iterable[Instance], at: datetime
    ) -> None:
        """Take in the answer of a fleet call, with the instances after it."""
        self._refusals = self._refusals.after(request, result, region, instances, at)

    def ended(self, instances: Iterable[Instance], at: datetime) -> None:
        """These instances are gone: their quotas have vCPUs again."""
        for one in instances:
            self._gone[quota_of(one.instance_type, one.capacity_type)] = at

    def reopen(
        self, out_of_stock: dict[OfferingKey, datetime], instances: Callable[[], Iterable[Instance]], now: datetime
    ) -> None:
        """Open what a quota has closed before an instance that it counts was gone, as far as the freed vCPUs may be
        enough: no refusal was met with as few in use. This happens once in a while only."""
        if not self._gone or (self._reopened is not None and now - self._reopened < REOPENED_AFTER):
            return
        used = in_use(instances(), self._refusals.vcpus) if self.closed else {}
        for key in sorted(self.closed & out_of_stock.keys()):
            gone = self._gone.get(quota_of(key[0], key[2]))
            before = gone is not None and out_of_stock[key] - OUT_OF_STOCK <= gone
            if before and not self._refusals.excludes(key, used, now):
                del out_of_stock[key]
                self._reopened = now
        self._gone.clear()


class Fleet:
    """See the module. One thread uses it."""

    def __init__(self) -> None:
        self._described: dict[str, Instance] = {}
        #: Own launches by ID, with the instant of the answer; own terminations likewise.
        self._launched: dict[str, tuple[Instance, datetime]] = {}
        self._terminated: dict[str, datetime] = {}
        self._out_of_stock: dict[OfferingKey, datetime] = {}
        #: By launch group; and the first answer to a launch: failures of earlier processes are not known.
        self._failures: dict[str, LaunchFailure] = {}
        self._watched_since: datetime | None = None
        self._quotas = _OfQuotas()
        self._view: InstanceIndex | None = None
        self._busy: bool | None = None

    def set_back(self, by: timedelta) -> None:
        """The clock was set back by so much: times stay as long ago, or as far ahead, as they were."""
        self._launched = {id_: (instance, at - by) for id_, (instance, at) in self._launched.items()}
        self._terminated = {id_: at - by for id_, at in self._terminated.items()}
        self._out_of_stock = {key: until - by for key, until in self._out_of_stock.items()}
        self._failures = {
            group: replace(one, at=one.at - by, since=one.began - by) for group, one in self._failures.items()
        }
        self._watched_since = self._watched_since - by if self._watched_since is not None else None
        self._quotas.set_back(by)

    # --- instances ----------------------------------------------------------------------------------------------
    def described(
        self, instances: Iterable[Instance], at: datetime, kept: Callable[[Instance], bool] = lambda instance: False
    ) -> None:
        """Take in a complete Describe that was asked at `at`. What is as it was keeps its identity.

        Those that live and are to be `kept` are believed to do so although they are not shown.
        """
        before = self._described
        self._described = {i.id: known if (known := before.get(i.id)) == i else i for i in instances}
        self._described |= {id_: one for id_, one in before.items() if self._believed(one) and kept(one)}
        self._quotas.ended((one for id_, one in before.items() if id_ not in self._described), at)
        for id_, (_, launched) in list(self._launched.items()):
            if id_ in self._described or at - launched >= SHOWN_AFTER or self._ended_unseen(id_, at):
                del self._launched[id_]
        for id_, since in list(self._terminated.items()):
            told = self._described.get(id_)
            unseen = id_ in self._launched
            if (at >= since and not unseen and (told is None or not told.live)) or at - since >= SHOWN_AFTER:
                del self._terminated[id_]
        self._changed()

    def _believed(self, known: Instance) -> bool:
        """Whether an instance may run although Describe does not show it: no client has terminated it."""
        return known.id not in self._described and known.id not in self._terminated and known.live

    def _ended_unseen(self, id_: str, at: datetime) -> bool:
        """Whether it was ended so soon that Describe, which shows no terminated ones, will never show it."""
        since = self._terminated.get(id_)
        return since is not None and at - since >= ENDED_UNSEEN

    def launched(self, request: FleetRequest, result: FleetResult, at: datetime) -> None:
        """Take in the answer of a fleet call."""
        for instance in result.instances:
            self._launched[instance.id] = (instance, at)
        for error in result.errors:
            if error.capacity and error.instance_type and error.zone and not full_subnet(error):
                self.close(closed(request, error), at, of_quota=of_vcpus(error))
        if len(result.instances) < len(request.members):
            self.failed(request, result.errors, at, len(request.members) - len(result.instances))
        else:
            self._watched_since = self._watched_since or at
            self._failures.pop(request.group, None)
        self._changed()

    def terminated(self, instance_id: str, at: datetime, *, gone: bool = False) -> None:
        """An instance is being terminated; `gone` when EC2 does not know it any more."""
        if gone:
            self._quotas.ended([one] if (one := self.instances.get(instance_id)) is not None else (), at)
            self._described.pop(instance_id, None)
            self._launched.pop(instance_id, None)
        else:
            self._terminated[instance_id] = at
        self._changed()

    def tagged(self, instance_id: str, tags: Mapping[str, str]) -> None:
        """Own tags, until the next Describe."""
        known = self._described.get(instance_id)
        if known is not None:
            self._described[instance_id] = replace(known, tags={**known.tags, **tags})
        elif instance_id in self._launched:
            instance, at = self._launched[instance_id]
            self._launched[instance_id] = (replace(instance, tags={**instance.tags, **tags}), at)
        self._changed()

    @property
    def instances(self) -> InstanceIndex:
        """By ID, in order of ID; the very same while nothing changes."""
        if self._view is None:
            own = {id_: instance for id_, (instance, _) in self._launched.items()}
            every = {**own, **self._described}
            self._view = InstanceIndex.of({id_: self._as_told(instance) for id_, instance in every.items()})
        return self._view

    @property
    def busy(self) -> bool:
        """Whether an instance is on its way in or out, so that Describe is worth asking more often."""
        if self._busy is None:
            states = (instance.state for instance in self._described.values())
            self._busy = bool(self._launched or self._terminated) or any(state != "running" for state in states)
        return self._busy

    def _changed(self) -> None:
        """What was worked out of the instances holds no longer."""
        self._view = self._busy = None

    def _as_told(self, instance: Instance) -> Instance:
        if instance.id in self._terminated and instance.live:
            return replace(instance, state=_GOING)
        return instance

    # --- stock-outs and failures --------------------------------------------------------------------------------
    def interrupted(self, interruption: Interruption, at: datetime) -> None:
        """EC2 takes an instance on spot or in a reservation back: nothing to have there now."""
        for id_ in interruption.instance_ids if interruption.kind in _TAKEN_BACK else ():
            instance = self.instances.get(id_)
            if instance is not None:
                self._sold_out(instance.offering, at)

    def failed(self, request: FleetRequest, errors: Sequence[FleetError], at: datetime, missing: int = 1) -> None:
        """A fleet call gave less than was asked for: so many instances are `missing`."""
        before, pool = self._failures.get(request.group), request.tags.get(labels.TAG_NODEPOOL, "")
        attempts = 1 if before is None else before.attempts + 1
        self._watched_since = self._watched_since or at
        since, at_least = following(self._failures.values(), tuple(errors), at, at - self._watched_since)
        failure = LaunchFailure(tuple(errors), at, attempts, missing, pool, since, at_least)
        self._failures[request.group] = failure

    def out_of_stock(self, now: datetime) -> Mapping[OfferingKey, datetime]:
        """By offering, until when Kerf does not request it."""
        self._quotas.reopen(self._out_of_stock, self.instances.values, now)
        for key in [key for key, until in self._out_of_stock.items() if until <= now]:
            del self._out_of_stock[key]
        self._quotas.closed &= self._out_of_stock.keys()
        return self._out_of_stock

    def failures(self, now: datetime) -> Mapping[str, LaunchFailure]:
        """By launch group."""
        for group in [g for g, failure in self._failures.items() if now - failure.at > FAILURES_KEPT]:
            del self._failures[group]
        return self._failures

    def close(self, keys: Iterable[OfferingKey], at: datetime, *, of_quota: bool = False) -> None:
        """None of these can be had now; `of_quota`: because of a quota of vCPUs."""
        for key in keys:
            self._sold_out(key, at)
            if of_quota:
                self._quotas.closed.add(key)

    def over_quota(self, request: FleetRequest, result: FleetResult, region: Region, at: datetime) -> None:
        """Close what a quota of vCPUs excludes after a fleet call, whose answer is processed."""
        self.close(closed_by_quota(request, result, region), at, of_quota=True)
        self._quotas.refused(request, result, region, self.instances.values(), at)

    def _sold_out(self, key: OfferingKey, at: datetime) -> None:
        self._out_of_stock[key] = at + OUT_OF_STOCK
        self._quotas.closed.discard(key)
