"""Launch templates and instance profiles that nothing needs any more are deleted, an hour after they were used last.

A template that goes too early is made again with the next launch. An instance whose profile goes loses its role, so a
profile stays for whatever names it: a class, a claim, a launch to come, an instance. Few go at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import chain, islice, takewhile
from typing import Final

from kerf.ec2.nodeclass import nodeclass
from kerf.lifecycle.nodeclaim import launch
from kerf.lifecycle.view import View
from kerf.model.aws.cloud import FleetRequest
from kerf.model.aws.inventory import PROFILE, TEMPLATE, Inventory, Resource
from kerf.model.memory import Step, Turn
from kerf.model.plan import NOTHING, DeleteUnused, LaunchInstances, Plan, Reason, Source, joined
from kerf.model.writes import act, stale
from kerf_api import labels

#: How long something stays after its last use.
KEPT: Final = timedelta(hours=1)
#: At most so many go for each time that they are listed.
AT_ONCE: Final = {PROFILE: 5, TEMPLATE: 100}
SOURCES: Final = (Source.INSTANCES, Source.NODE_CLAIMS, Source.NODE_CLASSES)

Needed = Callable[[str], bool]


def collect(turn: Turn) -> Plan:
    """What has been unused for long enough and is needed by nothing."""
    view, found = View(turn.snapshot), turn.snapshot.inventories
    needed: dict[str, Callable[[], Needed]] = {
        PROFILE: lambda: _profiles(turn, view),
        TEMPLATE: lambda: _templates(turn, view),
    }
    return joined(_collect(view, kind, found[kind], needed[kind]) for kind in sorted(found))


def _collect(view: View, kind: str, inventory: Inventory, needed: Callable[[], Needed]) -> Plan:
    now, used = view.snapshot.now, inventory.used
    idle = list(takewhile(lambda one: used[one.name] + KEPT <= now, inventory.resources))
    due = min((used[one.name] + KEPT for one in inventory.resources[len(idle) : len(idle) + 1]), default=None)
    wait = NOTHING if due is None else Plan(next_due=due)
    if not idle:
        return wait
    is_needed = needed()
    free = islice((one for one in idle if not is_needed(one.name)), max(AT_ONCE[kind] - inventory.deleted, 0))
    going = tuple(_deletion(one) for one in free)
    refusal = stale(view.snapshot, f"unused {kind}s", SOURCES) if going else None
    return refusal if refusal is not None else joined((act(*going), wait))


def _deletion(one: Resource) -> DeleteUnused:
    reason = Reason("Unused", f"{one.kind} {one.name} has not been used for an hour, and nothing needs it")
    return DeleteUnused(reason=reason, sources=frozenset(SOURCES), resource=one)


# --- launch templates -------------------------------------------------------------------------------------------
def _templates(turn: Turn, view: View) -> Needed:
    names = {template.name for request in _launches(turn, view) for template in request.templates}
    return names.__contains__


def _launches(turn: Turn, view: View) -> Iterator[FleetRequest]:
    """Calls that are under way, or written to claims that wait for them."""
    yield from (action.request for action in view.snapshot.under_way if isinstance(action, LaunchInstances))
    claims = view.snapshot.node_claims
    for name in turn.all(_WAITING, View(turn.noted)).spoken:
        request = launch.request_of(view, claims[name])
        if request is not None:
            yield request


def _waits(view: View, name: str) -> tuple[bool, None]:
    """Whether a call stands on a claim; it is taken off when the claim has its instance."""
    return labels.LAUNCH_REQUEST in view.snapshot.node_claims[name].metadata.annotations, None


# --- instance profiles ------------------------------------------------------------------------------------------
def _profiles(turn: Turn, view: View) -> Needed:
    """All of them, while there is a class or a claim that cannot be read: who knows what that names."""
    snapshot, each = view.snapshot, View(turn.noted)
    classes = snapshot.node_classes.values()
    claimed, running = turn.all(_CLAIMED, each).sums, turn.all(_RUNNING, each).sums
    if snapshot.cluster is None or UNREADABLE in claimed or any(one.metadata.unreadable for one in classes):
        return lambda name: True
    cluster = snapshot.cluster
    named: Iterable[str] = chain(
        (one.status.instance_profile for one in classes),
        (one.spec.instance_profile or nodeclass.profile_for(one, cluster)[0] for one in classes),
        (template.instance_profile for request in _launches(turn, view) for template in request.templates),
    )
    names = frozenset(named)
    return lambda name: name in names or name in claimed or name in running


#: Stands for the profile of a claim that cannot be read; no profile has this name.
UNREADABLE: Final = " "


def _claimed(view: View, name: str) -> tuple[str, None]:
    """The profile that a claim's instance was given."""
    meta = view.snapshot.node_claims[name].metadata
    return UNREADABLE if meta.unreadable else meta.annotations.get(labels.INSTANCE_PROFILE, ""), None


def _running(view: View, id_: str) -> tuple[str, None]:
    return view.snapshot.instances[id_].profile, None


def _counted(profile: str) -> tuple[tuple[str, int], ...]:
    return ((profile, 1),) if profile else ()


def _silent(profile: str) -> bool:
    return False


_WAITING = Step("claims with a call", "node_claims", _waits, speaks=bool)
_CLAIMED = Step("profiles of claims", "node_claims", _claimed, speaks=_silent, counts=_counted)
_RUNNING = Step("profiles of instances", "instances", _running, speaks=_silent, counts=_counted)
