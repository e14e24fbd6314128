"""What holds of each node and of its pods whatever is solved: worked out once, and again when the node or they change.

Nothing here depends on the resources that are counted, on daemon sets or on types; a `NodeReader` adds those.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from kerf.model.boundaries import broken
from kerf.model.claims import check
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod, PodAffinityTerm
from kerf.model.memory import Step, Turn
from kerf.model.plan import Reason
from kerf.model.snapshot import Snapshot, StateNode
from kerf.pods.host_ports import HostPort, host_ports
from kerf.pods.topology_constraints import ANTI, TopologyGroup, required_anti_affinity, term_group
from kerf.pods.volumes import Attachment, attachments
from kerf.scheduling.facts.joining import late_at
from kerf_api import labels
from kerf_api.requirements import EMPTY, Requirements
from kerf_api.resources import Resources
from kerf_api.v1.meta import Taint

#: A pod with its key.
Entry = tuple[str, Pod]
#: What makes the groups of equal terms equal, and such a group with nothing counted.
TermGroup = tuple[object, TopologyGroup]


@dataclass(frozen=True, slots=True, eq=False)
class NodeFacts:
    """A state node that takes pods. `possible` are its labels; `settles` is when its pool's consolidateAfter is over;
    `attachable` how many volumes it can attach, by driver.

    `marks` name the pods that it was made for, until it is initialised. Of one that is `open` (a claim of which no plan
    knows yet what it becomes) only the marks count. A `cordoned` one takes only pods that tolerate
    `nodes.table.CORDON`.
    """

    state: StateNode
    name: str
    initialized: bool
    marks: frozenset[str]
    open: bool
    possible: Requirements = EMPTY
    hostname: str = ""
    taints: tuple[Taint, ...] = ()
    cordoned: bool = False
    allocatable: Resources = field(default_factory=Resources)
    settles: datetime | None = None
    attachable: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Residents:
    """The pods of a node, by key: those that have not ended, of these those with required anti-affinity and those that
    terminate, and the newest living one of each daemon set. `terms` are the groups of the former's terms, by key of the
    pod; None for a term whose namespaces are selected by their labels.

    `used` is what all that are not done take, `daemon_used` the part of daemon sets in it, `ports` their host ports,
    `attached` their volumes; None when one of them is not countable, and then `problem` is the reason.
    """

    pods: tuple[Entry, ...] = ()
    inverse: tuple[Entry, ...] = ()
    terms: Mapping[str, tuple[TermGroup | None, ...]] = field(default_factory=dict)
    terminating: tuple[Entry, ...] = ()
    daemons: tuple[Entry, ...] = ()
    used: Resources | None = field(default_factory=Resources)
    daemon_used: Resources = field(default_factory=Resources)
    ports: tuple[HostPort, ...] = ()
    attached: frozenset[Attachment] = frozenset()
    problem: Reason | None = None


NOBODY = Residents()


class Needs:
    """What pods take. Of pods of one shape it is read once, as long as the parts that say so are the same objects."""

    def __init__(self) -> None:
        #: By the identities of what the amounts are read from; the pod keeps these alive.
        self._known: dict[tuple[int, ...], tuple[Pod, tuple[tuple[str, int], ...]]] = {}

    def of(self, pod: Pod) -> tuple[tuple[str, int], ...]:
        """Amounts by resource, none negative. Raises ValueError."""
        spec = pod.spec
        parts = (spec.containers, spec.init_containers, spec.resources, spec.overhead or None, *pods.reported(pod))
        key = tuple(map(id, parts))
        known = self._known.get(key)
        if known is None:
            amounts = tuple((name, max(value, 0)) for name, value in pods.requests(pod).items())
            known = self._known[key] = (pod, amounts)
        return known[1]


@dataclass(frozen=True, slots=True)
class _View:
    snapshot: Snapshot
    needs: Needs


def sites(turn: Turn) -> tuple[Mapping[str, NodeFacts], Mapping[str, Residents]]:
    """The sites by the keys of `snapshot.state_nodes`, and the residents by the names of Nodes that have any."""
    view = _View(turn.noted, Needs())
    found = {key: one for key, one in turn.all(_SITES, view).spoken.items() if isinstance(one, NodeFacts)}
    return found, turn.all(_RESIDENTS, view).spoken


def unread_sites(turn: Turn) -> dict[str, Reason]:
    """The nodes that cannot be read, by the keys of `snapshot.state_nodes`."""
    found = turn.all(_SITES, _View(turn.noted, Needs())).spoken
    return {key: one for key, one in found.items() if isinstance(one, Reason)}


# --- nodes --------------------------------------------------------------------------------------------------------
def _site(view: _View, key: str) -> tuple[NodeFacts | Reason | None, datetime | None]:
    try:
        state = view.snapshot.state_nodes[key]
        late = late_at(state.claim) if state.claim is not None else None
        return _open_site(state, view.snapshot), late if late is not None and late > view.snapshot.now else None
    except Exception as error:
        return broken(error), None


def site_of(state: StateNode, snapshot: Snapshot) -> NodeFacts | None:
    """None when no pod may be placed there, or when the node or its claim cannot be read."""
    try:
        return _open_site(state, snapshot)
    except Exception:
        return None


def _open_site(state: StateNode, snapshot: Snapshot) -> NodeFacts | None:
    """None when no pod may be placed there, the node is late with its initialization, or it or its claim is not
    readable."""
    if any(one is not None and one.metadata.unreadable for one in (state.node, state.claim)):
        return None
    if state.deleting:
        return None
    late = late_at(state.claim) if state.claim is not None else None
    if late is not None and late <= snapshot.now:
        return None
    return _read(state, snapshot)


def _read(state: StateNode, snapshot: Snapshot) -> NodeFacts:
    claim, initialized = state.claim, state.initialized
    marks: frozenset[str] = frozenset()
    if claim is not None:
        check(claim)
        planned = "" if initialized else claim.metadata.annotations.get(labels.PLANNED_PODS, "")
        marks = frozenset(mark for mark in planned.split(",") if mark)
    if state.node is None and claim is not None and not claim.status.allocatable:
        return NodeFacts(state, state.name, initialized, marks, open=True, taints=claim.spec.taints)
    own = dict(state.labels)
    hostname = own.setdefault(labels.HOSTNAME, state.name)
    own[labels.NAME_FIELD] = state.name
    return NodeFacts(
        state,
        state.name,
        initialized,
        marks,
        open=False,
        possible=Requirements.of_labels(own),
        hostname=hostname,
        taints=state.taints,
        cordoned=state.node is not None and state.node.spec.unschedulable,
        allocatable=state.allocatable,
        settles=_settles(state, snapshot),
        attachable=_attachable(state, snapshot),
    )


def _attachable(state: StateNode, snapshot: Snapshot) -> Mapping[str, int]:
    found = snapshot.csi_nodes.get(state.node.name) if state.node is not None else None
    return found.attachable if found is not None else {}


def _settles(state: StateNode, snapshot: Snapshot) -> datetime | None:
    """When the node's pool lets consolidation move pods there; None when it does already, or never will."""
    pool, claim = snapshot.node_pools.get(state.pool_name), state.claim
    if pool is None or pool.static or claim is None or not pool.consolidate_after:
        return None
    initialized = claim.condition("Initialized")
    if initialized is None or initialized.status != "True":
        return None
    since = claim.status.last_pod_event_time or initialized.last_transition_time
    return since + pool.consolidate_after if since is not None else None


