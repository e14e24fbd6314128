"""What a performed action means for what we know: own writes show at once, failures become back-offs.

A watch, or Describe, confirms it later; until then the next decision must not be made as if nothing had happened.
"""

from __future__ import annotations

from datetime import timedelta
from functools import singledispatch
from typing import Any

from kerf.ec2.errors import OUT_OF_STOCK, SPOT_ROLE_CODE
from kerf.ec2.nodeclass import profile_verdicts
from kerf.model import kinds
from kerf.model.aws.cloud import DryRun, FleetError, FleetResult, ProfileAttempt
from kerf.model.aws.inventory import PROFILE, TEMPLATE
from kerf.model.kept import written_fields
from kerf.model.kinds import Kind
from kerf.model.plan import (
    Action,
    CreateNodeClaim,
    DeleteMessage,
    DeleteObject,
    DeleteUnused,
    EnsureInstanceProfile,
    EnsureTemplate,
    EvictPod,
    LaunchInstances,
    PatchObject,
    TagInstance,
    TerminateInstance,
    ValidateClass,
)
from kerf.ports import (
    AlreadyGone,
    EvictionBlocked,
    NotLeading,
    PortError,
    SeveralBudgets,
    Throttled,
    WorldChanged,
)
from kerf.runtime.act.performing import concerned, target
from kerf.runtime.inbox import Changed, Done, Listed, News, Removed
from kerf.runtime.state.fleet import full_subnet
from kerf.runtime.state.notices import FieldsDropped
from kerf.runtime.state.state import State
from kerf.telemetry.log.logs import shortened
from kerf.telemetry.telemetry import FINE
from kerf_api import labels

#: The same deletion, eviction or termination is not asked again before the watch had time to show it.
SETTLES = timedelta(seconds=5)
#: A launch template that is there is not made ahead again so soon; a call that finds it gone makes it anyway.
TEMPLATE_STAYS = timedelta(seconds=60)
#: A NodePool whose claims the API server refuses is passed over at least this long, so that the next pass, ten seconds
#: later, tries another one.
REFUSED_SECONDS = 30.0
#: Errors of a fleet call that a repetition cannot fix: they are left for lifecycle to see.
_FINAL = frozenset({"forbidden", "invalid", "idempotency_mismatch", "template_missing"})
#: Not the subject's fault, or fixed by the next reconcile.
_NO_BACKOFF = frozenset({"not_leading", "conflict"})
#: Not tried at all: this says nothing about the action.
_NOT_TRIED = frozenset({"not_leading", "stale_source"})
#: How many fields of a contested write are named.
_FIELDS_SHOWN = 5
#: Understood and put off by the API, because of other objects: no failure.
_PUT_OFF = FINE | {"blocked", "conflict", "world_changed"}


def subject(action: Action) -> str:
    """What a back-off of this action is about, as the Snapshot's `not_before` spells it."""
    if isinstance(action, EvictPod):
        return f"eviction/{action.ref.namespace}/{action.ref.name}"
    if isinstance(action, LaunchInstances):
        return f"launch/{action.request.group}"
    if isinstance(action, TerminateInstance):
        return f"instance/{action.instance_id}"
    return action.key


def subjects(action: Action) -> tuple[str, ...]:
    """Every subject whose back-off an action waits for."""
    if isinstance(action, CreateNodeClaim):
        return subject(action), f"nodepool/{action.claim.pool_name}"
    return (subject(action),)


