"""What the controller knows; events go in, a Snapshot comes out in constant time. One thread owns it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import singledispatchmethod
from types import MappingProxyType
from typing import Any

import msgspec

from kerf.model import kinds
from kerf.model.aws.accounts import NO_ACCOUNTS
from kerf.model.aws.interruptions import Interruption, Message
from kerf.model.cluster import Cluster
from kerf.model.ends import HELD
from kerf.model.instants import ALWAYS
from kerf.model.kinds import Kind, Ref
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node, Pod
from kerf.model.plan import Action, Plan, Reason, Source
from kerf.model.settings import Settings
from kerf.model.snapshot import Proposal, Snapshot
from kerf.runtime.inbox import (
    Changed,
    ClusterRead,
    Described,
    Examined,
    Fresh,
    Inventoried,
    Listed,
    News,
    Polled,
    PricesRead,
    Proposed,
    Received,
    RegionRead,
    Removed,
    Reported,
    Resolved,
    ShiftsRead,
    VersionNoted,
    Withheld,
)
from kerf.runtime.secrets.launch_keys import LaunchKeys
from kerf.runtime.state.backoff import ACTION_STEPS, Backoff
from kerf.runtime.state.batching import BatchWindow
from kerf.runtime.state.catalogues import Build, Catalogues
from kerf.runtime.state.changes import Changes
from kerf.runtime.state.evictions import Evictions
from kerf.runtime.state.failures import Failures
from kerf.runtime.state.fleet import Fleet
from kerf.runtime.state.freshness import Freshness
from kerf.runtime.state.impairments import Impairments
from kerf.runtime.state.interruptions import Interruptions
from kerf.runtime.state.inventories import Inventories
from kerf.runtime.state.marks import Marks
from kerf.runtime.state.node_changes import NodeChanges
from kerf.runtime.state.notices import Notices, ObjectChanged
from kerf.runtime.state.noticing import grace_of, makes_room
from kerf.runtime.state.promises import Promises
from kerf.runtime.state.shifts import ZonalShifts, by_name, lies_there
from kerf.runtime.state.versions import KnownCluster
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import ObjectMeta
from kerf_api.v1.nodeclaim import NodeClaim

PROPOSALS_KEPT = timedelta(minutes=2)
#: After its batch has closed a pod has been looked at by then.
LOOKED_AT_WITHIN = timedelta(seconds=10)


class State:
    """See the module. `interpret` reads a message of the interruption queue; `build` makes a catalogue.

    `keys` check launch marks. What is noticed while events are processed, or a snapshot is made, is in `notices`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        build: Build,
        interpret: Callable[[Message], Interruption | None],
        keys: LaunchKeys | None = None,
    ) -> None:
        self.settings, self.notices = settings, Notices()
        self.cluster, self.fleet, self.batch = Cluster(), Fleet(), BatchWindow()
        self.catalogues = Catalogues(settings, build, self.notices)
        self.inventories, self._node_changes, self.known_cluster = Inventories(), NodeChanges(), KnownCluster()
        self.marks = Marks(keys or LaunchKeys.of_the_process(settings.cluster_name))
        self.evictions, self.actions, self.freshness = Evictions(), Backoff(ACTION_STEPS), Freshness()
        self.proposals, self.failures = tuple[Proposal, ...](), Failures()
        self.kept: Mapping[str, Reason] = {}
        #: Actions that were under way when the latest events were not in.
        self.under_way: tuple[Action, ...] = ()
        self.changes = Changes()
        self._watched = kinds.watched(settings)
        self.leading_since: Callable[[], datetime | None] = lambda: ALWAYS  # set by a process that may give way
        self._listed, self._shifts = set[str](), ZonalShifts()
        self._impairments = Impairments(self.notices)
        self.interruptions = Interruptions(interpret, self.notices, self.cluster.claims_by_instance)
        self.promises, self._accounts = Promises(), NO_ACCOUNTS
        self._now, self._busy = datetime.min.replace(tzinfo=UTC), set[str]()

    @property
    def synced(self) -> bool:
        """Whether every watched kind has been listed once; before that nothing may be decided."""
        return not self.missing()

    def missing(self) -> list[str]:
        """The kinds that have not been listed yet."""
        return [kind.name for kind in self._watched if kind.name not in self._listed]

    @property
    def busy(self) -> bool:
        """Whether a claim or an instance is on its way in or out, so that EC2 is worth asking more often."""
        return bool(self._busy) or self.fleet.busy

    def fresh(self, sources: frozenset[Source], now: datetime) -> bool:
        """Whether these sources are recent enough for an action that destroys. Any thread may ask."""
        return self.freshness.within(sources, self.settings.stale_after, now)

    def doubt(self, kind: Kind) -> None:
        """An event of this kind could not be processed: nothing is destroyed that rests on it until the process
        ends."""
        self.freshness.doubt(kind)

    # --- events -------------------------------------------------------------------------------------------------
    def take(self, news: News, now: datetime) -> None:
        """Process one event of an observer. (What the executor did comes through `results.absorb`.)"""
        self._take(news, now)

    def notice(self, now: datetime) -> None:
        """Keep everything that lasts for some time as far from now as it was, when the clock was set back."""
        back, self._now = max(self._now, now) - now, now
        if back <= timedelta(0):
            return
        short = (self.batch, self.evictions, self.actions, self.failures, self.fleet, self.promises, self.marks)
        for kept in (*short, self.catalogues, self.inventories, self._node_changes, self.interruptions):
            kept.set_back(back)
        self.proposals = ()

    @singledispatchmethod
    def _take(self, news: Any, now: datetime) -> None:
        raise TypeError(f"not a watch event: {news!r}")

    @_take.register
    def _(self, news: Listed, now: datetime) -> None:
        for old, new in self.cluster.replace_all(news.kind, news.values, news.resource_version):
            self._noticed(news.kind, old, new, now)
        self._listed.add(news.kind.name)
        self.freshness.complete(news.kind.name, news.at, now)

    @_take.register
    def _(self, news: Changed, now: datetime) -> None:
        self.put(news.kind, news.value, now)

    @_take.register
    def _(self, news: Removed, now: datetime) -> None:
        self.drop(Ref(news.kind.name, news.namespace, news.name), now, news.uid)

    @_take.register
    def _(self, news: Fresh, now: datetime) -> None:
        self.freshness.complete(news.kind.name, news.at, now)

    @_take.register
    def _(self, news: Withheld, now: datetime) -> None:
        self.freshness.withheld(news.kind)

    @_take.register
    def _(self, news: Described, now: datetime) -> None:
        shifted = self._shifted(now)
        self.fleet.described(news.instances, min(news.at, now), lambda instance: lies_there(instance, shifted))
        self.freshness.complete(Source.INSTANCES.value, news.at, now)

    @_take.register
    def _(self, news: Examined, now: datetime) -> None:
        self._impairments.examined(news.impairments, self.cluster.claims_by_instance, news.at)

    @_take.register
    def _(self, news: ShiftsRead, now: datetime) -> None:
        self._shifts.read(news.shifts, news.at)
        self.freshness.complete(Source.ZONAL_SHIFTS.value, news.at, now)

    @_take.register
    def _(self, news: Inventoried, now: datetime) -> None:
        self.inventories.listed(news.kind, news.resources, news.at)

    @_take.register
    def _(self, news: Resolved, now: datetime) -> None:
        current = self.known_cluster.agrees(news.kubernetes_version)
        self.catalogues.resolved(news.name, news.uid, news.facts, news.at, current=current)

    @_take.register
    def _(self, news: RegionRead | PricesRead | Polled | Reported, now: datetime) -> None:
        self.failures.read(news)
        if not isinstance(news, Reported):
            self.catalogues.read(news)

    @_take.register
    def _(self, news: ClusterRead | VersionNoted, now: datetime) -> None:
        if self.known_cluster.take(news):
            self.catalogues.look_again()

    @_take.register
    def _(self, news: Received, now: datetime) -> None:
        for message in news.messages:
            self.fleet.interrupted(self.interruptions.received(message, now), now)

    @_take.register
    def _(self, news: Proposed, now: datetime) -> None:
        self.proposals = tuple(p if p.made_at else replace(p, made_at=news.made_at) for p in news.proposals)
        self.kept = news.kept

    # --- objects ------------------------------------------------------------------------------------------------
    def put(self, kind: Kind, value: Any, now: datetime) -> None:
        """An object as the server has it: from a watch, or as the answer to our own write."""
        meta: ObjectMeta = value.metadata
        if kind is not kinds.POD and meta.deleting and not meta.finalizers:
            self.drop(Ref.of(kind, value), now, meta.uid)
            return
        old = self.cluster.get(Ref.of(kind, value))
        if self.cluster.apply(kind, value):
            self._noticed(kind, old, value, now)

    def drop(self, ref: Ref, now: datetime, uid: str = "") -> None:
        """An object that is not there any more."""
        kind = kinds.BY_NAME[ref.kind]
        old = self.cluster.remove(kind, ref.namespace, ref.name, uid)
        self.failures.gone(str(ref))
        if old is not None:
            self._noticed(kind, old, None, now)

    def deleting(self, ref: Ref, uid: str, now: datetime, grace_seconds: int | None = None) -> None:
        """Our own deletion was accepted: show it until the watch does."""
        kind, old = kinds.BY_NAME[ref.kind], self.cluster.get(ref)
        if old is None or (uid and old.metadata.uid != uid):
            return
        if kind is not kinds.POD and not old.metadata.finalizers:
            self.drop(ref, now, uid)
        elif not old.metadata.deleting:
            grace = grace_seconds if grace_seconds is not None else grace_of(old)
            meta = msgspec.structs.replace(
                old.metadata, deletion_timestamp=now + timedelta(seconds=grace), deletion_grace_period_seconds=grace
            )
            self.put(kind, msgspec.structs.replace(old, metadata=meta), now)

    def _noticed(self, kind: Kind, old: Any | None, new: Any | None, now: datetime) -> None:
        """Take note of a change; an object of another controller counts as one that is not there."""
        changed, old, new = new, kinds.own(old), kinds.own(new)
        if (value := new if new is not None else old) is None:
            return
        self.notices.note(ObjectChanged(kind, old, new))
        self.changes.note(Ref.of(kind, value), changed, old, new)
        if kind is kinds.POD:
            self._noticed_pod(old, new, now)
        elif kind is kinds.NODE:
            self._noticed_node(old, new, now)
        elif kind is kinds.NODE_CLAIM:
            self._noticed_claim(old, new, now)
        elif kind is kinds.PDB:
            self.evictions.budget_changed(old, new, self.cluster, now)
        elif makes_room(kind, old, new):
            self.batch.reopen(now)
        elif self.settings.gates.capacity_buffer and kind in kinds.BUFFERS:
            self._noticed_buffer(kind, old, new, now)
        elif kind is kinds.NODE_CLASS:
            self.inventories.noticed(old, new, now)
            if new is None and old is not None:
                self.catalogues.forget(old.name)

    def _noticed_pod(self, old: Pod | None, new: Pod | None, now: datetime) -> None:
        if new is not None and self.cluster.pending(new):
            self.batch.trigger(new.metadata.uid, now)
            if old is not None and (name := pods.expected_on(old)):
                self._expects_no_more(name, now)
        elif (old or new) is not None:
            self.batch.forget((new or old).metadata.uid)  # type: ignore[union-attr]

    def _expects_no_more(self, node_name: str, now: datetime) -> None:
        """The kube-scheduler drops an expectation whenever it tries the pod too early, be the node made for it alone:
        until a reconcile has found where the pod may be placed, that is not an empty node."""
        until = now + self.settings.batch_max + LOOKED_AT_WITHIN
        for claim in self.cluster.claims_of(node_name):
            self.promises.expect(claim.name, until)

    def _noticed_node(self, old: Node | None, new: Node | None, now: datetime) -> None:
        """The pods of a node that is removed need places elsewhere, and those that are expected on one that is gone."""
        self._node_changes.noticed(old, new, now)
        for claim in self.cluster.claims_of(new.name) if new is not None else ():
            self.catalogues.learned.seen(claim, new, now)  # type: ignore[arg-type]
        for pod in self.cluster.expected_on((new or old).name).values() if old is None or new is None else ():  # type: ignore[union-attr]
            self._noticed_pod(None, pod, now)
        if new is not None and any(t.matches(pods.DISRUPTED) for t in new.spec.taints):
            self.batch.trigger(new.metadata.uid, now)
        elif (old or new) is not None:
            self.batch.forget((new or old).metadata.uid)  # type: ignore[union-attr]

    def _noticed_claim(self, old: NodeClaim | None, new: NodeClaim | None, now: datetime) -> None:
        self.marks.noticed(old, new, now)
        self.batch.claim_changed(old, new, now)
        if new is not None and (new.metadata.deleting or not new.is_true("Initialized")):
            self._busy.add(new.name)
        elif (claim := new or old) is not None:
            self._busy.discard(claim.name)
        if new is not None and new.is_true(HELD):  # the pods of its node are to have a place before it is drained
            self.batch.trigger(new.metadata.uid, now)
        elif (claim := new or old) is not None:
            self.batch.forget(claim.metadata.uid)
        if new is None and old is not None:
            self.promises.drop(old.name)
        if new is not None and (node := self.cluster.objects(kinds.NODE).get(new.status.node_name)) is not None:
            self.catalogues.learned.seen(new, node, now)

    def _noticed_buffer(self, kind: Kind, old: Any | None, new: Any | None, now: datetime) -> None:
        """Room is kept for other pods than before, or for none; statuses and counts change nothing about that."""
        if old is not None and new is not None and old.metadata.generation == new.metadata.generation:
            return
        if kind is not kinds.CAPACITY_BUFFER:
            self.batch.look_again(now)
        elif new is not None:
            self.batch.keep(new.metadata.uid, now)
        elif old is not None:
            self.batch.keep_no_longer(old.metadata.uid, now)

    # --- what a plan leaves -------------------------------------------------------------------------------------
    def planned(self, plan: Plan, now: datetime) -> None:
        """Remember what a plan says beside its actions: nominations, accounts, and that the batch was served."""
        if plan.provisioned:
            self.batch.served(now, again=bool(plan.left_over))
        else:
            self.batch.looked(now, plan.try_at, ahead=plan.ahead)
        if plan.accounts is not None:
            self._accounts = plan.accounts
        self.promises.planned(plan)

    def message_deleted(self, message_id: str) -> None:
        self.interruptions.deleted(message_id)

    def settle(self, key: str, uid: str, until: datetime) -> None:
        """An action was accepted; it is not asked again until then, though the watch may not show it yet."""
        self.promises.settle(key, uid, until)

    def held_until(self, key: str, uid: str, subjects: tuple[str, ...], now: datetime) -> datetime | None:
        """Until when an action must wait: it was accepted a moment ago, or failed and is being left alone."""
        waits = [self.promises.settles(key, uid)]
        waits += [table.until(subject) for subject in subjects for table in (self.evictions, self.actions)]
        return max((until for until in waits if until is not None and until > now), default=None)

    # --- the snapshot -------------------------------------------------------------------------------------------
    def snapshot(self, now: datetime) -> Snapshot:
        """Everything as of now. Its maps hold still until the next event is processed."""
        self.notice(now)
        self._forget_old(now)
        self.catalogues.forget_full(now)
        self.catalogues.shift(self._shifts.at(now))
        self.catalogues.learn(now)
        classes: Mapping[str, EC2NodeClass] = self.cluster.objects(kinds.NODE_CLASS)
        catalogues = self.catalogues.catalogues(classes.values())  # before the facts, whose problems may come of it
        return self.cluster.snapshot(
            now=now,
            settings=self.settings,
            leading_since=self.leading_since(),
            cluster=self.known_cluster.facts,
            class_facts=self.catalogues.facts,
            resolved_at=self.catalogues.resolved_at,
            dry_runs=self.catalogues.dry_runs,
            catalogues=catalogues,
            instances=self.fleet.instances,
            out_of_stock=MappingProxyType(self.fleet.out_of_stock(now)),
            launch_failures=MappingProxyType(self.fleet.failures(now)),
            launch_marks=self.marks.at(self.cluster.objects(kinds.NODE_CLAIM), now),
            shifted=self._shifted(now),
            impairments=self._impairments.at(now),
            examined_at=self._impairments.examined_at,
            interruptions=self.interruptions.at(now),
            inventories=self.inventories.told(),
            batch=self.batch.at(now),
            nominated_until=MappingProxyType(self.promises.nominated),
            **self.promises.facts,
            node_changed_at=self._node_changes.at(now),
            under_way=self.under_way,
            fresh_at=MappingProxyType(self.freshness.at),
            proposals=self.proposals,
            kept=self.kept,
            accounts=self._accounts,
            not_before={**self.evictions.holding(now), **self.actions.holding(now)},
            failures=self.failures.at(now),
        )

    def _shifted(self, now: datetime) -> Mapping[str, datetime]:
        return by_name(self._shifts.at(now), self.catalogues.facts.values())

    def _forget_old(self, now: datetime) -> None:
        self.promises.forget_old(now)
        self.freshness.forget_later_than(now)
        self.proposals = tuple(p for p in self.proposals if p.made_at and now - p.made_at <= PROPOSALS_KEPT)
