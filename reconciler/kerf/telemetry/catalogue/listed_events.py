"""Every event of Karpenter's and of ours: on what, when, and how often. Source: operations reference §3.

`docs/reference/events.md` is rendered from it, and a test holds it against the reasons that the code writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kerf.telemetry.catalogue.listing import OWN, SAME

NORMAL, WARNING, EITHER = "Normal", "Warning", "Normal or Warning"
#: How often the same is written, by default.
_TWO_MINUTES: Final = "2 m"
#: While nothing changes.
_HOURLY: Final = "1 h, and 2 m when the text changes"
_ONCE: Final = "once for each cause during the life of the process"
_CLAIM, _NODE, _BOTH, _POOL, _CLASS = "NodeClaim", "Node", "Node, NodeClaim", "NodePool", "EC2NodeClass"
_POD, _LEASE = "Pod", "Lease"


@dataclass(frozen=True, slots=True)
class ListedEvent:
    """`objects`: the kinds that it is written on, by comma. `again`: after how long the same is written again."""

    objects: str
    reason: str
    type: str
    when: str
    again: str = _TWO_MINUTES
    karpenter: str = SAME

    @property
    def here(self) -> bool:
        """Whether it is ever written; else the row says what became of Karpenter's."""
        return not self.karpenter.startswith(("missing:", "renamed:"))


PODS: Final = (
    ListedEvent(_POD, "Nominated", NORMAL, "Kerf expects the pod on the named Node or NodeClaim"),
    ListedEvent(
        _POD,
        "FailedScheduling",
        WARNING,
        "No NodePool can host the pod, with each NodePool's reason and the edit that helps; or the pod is invalid",
        "5 m",
        "same; also while no NodePool is usable, where Karpenter writes no event",
    ),
    ListedEvent(
        _POD,
        "NotBound",
        WARNING,
        "The kube-scheduler did not bind the pod to the expected node; the nomination expires",
        karpenter=OWN,
    ),
    ListedEvent(
        _POD, "Evicted", NORMAL, "The API server accepted the eviction; the message has the reason of the disruption"
    ),
    ListedEvent(_POD, "Disrupted", NORMAL, "Kerf deletes the pod: the termination grace period of its node is over"),
    ListedEvent(_POD, "InvalidDoNotDisruptAnnotation", WARNING, "Neither `true` nor a duration", "1 h"),
    ListedEvent(
        _POD,
        "DoNotDisruptUntil",
        NORMAL,
        "The time until which the pod's do-not-disrupt annotation blocks disruption",
        "1 h",
    ),
    ListedEvent(
        _POD,
        "DoNotDisruptGracePeriodElapsed",
        NORMAL,
        "The duration of the pod's do-not-disrupt annotation is over",
        "1 h",
    ),
)