# --- pods ---------------------------------------------------------------------------------------------------------
def residents(snapshot: Snapshot, node_name: str, needs: Needs, moving: Collection[str] = ()) -> Residents:
    """The pods of a node, those included for which the kube-scheduler keeps room there; but for those in `moving`."""
    bound = (*snapshot.pods.on(node_name), *snapshot.pods.expected_on(node_name))
    entries = sorted((entry for pod in bound if (entry := (pod.key, pod))[0] not in moving), key=_key)
    try:
        found = _sorted_out(entries)
    except Exception as error:
        readable = [entry for entry in entries if _readable(entry)]
        return replace(_sorted_out(readable), problem=broken(error))
    try:
        return _with_needs(found, [pod for _, pod in found.pods], needs, snapshot)
    except Exception as error:
        return replace(found, problem=broken(error))


def _readable(entry: Entry) -> bool:
    try:
        _sorted_out([entry])
    except Exception:
        return False
    return True


def _sorted_out(entries: Iterable[Entry]) -> Residents:
    """The pods without their amounts."""
    there = tuple(entry for entry in entries if not pods.terminal(entry[1]))
    ending = tuple(entry for entry in there if pods.terminating(entry[1]))
    daemons: dict[str, Entry] = {}
    for entry in (entry for entry in there if pods.active(entry[1])):
        for name in _daemon_sets(entry[1]):
            daemons[name] = newest(daemons.get(name), (name, entry[1]))
    inverse = tuple(entry for entry in there if required_anti_affinity(entry[1]))
    terms = {key: tuple(_term(pod, term) for term in required_anti_affinity(pod)) for key, pod in inverse}
    return Residents(there, inverse, terms, ending, tuple(daemons.values()), used=None)


def _with_needs(found: Residents, staying: Iterable[Pod], needs: Needs, snapshot: Snapshot) -> Residents:
    used, daemon_used = dict[str, int](), dict[str, int]()
    ports, attached = list[HostPort](), set[Attachment]()
    for pod in staying:
        of_daemon = pods.of_daemon_set(pod)
        for name, amount in needs.of(pod):
            used[name] = used.get(name, 0) + amount
            if of_daemon:
                daemon_used[name] = daemon_used.get(name, 0) + amount
        ports += host_ports(pod)
        attached |= attachments(snapshot, pod)
    return replace(
        found,
        used=Resources(used),
        daemon_used=Resources(daemon_used),
        ports=tuple(sorted(ports)),
        attached=frozenset(attached),
    )


def _residents(view: _View, name: str) -> tuple[Residents, None]:
    return residents(view.snapshot, name, view.needs), None


def _daemon_sets(pod: Pod) -> tuple[str, ...]:
    """The keys of the daemon sets that own the pod."""
    if not pods.of_daemon_set(pod):
        return ()
    meta = pod.metadata
    return tuple(f"{meta.namespace}/{owner.name}" for owner in meta.owner_references if owner.kind == "DaemonSet")


def newest(known: Entry | None, entry: Entry) -> Entry:
    """The one whose pod was made last; of two made in one second the later by key."""
    return entry if known is None or _age(entry[1]) >= _age(known[1]) else known


def _age(pod: Pod) -> tuple[float, str]:
    created = pod.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0, pod.key


def _term(pod: Pod, term: PodAffinityTerm) -> TermGroup | None:
    return term_group(pod, term, ANTI, {}) if term.namespace_selector is None else None


def _key(entry: Entry) -> str:
    return entry[0]


_SITES: Step[_View, NodeFacts | Reason | None] = Step(
    "sites", "state_nodes", _site, speaks=lambda found: found is not None
)
_RESIDENTS: Step[_View, Residents] = Step(
    "residents", "nodes", _residents, speaks=lambda found: bool(found.pods) or bool(found.used) or found.used is None
)