def absorb(done: Done, state: State) -> None:
    """Take in how an action went."""
    _note_failure(done, state)
    if done.outcome in FINE:
        _subject_backoffs(done, state, failed=False)
        _succeeded(done.action, done, state)
        return
    if done.outcome not in _NO_BACKOFF:
        _subject_backoffs(done, state, failed=True)
    if done.value is not None and (ref := target(done.action)) is not None:
        state.put(kinds.BY_NAME[ref.kind], done.value, done.at)
    if isinstance(done.action, LaunchInstances) and done.outcome in _FINAL:
        error = FleetError(type(done.error).__name__, str(done.error))
        state.fleet.failed(done.action.request, (error,), done.at)
    answered = isinstance(done.error, PortError) and not isinstance(done.error, NotLeading)
    if isinstance(done.action, EnsureInstanceProfile) and done.error is not None and answered:
        attempt = ProfileAttempt(done.action.profile, *profile_verdicts.failed(done.error))
        state.catalogues.profile_attempted(done.action.class_name, attempt)


def _note_failure(done: Done, state: State) -> None:
    if done.outcome in _NOT_TRIED:
        return
    verb, about = done.action.key.partition(" ")[0], _about(done.action)
    if (contested := _contested(done, state)) is not None:
        state.failures.failed(verb, about, *contested, done.at)
    elif done.outcome in _PUT_OFF:
        state.failures.succeeded(verb, about, done.at)
    else:
        state.failures.failed(verb, about, done.outcome, str(done.error or ""), done.at)


def _contested(done: Done, state: State) -> tuple[str, str] | None:
    """The outcome and the fields, when another writer has undone this write, or come before it, again and again."""
    action, accepted = done.action, done.error is None and done.value is not None
    if not isinstance(action, PatchObject) or not (accepted or done.outcome == "conflict"):
        return None
    known = state.cluster.get(action.ref)
    answer = done.value.metadata if accepted else None
    outcome = state.promises.contested(action, known.metadata if known is not None else None, answer, done.at)
    return (outcome, shortened(written_fields(action), _FIELDS_SHOWN)) if outcome else None


def known_of(action: Action, state: State) -> Any:
    """The object that an event about the action belongs to: of a NodeClaim that is to be created, its NodePool; of an
    instance, its NodeClaim. None when there is none."""
    if isinstance(action, CreateNodeClaim):
        return state.cluster.objects(kinds.NODE_POOL).get(action.claim.pool_name)
    if isinstance(action, (TerminateInstance, TagInstance)):
        return next(iter(state.cluster.claims_by_instance.get(action.instance_id, ())), None)
    ref = concerned(action)
    return None if ref is None else state.cluster.get(ref)


def _about(action: Action) -> str:
    """The object of a failure. A NodeClaim that was never created has another name each time, as a fleet has."""
    if isinstance(action, CreateNodeClaim):
        return f"nodepool/{action.claim.pool_name}"
    if isinstance(action, LaunchInstances):
        return f"nodepool/{action.request.tags.get(labels.TAG_NODEPOOL, '')}"
    ref = concerned(action)
    return action.lane if ref is None else str(ref)


def _subject_backoffs(done: Done, state: State, *, failed: bool) -> None:
    about = subject(done.action)
    if failed:
        asked = done.error.retry_after_seconds if isinstance(done.error, Throttled) else 0.0
        # Where pods block it the API refused nothing: it is soon asked again.
        by_pods = isinstance(done.action, EvictPod) or isinstance(done.error, WorldChanged)
        if isinstance(done.error, EvictionBlocked) and not isinstance(done.error, SeveralBudgets):
            state.evictions.refused_by_budget(about, done.at)
        else:
            (state.evictions if by_pods else state.actions).failed(about, done.at, asked)
        if isinstance(done.action, CreateNodeClaim) and done.outcome in _FINAL:
            state.actions.failed(f"nodepool/{done.action.claim.pool_name}", done.at, REFUSED_SECONDS)
    else:
        for table in (state.evictions, state.actions):
            table.succeeded(about)
        if isinstance(done.action, CreateNodeClaim):
            state.actions.succeeded(f"nodepool/{done.action.claim.pool_name}")


@singledispatch
def _succeeded(action: Action, done: Done, state: State) -> None:
    """Most deeds need no trace of their own."""


@_succeeded.register
def _(action: CreateNodeClaim, done: Done, state: State) -> None:
    if done.value is not None:
        state.put(kinds.NODE_CLAIM, done.value, done.at)