NODES: Final = (
    ListedEvent(_BOTH, "DisruptionBlocked", NORMAL, "The reason that blocks the disruption of a node", _HOURLY),
    ListedEvent(_BOTH, "DisruptionTerminating", NORMAL, "Kerf disrupts the node: the reason, and where its pods move"),
    ListedEvent(
        _BOTH,
        "Unconsolidatable",
        NORMAL,
        "The node is no candidate for consolidation, or a setting blocks a cheaper node",
        _ONCE,
        "same; not where its pods fit nowhere else or nothing is cheaper: `kerf why node` reports that",
    ),
    ListedEvent(
        _BOTH,
        "ConsolidationCandidate",
        NORMAL,
        "Kerf found a cheaper node: the savings and the pods that move",
        _HOURLY,
    ),
    ListedEvent(
        _BOTH, "ConsolidationRejected", NORMAL, "Kerf dropped the consolidation: churn, budget, scheduling", _HOURLY
    ),
    ListedEvent(
        f"{_BOTH}, {_POOL}",
        "ConsolidationApproved",
        NORMAL,
        "The score of a move under the policy Balanced; of several nodes on the NodePool",
    ),
    ListedEvent(
        _NODE, "FailedDraining", WARNING, "Pods wait for eviction; the PodDisruptionBudget that blocks one", _HOURLY
    ),
    ListedEvent(_NODE, "AwaitingVolumeDetachment", NORMAL, "Volumes of the node are still attached", _HOURLY),
    ListedEvent(
        _BOTH,
        "TerminationGracePeriodExpiring",
        WARNING,
        "The time at which Kerf has deleted all pods of the node",
        _HOURLY,
    ),
    ListedEvent(
        f"{_BOTH}, {_POOL}",
        "NodeRepairBlocked",
        WARNING,
        "Too many nodes are unhealthy",
        "1 h, and 15 m when the text changes",
        "same; each on its own object, where Karpenter writes all three on the Node",
    ),
    ListedEvent(_BOTH, "NodeUnhealthy", WARNING, "Kerf replaces the unhealthy node", karpenter=OWN),
    ListedEvent(_BOTH, "Expiring", EITHER, "The node expires soon; a warning when something blocks that", "1 h", OWN),
    ListedEvent(
        _CLAIM,
        "LimitsExceeded",
        WARNING,
        "The NodePool has reached its limits; Kerf deletes the NodeClaim",
        karpenter=OWN,
    ),
    ListedEvent(
        _CLAIM, "NotItsInstance", WARNING, "The NodeClaim names an instance whose tags belong to another", karpenter=OWN
    ),
    ListedEvent(_CLAIM, "DisruptionLaunching", NORMAL, "The NodeClaim replaces the named one", _HOURLY),
    ListedEvent(_CLAIM, "DisruptionWaitingReadiness", NORMAL, "The replacement is not initialized yet", _HOURLY),
    ListedEvent(_CLAIM, "FailedConsistencyCheck", WARNING, "The node has clearly less capacity than planned"),
    ListedEvent(_CLAIM, "InsufficientCapacityError", WARNING, "EC2 has no capacity; Kerf deletes the NodeClaim"),
    ListedEvent(_CLAIM, "UnregisteredTaintMissing", WARNING, "The node joined without `karpenter.sh/unregistered`"),
    ListedEvent(
        f"{_CLAIM}, {_POOL}",
        "DeletionHeld",
        WARNING,
        "Another client deleted many NodeClaims: the drain waits until the time in the message; "
        "the NodePool has the command that permits it",
        "10 m",
        OWN,
    ),
)

INTERRUPTIONS: Final = (
    ListedEvent(_BOTH, "SpotInterrupted", WARNING, "EC2 reclaims the spot instance"),
    ListedEvent(_BOTH, "CapacityReservationInstanceInterrupted", WARNING, "EC2 reclaims the reserved capacity"),
    ListedEvent(_BOTH, "SpotRebalanceRecommendation", NORMAL, "EC2 reports a higher risk of interruption"),
    ListedEvent(_BOTH, "InstanceStopping", WARNING, "EC2 stops the instance"),
    ListedEvent(_BOTH, "InstanceTerminating", WARNING, "EC2 terminates the instance"),
    ListedEvent(_BOTH, "InstanceUnhealthy", WARNING, "A status check fails, or EC2 has scheduled maintenance"),
    ListedEvent(_BOTH, "TerminatingOnInterruption", WARNING, "Kerf deletes the NodeClaim because of the interruption"),
)

