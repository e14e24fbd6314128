"""The state of a NodePool's canary: the annotation that keeps it, the condition `CanaryPassed` and events.

After the soak time Kerf judges the pods on the successors of the canary; without successors, the pods that its
workloads started elsewhere. Only a pod that fails while most other pods of its controller are ready stops the change.
The condition is not part of `Ready`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from kerf.disruption.candidates import canary as rules
from kerf.disruption.candidates.canary import Canary, Trial, begun, said, trial_of
from kerf.disruption.command import Command, command_of
from kerf.disruption.on_nodes import rows_with
from kerf.disruption.view import View
from kerf.model import kinds
from kerf.model.annotations import text_of
from kerf.model.instants import is_ahead
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.model.plan import NOTHING, Event, Plan, Reason, Source
from kerf.model.writes import annotate
from kerf_api import labels
from kerf_api.texts import shortened
from kerf_api.v1 import conditions
from kerf_api.v1.meta import Condition
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

CANARY_PASSED: Final = "CanaryPassed"
#: No node has drifted.
NOTHING_TO_REPLACE: Final = "NothingToReplace"
#: A pod that is not ready for this long fails: a younger one may still start.
_STARTS_WITHIN: Final = timedelta(minutes=2)
#: A container that restarted so often fails, although it may be ready at times.
_RESTARTS: Final = 3
#: The label of the release of a pod of a StatefulSet or DaemonSet.
_REVISION: Final = "controller-revision-hash"
#: The controllers whose pods are to be ready until they are deleted.
_LASTING: Final = frozenset(("apps/v1", kind) for kind in ("ReplicaSet", "StatefulSet", "DaemonSet"))
#: After so long the soak time begins, although pods still hold the canary.
_DRAINED_WITHIN: Final = timedelta(hours=1)
_SHOWN: Final = 3
_ONCE: Final = 3600

Conditions = tuple[Condition, ...]


# --- the annotation -----------------------------------------------------------------------------------------------
def noted(view: View, pool: NodePool) -> Plan:
    """The write of the next state of the canary, with an event when it is over; or the time of the next look."""
    trial, known = trial_of(view, pool), pool.metadata.annotations.get(labels.CANARY)
    if not trial.phase:
        return NOTHING if known is None else _written(pool, None, "changes need no canary any more")
    if not view.snapshot.fresh(Source.NODE_CLAIMS, Source.PODS):
        return NOTHING
    if trial.phase == rules.PENDING:
        found = begun(view, pool, trial)
        return _written(pool, _begun(view, trial, *found), "it begins") if found is not None else NOTHING
    if trial.phase in (rules.REPLACING, rules.SOAKING) and trial.canary is None:
        return _written(pool, _restored(view, pool, trial), "its note was lost; the soak time starts over")
    if trial.phase == rules.REPLACING and trial.canary is not None:
        return _replaced(view, pool, trial, trial.canary)
    if trial.phase == rules.SOAKING and trial.canary is not None:
        return _judged(view, pool, trial, trial.canary)
    return NOTHING


def _written(pool: NodePool, value: Canary | None, why: str) -> Plan:
    notes = {labels.CANARY: None if value is None else text_of(value)}
    return Plan(actions=(annotate(pool, "NoteCanary", notes, Reason("Canary", f"NodePool {pool.name}: {why}")),))


def _begun(view: View, trial: Trial, claim: NodeClaim, command: Command) -> Canary:
    state = view.snapshot.state_nodes.get(claim.name)
    on_node = view.pods_on(state.node.name) if state is not None and state.node is not None else ()
    owners = {owner.uid for pod in on_node if pods.reschedulable(pod) and (owner := pods.controller(pod)) is not None}
    unwell = {_controller(pod)[1] for pod in on_node if pods.active(pod) and not pods.ready(pod)} - {""}
    return Canary(
        plan=trial.digest,
        node=claim.name,
        command=command.id,
        started=command.started,
        replacements=command.replacements,
        owners=tuple(sorted(owners)),
        unwell=tuple(sorted(unwell)),
    )


def _restored(view: View, pool: NodePool, trial: Trial) -> Canary:
    """A canary whose note is lost, from its condition, NodeClaims and pods. Without successors its pods are not known.

    A controller with a pod on other nodes that has been unready since before the canary counts as unwell before: the
    pods of the canary itself are gone.
    """
    name, now = rules.reported_node(pool), view.snapshot.now.replace(microsecond=0)
    claim = view.snapshot.node_claims.get(name)
    command = command_of(claim.metadata.annotations) if claim is not None else None
    claims = sorted(view.snapshot.node_claims.values(), key=lambda one: one.name)  # successors of any NodePool
    heirs = [one for one in claims if name in one.metadata.annotations.get(labels.REPLACES, "").split(",")]
    return Canary(
        plan=trial.digest,
        node=name,
        command=command.id if command is not None else "",
        started=now,
        replacements=tuple(one.name for one in heirs),
        unwell=_unwell_before(view, min(filter(None, (one.metadata.creation_timestamp for one in heirs)), default=now)),
        since=now if trial.phase == rules.SOAKING else None,
    )


def _unwell_before(view: View, began: datetime) -> tuple[str, ...]:
    """The UIDs of the controllers with a pod that was bound before then, and has not been ready since."""
    found = set[str]()
    for pod in view.snapshot.pods.values():
        created = pod.metadata.creation_timestamp
        older = created is not None and created < began and bool(pod.spec.node_name)
        if older and pods.active(pod) and not pods.ready(pod) and _unready_since(pod, began, view.snapshot.now) < began:
            found.add(_controller(pod)[1])
    return tuple(sorted(found - {""}))


def _replaced(view: View, pool: NodePool, trial: Trial, canary: Canary) -> Plan:
    """The soak time begins when the NodeClaim is gone; a command that was rolled back makes room for another one."""
    claim = view.snapshot.node_claims.get(canary.node)
    if claim is None or _overdue(claim, view.snapshot.now):
        gone = replace(canary, since=view.snapshot.now.replace(microsecond=0))
        return _written(pool, gone, f"NodeClaim {canary.node} is replaced")
    command = command_of(claim.metadata.annotations)
    if claim.metadata.deleting:
        return Plan(next_due=(claim.metadata.deletion_timestamp or view.snapshot.now) + _DRAINED_WITHIN)
    if command is not None and command.id == canary.command:
        return NOTHING
    return _written(pool, None, f"NodeClaim {canary.node} stays")


def _overdue(claim: NodeClaim, now: datetime) -> bool:
    """Whether pods hold the drain for so long that the others are judged without them."""
    began = claim.metadata.deletion_timestamp
    return began is not None and now - began >= _DRAINED_WITHIN


def _judged(view: View, pool: NodePool, trial: Trial, canary: Canary) -> Plan:
    now, until = view.snapshot.now, trial.until
    if until is not None and until > now:
        return Plan(next_due=until)
    failing, undecided = _failing(view, canary, until or now)
    if failing:
        text = _named(failing)
        words = f"plan {trial.digest}: {said(_as(trial, replace(canary, failed=text), rules.FAILED))}"
        event = Event(kinds.ref(pool), pool.metadata.uid, "Warning", "CanaryFailed", words, trial.digest, _ONCE)
        return _written(pool, replace(canary, failed=text), "pods fail") + Plan(events=(event,))
    if undecided is not None:
        return Plan(next_due=undecided)
    words = f"plan {trial.digest}: the other drifted nodes are replaced within budgets"
    event = Event(kinds.ref(pool), pool.metadata.uid, "Normal", "CanaryPassed", words, trial.digest, _ONCE)
    return _written(pool, replace(canary, passed=True), "its pods are well") + Plan(events=(event,))


def _as(trial: Trial, canary: Canary, phase: str) -> Trial:
    return Trial(phase, trial.digest, trial.noted, trial.soak, canary)


def _named(failing: list[Pod]) -> str:
    shown = shortened([pods.named(pod) for pod in failing], _SHOWN)
    words = "fails while most other pods of its controller" if len(failing) == 1 else "fail while most of the others"
    return f"{shown} {words} are ready"


# --- the pods -----------------------------------------------------------------------------------------------------
def _failing(view: View, canary: Canary, until: datetime) -> tuple[list[Pod], datetime | None]:
    """The pods that fail although most others of their controllers are ready; and when it is decided for the rest.

    A pod that became unready after the soak time delays nothing: else pods that come and go would delay it for ever.
    """
    new = (pod for pod in _received(view, canary) if _controller(pod)[1] not in canary.unwell)
    suspects = [pod for pod in new if not pods.ready(pod) or _restarting(pod)]
    if not suspects:
        return [], None
    well = _well(view, suspects, apart=bool(_successors(view, canary)))
    suspects = [pod for pod in suspects if _controller(pod) in well]
    now, failing, undecided = view.snapshot.now, list[Pod](), list[datetime]()
    for pod in suspects:
        since = _unready_since(pod, canary.started, now)
        end = since + _STARTS_WITHIN
        if _restarting(pod) or end <= now:
            failing.append(pod)
        elif since <= until:
            undecided.append(end)
    return failing, min(undecided, default=None)


def _successors(view: View, canary: Canary) -> list[str]:
    """The names of the nodes that replaced it."""
    states = (view.snapshot.state_nodes.get(name) for name in canary.replacements)
    return [state.node.name for state in states if state is not None and state.node is not None]


def _received(view: View, canary: Canary) -> Iterator[Pod]:
    """The pods on the successors; without these, the pods that the workloads of the canary started since."""
    nodes = _successors(view, canary)
    found: Iterable[Pod] = (pod for name in nodes for pod in view.pods_on(name))
    if not nodes:
        owners = frozenset(canary.owners)
        found = (pod for pod in view.snapshot.pods.values() if _controller(pod)[1] in owners and pod.spec.node_name)
    claims = (view.snapshot.node_claims.get(name) for name in canary.replacements)
    dates = [claim.metadata.creation_timestamp for claim in claims if claim is not None]
    started = min([canary.started, *(date for date in dates if date is not None)]).replace(microsecond=0)
    for pod in sorted(found, key=lambda pod: pod.key):
        created = pod.metadata.creation_timestamp
        if created is not None and created >= started and pods.active(pod) and _lasts(pod):
            yield pod


def _well(view: View, suspects: list[Pod], *, apart: bool) -> frozenset[tuple[str, str, str]]:
    """The controllers of which most other pods are ready, with their namespaces: pods name their own owners.

    Where the suspects are not `apart` on nodes of their own, each of them is one of the others for the rest.
    """
    wanted, own = {_controller(pod) for pod in suspects}, {pod.key for pod in suspects if apart}
    ready = dict.fromkeys(wanted, 0)
    total = dict.fromkeys(wanted, 0 if apart else -1)
    for pod in view.snapshot.pods.values():
        key = _controller(pod)
        if key in wanted and pod.key not in own and pods.active(pod):
            total[key] += 1
            ready[key] += pods.ready(pod) and not _restarting(pod)
    return frozenset(key for key in wanted if 2 * ready[key] > total[key])


def _controller(pod: Pod) -> tuple[str, str, str]:
    """Namespace, UID and revision: one StatefulSet or DaemonSet controls the pods of several releases."""
    owner, revision = pods.controller(pod), pod.metadata.labels.get(_REVISION, "")
    return pod.metadata.namespace, owner.uid if owner is not None else "", revision


def _lasts(pod: Pod) -> bool:
    """Whether the pod is to be ready until it is deleted, by its controller."""
    owner = pods.controller(pod)
    return owner is not None and (owner.api_version, owner.kind) in _LASTING


def _restarting(pod: Pod) -> bool:
    return any(one.restart_count >= _RESTARTS for one in pod.status.container_statuses)


def _unready_since(pod: Pod, otherwise: datetime, now: datetime) -> datetime:
    """By the clock of the node, unless that is wrong."""
    changed = next((c.last_transition_time for c in pod.status.conditions if c.type == "Ready"), None)
    changed = None if changed is not None and is_ahead(changed, now) else changed
    return changed or pod.metadata.creation_timestamp or otherwise


# --- the condition ------------------------------------------------------------------------------------------------
def with_condition(view: View, pool: NodePool, known: Conditions, drifted: int) -> Conditions:
    """The NodePool's conditions with that of its canary; without it when changes need none.

    `drifted` is the number of nodes that have drifted, those that leave included.
    """
    trial = trial_of(view, pool)
    if not trial.phase:
        return conditions.drop(known, CANARY_PASSED)
    if not trial.digest:
        return known
    over = trial.phase in (rules.PENDING, rules.FAILED) and not drifted
    phase = NOTHING_TO_REPLACE if over else trial.phase
    if phase in (NOTHING_TO_REPLACE, rules.PASSED, rules.CONTINUED):
        text = f"plan {trial.digest}"
        return rows_with(view.snapshot, pool, known, CANARY_PASSED, conditions.TRUE, phase, text)
    text = f"plan {trial.digest}: {said(trial)}"
    before = conditions.get(known, CANARY_PASSED)
    if phase == rules.FAILED and trial.canary is None and before is not None and before.reason == rules.FAILED:
        text = before.message  # only it names the pods
    return rows_with(view.snapshot, pool, known, CANARY_PASSED, conditions.FALSE, phase, text)