@_succeeded.register
def _(action: PatchObject, done: Done, state: State) -> None:
    if isinstance(done.error, AlreadyGone):
        known = state.cluster.get(action.ref)
        if known is not None and action.resource_version in ("", known.metadata.resource_version):
            state.drop(action.ref, done.at, known.metadata.uid)
    elif done.value is not None:
        state.put(kinds.BY_NAME[action.ref.kind], done.value, done.at)
        if fields := state.promises.written(action, done.value, done.at):
            state.notices.note(FieldsDropped(action.ref.kind, fields))


@_succeeded.register
def _(action: DeleteObject, done: Done, state: State) -> None:
    if isinstance(done.error, AlreadyGone):
        state.drop(action.ref, done.at, action.uid)
    else:
        state.deleting(action.ref, action.uid, done.at, action.grace_seconds)
        state.settle(action.key, action.uid, done.at + SETTLES)


@_succeeded.register
def _(action: EvictPod, done: Done, state: State) -> None:
    if isinstance(done.error, AlreadyGone):
        state.drop(action.ref, done.at, action.uid)
    else:
        state.deleting(action.ref, action.uid, done.at)
        state.settle(action.key, action.uid, done.at + SETTLES)


@_succeeded.register
def _(action: LaunchInstances, done: Done, state: State) -> None:
    if isinstance(done.value, FleetResult):
        state.fleet.launched(action.request, done.value, done.at)
        state.inventories.use(TEMPLATE, (one.name for one in action.request.templates), done.at)
        state.inventories.use(PROFILE, (one.instance_profile for one in action.request.templates), done.at)
        if any(error.code == SPOT_ROLE_CODE for error in done.value.errors):
            state.fleet.close(state.catalogues.offered(labels.SPOT), done.at)
        if state.catalogues.region is not None:
            state.fleet.over_quota(action.request, done.value, state.catalogues.region, done.at)
        if full := {subnet for error in done.value.errors if (subnet := full_subnet(error))}:
            state.catalogues.full(full, done.at + OUT_OF_STOCK)
        if len(done.value.instances) < len(action.request.members):
            state.actions.failed(subject(action), done.at)


@_succeeded.register
def _(action: EnsureTemplate, done: Done, state: State) -> None:
    state.inventories.use(TEMPLATE, (action.template.name,), done.at)
    state.settle(action.key, "", done.at + TEMPLATE_STAYS)


@_succeeded.register
def _(action: TerminateInstance, done: Done, state: State) -> None:
    state.fleet.terminated(action.instance_id, done.at, gone=isinstance(done.error, AlreadyGone))
    state.settle(action.key, "", done.at + SETTLES)


@_succeeded.register
def _(action: TagInstance, done: Done, state: State) -> None:
    state.fleet.tagged(action.instance_id, action.tags)


@_succeeded.register
def _(action: EnsureInstanceProfile, done: Done, state: State) -> None:
    state.catalogues.profile_attempted(action.class_name, None)
    state.catalogues.look_again(action.class_name)
    state.inventories.use(PROFILE, (action.profile,), done.at)
    state.settle(action.key, "", done.at + SETTLES)


@_succeeded.register
def _(action: ValidateClass, done: Done, state: State) -> None:
    state.catalogues.tried(action.class_name, DryRun(action.request.group, done.at, done.value))


@_succeeded.register
def _(action: DeleteUnused, done: Done, state: State) -> None:
    state.inventories.deleted(action.resource)


@_succeeded.register
def _(action: DeleteMessage, done: Done, state: State) -> None:
    state.message_deleted(action.message.id)


def kind_of(news: News) -> Kind | None:
    """The kind whose objects it changes, if it does."""
    if isinstance(news, (Listed, Changed, Removed)):
        return news.kind
    ref = target(news.action) if isinstance(news, Done) else None
    return kinds.BY_NAME[ref.kind] if ref is not None else None