POOLS: Final = (
    ListedEvent(
        _POOL,
        "DisruptionBlocked",
        NORMAL,
        "A budget of the NodePool allows no disruption for the reason",
        "1 h, and 1 m when the text changes",
    ),
    ListedEvent(
        _POOL, "NoCompatibleInstanceTypes", WARNING, "No instance type satisfies the requirements or minValues", "1 m"
    ),
    ListedEvent(_POOL, "ZonalShiftActive", WARNING, "ARC shifts traffic away from one of the NodePool's zones"),
    ListedEvent(
        _POOL,
        "MismatchesUnreadable",
        WARNING,
        "`kerf.sh/mismatches` is not readable; Kerf treats it as empty",
        karpenter=OWN,
    ),
    ListedEvent(_POOL, "ZonalShiftCleared", NORMAL, "The zonal shift has ended"),
    ListedEvent(
        _POOL,
        "InvalidNodePool",
        WARNING,
        "Requirements, limits or EC2NodeClass of the NodePool are invalid",
        "1 m",
        OWN,
    ),
    ListedEvent(_POOL, "Malformed", WARNING, "Kerf cannot decode the NodePool", "1 m", OWN),
    ListedEvent(_POOL, "InternalError", WARNING, "A bug of Kerf makes the NodePool unusable", "1 m", OWN),
    ListedEvent(
        _POOL, "BackOff", WARNING, "Kerf backs off after failures; the message has the end of the back-off", "1 m", OWN
    ),
    ListedEvent(_POOL, "InvalidBudget", WARNING, "A budget is invalid: Kerf disrupts no node meanwhile", "1 h", OWN),
    ListedEvent(
        _POOL,
        "InvalidAnnotation",
        WARNING,
        "A consolidation threshold or an annotation of approval or canary is invalid",
        "1 h",
        OWN,
    ),
    ListedEvent(_POOL, "ChangeAwaitsApproval", NORMAL, "Nodes are not replaced before approval", "1 h", OWN),
    ListedEvent(
        _POOL, "CanaryPassed", NORMAL, "The pods run on the canary: the other drifted nodes are replaced", "1 h", OWN
    ),
    ListedEvent(_POOL, "CanaryFailed", WARNING, "Pods fail on the canary: the other nodes wait", "1 h", OWN),
    ListedEvent(
        _POOL,
        "ConsolidationMeasured",
        EITHER,
        "Promised and measured savings of consolidation; a warning for a loss",
        karpenter=OWN,
    ),
    ListedEvent(
        f"{_POOL}, {_CLASS}",
        "GarbageCollectionHalted",
        WARNING,
        "Too many instances have no NodeClaim; how to allow their termination",
        "10 m",
        OWN,
    ),
    ListedEvent(
        f"{_POOL}, {_CLASS}",
        "GarbageCollected",
        WARNING,
        "Kerf terminates instances that have no NodeClaim",
        karpenter=OWN,
    ),
    ListedEvent(
        f"{_POOL}, {_CLAIM}",
        "(empty)",
        WARNING,
        "The EC2NodeClass cannot be resolved; the service-linked role for spot cannot be created",
        karpenter="renamed: the conditions `NodeClassReady` and `Launched`, each with its event",
    ),
    ListedEvent(
        _CLASS, "WaitingOnNodeClaimTermination", NORMAL, "The deletion waits for NodeClaims; the message names five"
    ),
)

OTHERS: Final = (
    ListedEvent(
        f"{_CLAIM}, {_POOL}, {_CLASS}, CapacityBuffer",
        "(the type of the condition)",
        NORMAL,
        "A condition changed: old and new status, reason and message",
        "1 s",
        "same; also with DISABLE_CLUSTER_STATE_OBSERVABILITY",
    ),
    ListedEvent(
        _NODE,
        "(the type of the condition)",
        NORMAL,
        "A condition of the node changed",
        karpenter="missing: Kubernetes itself writes `NodeReady`, `NodeNotReady` and the like",
    ),
    ListedEvent(
        f"{_BOTH}, {_POOL}, {_CLASS}",
        "Finalized",
        NORMAL,
        "A finalizer was removed",
        karpenter="missing: the object no longer exists; the log has `deleted nodeclaim`",
    ),
    ListedEvent(
        "any",
        "Failed<Action>",
        WARNING,
        "An action that an operator must fix: forbidden, rejected as invalid, or a bug (`FailedEvictPod`, …)",
        "10 m",
        OWN,
    ),
    ListedEvent("any", "Unreadable", WARNING, "Kerf cannot decode the object, and ignores it", karpenter=OWN),
    ListedEvent(
        _LEASE,
        "LeaderElection",
        NORMAL,
        "Another replica leads",
        karpenter="missing: the log has `leading`, the Lease has the holder",
    ),
    ListedEvent(
        _LEASE, "WaitsForKarpenter", NORMAL, "Karpenter holds the Lease: Kerf only observes", "when it begins", OWN
    ),
    ListedEvent(
        _LEASE, "WaitsForKerf", NORMAL, "Another Kerf holds the Lease: Kerf only observes", "when it begins", OWN
    ),
    ListedEvent(
        _LEASE,
        "LeaseUnread",
        WARNING,
        "Kerf cannot read whether Karpenter holds the Lease, and only observes",
        "when it begins",
        OWN,
    ),
)

EVENTS: Final[dict[str, tuple[ListedEvent, ...]]] = {
    "Pods": PODS,
    "Nodes and NodeClaims": NODES,
    "Interruptions": INTERRUPTIONS,
    "NodePools and EC2NodeClasses": POOLS,
    "Other events": OTHERS,
}
