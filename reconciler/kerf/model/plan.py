"""What `decide` answers: actions in order, each with its reason; refusals; events; and when to look again.

An action is a value. Its `key` names what it does to which object, so that the same action is not started twice
while it is under way. Actions of one `lane` (one object) run in plan order; different lanes run in parallel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

from kerf.model.aws.accounts import Accounts, Measured
from kerf.model.aws.cloud import FleetRequest, LaunchTemplate
from kerf.model.aws.interruptions import Message
from kerf.model.aws.inventory import Resource
from kerf.model.aws.launch_marks import MarkedLaunch
from kerf.model.gauges import Labels, PlanGauge
from kerf.model.instants import earliest
from kerf.model.kinds import Ref
from kerf_api.v1.nodeclaim import NodeClaim


class Source(StrEnum):
    """A source of facts that can go stale."""

    NODE_POOLS = "NodePool"
    NODE_CLASSES = "EC2NodeClass"
    NODE_CLAIMS = "NodeClaim"
    NODES = "Node"
    PODS = "Pod"
    PDBS = "PodDisruptionBudget"
    INSTANCES = "Instance"
    ZONAL_SHIFTS = "ZonalShift"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why: a stable code (CamelCase, as in Karpenter's reasons where it has one) and words for a person."""

    code: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.text}" if self.text else self.code


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Base of all actions. `sources` are those that an action which destroys depends on."""

    reason: Reason
    sources: frozenset[Source] = frozenset()

    @property
    def lane(self) -> str:
        raise NotImplementedError

    @property
    def key(self) -> str:
        return f"{type(self).__name__} {self.lane}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateNodeClaim(Action):
    claim: NodeClaim

    @property
    def lane(self) -> str:
        return f"nodeclaim/{self.claim.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchObject(Action):
    """A JSON merge patch. `verb` names the deed (`TaintNode`, `SetConditions`, …); `subresource` is `` or `status`.

    With `resource_version` the write is refused (Conflict) when the object has changed since. The executor adds the
    launch mark that `marks` asks for.
    """

    verb: str
    ref: Ref
    patch: Mapping[str, Any]
    subresource: str = ""
    resource_version: str = ""
    marks: MarkedLaunch | None = None

    @property
    def lane(self) -> str:
        return str(self.ref)

    @property
    def key(self) -> str:
        return f"{self.verb} {self.ref}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteObject(Action):
    """Deletion with a UID precondition. For a node that is to be drained, `expected_pods` (UIDs) makes the executor
    list the node's pods again first; a pod that is not expected stops the deletion (WorldChanged). `condition` is
    the one of the Node that it goes for; `policy` the consolidationPolicy. `moved` are pods (`namespace/name`) that
    will want a place elsewhere, where they count as disrupted."""

    ref: Ref
    uid: str
    grace_seconds: int | None = None
    node_name: str = ""
    expected_pods: frozenset[str] | None = None
    condition: str = ""
    policy: str = ""
    moved: tuple[str, ...] | None = None

    @property
    def lane(self) -> str:
        return str(self.ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictPod(Action):
    """Through the Eviction API, with a UID precondition: PodDisruptionBudgets hold."""

    ref: Ref
    uid: str
    node_name: str = ""

    @property
    def lane(self) -> str:
        return str(self.ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchInstances(Action):
    """One fleet call for claims that already carry its group and request."""

    request: FleetRequest
    claims: tuple[str, ...]

    @property
    def lane(self) -> str:
        return f"fleet/{self.request.group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsureTemplate(Action):
    """Make a launch template (or find it made) before the fleet call that will name it."""

    template: LaunchTemplate

    @property
    def lane(self) -> str:
        return f"template/{self.template.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateInstance(Action):
    """Always by instance ID."""

    instance_id: str

    @property
    def lane(self) -> str:
        return f"instance/{self.instance_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TagInstance(Action):
    instance_id: str
    tags: Mapping[str, str]

    @property
    def lane(self) -> str:
        return f"instance/{self.instance_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsureInstanceProfile(Action):
    """Make (or find) the instance profile of a node class and attach the role."""

    class_name: str
    profile: str
    role: str
    path: str
    tags: Mapping[str, str]

    @property
    def lane(self) -> str:
        return f"profile/{self.profile}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateClass(Action):
    """Ask EC2 whether it would let us launch from a node class, by a request that is made for this and launches
    nothing; its group is the `DryRun`'s identity."""

    class_name: str
    request: FleetRequest

    @property
    def lane(self) -> str:
        return f"validation/{self.class_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteClassResources(Action):
    """Delete the launch templates (by tag) and, when `profile_path` is set, the instance profiles of a node class.

    Its lane is the class's own, so that a finalizer is removed after it, and only if it came off.
    """

    class_name: str
    profile_path: str = ""

    @property
    def lane(self) -> str:
        return f"ec2nodeclass/{self.class_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteUnused(Action):
    """A launch template or an instance profile that nothing needs."""

    resource: Resource

    @property
    def lane(self) -> str:
        return f"{self.resource.kind}/{self.resource.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteMessage(Action):
    message: Message

    @property
    def lane(self) -> str:
        return f"message/{self.message.id}"


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes event. Equal (`ref`, `reason`, `dedupe`) within `dedupe_seconds` is written once; with the same
    message as well, within `same_seconds`."""

    ref: Ref
    uid: str
    type: str
    reason: str
    message: str
    dedupe: str = ""
    dedupe_seconds: int = 120
    same_seconds: int = 0

    def standing(self) -> Event:
        """The same about how things stand: emitted again when that changes, and else after an hour."""
        return replace(self, same_seconds=STANDING_SECONDS)


#: Kubernetes keeps events for an hour.
STANDING_SECONDS: Final = 3600
#: The code of a reason that is our own fault.
INTERNAL_ERROR = "InternalError"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was not done: about which object (`pod/ns/name`, `node/name`, `nodepool/name`), and why."""

    subject: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Nomination:
    """A pod is expected on a node or claim (a key of `state_nodes`); until then the node is not disrupted.

    `since` is when it was expected there first. One that is `over` says the reverse: the pod was not bound there, and
    is expected there no more.
    """

    pod_uid: str
    target: str
    until: datetime
    since: datetime | None = None
    over: bool = False


@dataclass(frozen=True, slots=True)
class Purchase:
    """The nodes that a pass buys for pods, at a price in millionths of a dollar per hour. `bound`: the least cost of
    nodes for these pods; None when it is not known."""

    nodes: int
    pods: int
    price: int
    bound: int | None = None

    @property
    def cost_ratio(self) -> float | None:
        """How many times the least it costs; None when that is not known, or nothing."""
        return self.price / self.bound if self.bound else None


@dataclass(frozen=True, slots=True)
class Plan:
    """`next_due` is when the world should be looked at again although nothing has happened (None: never)."""

    actions: tuple[Action, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    events: tuple[Event, ...] = ()
    nominations: tuple[Nomination, ...] = ()
    next_due: datetime | None = None
    #: True when the batch of pending pods was processed in this plan.
    provisioned: bool = False
    #: While the batch is open: when to look again for nodes that can be ordered before its close; None: not looked now.
    try_at: datetime | None = None
    #: The claims that will be created when the batch closes, if nothing changes until then.
    foreseen: tuple[NodeClaim, ...] = ()
    #: Whether this plan solved for the pods of the batch ahead of its close.
    ahead: bool = False
    #: By key of `state_nodes`: how many pods of CapacityBuffers the pass found room for there.
    buffer_pods: Mapping[str, int] = field(default_factory=dict)
    #: By key of `state_nodes`: when the passes began to find that a node cannot be read because of a bug.
    unread_since: Mapping[str, datetime] = field(default_factory=dict)
    #: The UIDs of the pods that wait for their first turn, because the pass had no work left for them; and of those
    #: that were refused for another reason while others wait.
    left_over: frozenset[str] = frozenset()
    had_turn: frozenset[str] = frozenset()
    #: The candidates for disruption for which the pass had no work left: the method, and the key of `state_nodes`.
    candidates_left_over: frozenset[tuple[str, str]] = frozenset()
    gauges: Mapping[tuple[PlanGauge, Labels], float] = field(default_factory=dict)
    #: What consolidation has promised, where there is anything to remember or to forget of it; what was measured now.
    accounts: Accounts | None = None
    measured: tuple[Measured, ...] = ()
    #: What is bought for the batch; None when it needs nothing, or when there was none.
    purchase: Purchase | None = None

    def __add__(self, other: Plan) -> Plan:
        """Both plans, this one's actions first."""
        return joined((self, other))


NOTHING = Plan()
_LISTED = ("actions", "refusals", "events", "nominations", "next_due", "measured", "foreseen")
#: What a plan says besides when it is due, and what few plans have of it.
_CONTENT: Final = attrgetter(*(one.name for one in fields(Plan) if one.name != "next_due"))
_REST: Final = attrgetter(*(one.name for one in fields(Plan) if one.name not in _LISTED))


def joined(plans: Iterable[Plan]) -> Plan:
    """Many plans as one, in order; like adding them, but at once."""
    parts = [plan for plan in plans if plan is not NOTHING]
    if len(parts) < 2:
        return parts[0] if parts else NOTHING
    due = earliest([plan.next_due for plan in parts])
    full = [plan for plan in parts if any(_CONTENT(plan))]  # most of the parts of a turn say only when they are due
    if not full:
        return next(plan for plan in parts if plan.next_due == due)
    if len(full) == 1:
        return full[0] if full[0].next_due == due else replace(full[0], next_due=due)
    return _with_the_rest(_listed(full, due), full)


def _listed(parts: Iterable[Plan], next_due: datetime | None) -> Plan:
    """What plans have in lists, as one plan with this time."""
    actions, refusals, events = list[Action](), list[Refusal](), list[Event]()
    nominations, measured, foreseen = list[Nomination](), list[Measured](), list[NodeClaim]()
    for plan in parts:
        actions += plan.actions
        refusals += plan.refusals
        events += plan.events
        nominations += plan.nominations
        measured += plan.measured
        foreseen += plan.foreseen
    first = Plan(tuple(actions), tuple(refusals), tuple(events), tuple(nominations), next_due)
    return replace(first, measured=tuple(measured), foreseen=tuple(foreseen)) if measured or foreseen else first


def _with_the_rest(listed: Plan, parts: Sequence[Plan]) -> Plan:
    """The plan, with what the others say once: the first purchase, all keys of maps and sets."""
    fuller = [plan for plan in parts if any(_REST(plan))]
    if not fuller:
        return listed
    if len(fuller) == 1:
        return replace(fuller[0], **{name: getattr(listed, name) for name in _LISTED})
    return replace(
        listed,
        provisioned=any(plan.provisioned for plan in fuller),
        ahead=any(plan.ahead for plan in fuller),
        try_at=earliest(plan.try_at for plan in fuller),
        purchase=next((plan.purchase for plan in fuller if plan.purchase is not None), None),
        accounts=next((plan.accounts for plan in fuller if plan.accounts is not None), None),
        left_over=frozenset().union(*(plan.left_over for plan in fuller)),
        had_turn=frozenset().union(*(plan.had_turn for plan in fuller)),
        candidates_left_over=frozenset().union(*(plan.candidates_left_over for plan in fuller)),
        buffer_pods={key: number for plan in fuller for key, number in plan.buffer_pods.items()},
        unread_since={key: since for plan in fuller for key, since in plan.unread_since.items()},
        gauges={key: value for plan in fuller for key, value in plan.gauges.items()},
    )
