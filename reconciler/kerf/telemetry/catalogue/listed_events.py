"""Every event of Karpenter's and of ours: on what, when, and how often. Source: operations reference §3.

`docs/reference/events.md` is rendered from it, and a test holds it against the reasons that the code writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kerf.telemetry.catalogue.listing import OWN, SAME

NORMAL, WARNING, EITHER = "Normal", "Warning", "Normal or Warning"
#: How often the same is written, where nothing else is said.
_TWO_MINUTES: Final = "2 m"
#: While nothing changes.
_HOURLY: Final = "1 h, and 2 m when the text changes"
_ONCE: Final = "once while the process runs, for each cause"
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
    ListedEvent(_POD, "Nominated", NORMAL, "It is expected on a node or node claim, which is named"),
    ListedEvent(
        _POD,
        "FailedScheduling",
        WARNING,
        "No place was found, with the answer of each NodePool and the edit that would help; or it makes no sense",
        "5 m",
        "same; also while no NodePool can be used, of which Karpenter says nothing",
    ),
    ListedEvent(
        _POD,
        "NotBound",
        WARNING,
        "It was expected on a node and not bound there: it is expected there no more",
        karpenter=OWN,
    ),
    ListedEvent(_POD, "Evicted", NORMAL, "Its eviction was accepted, and why its node goes"),
    ListedEvent(_POD, "Disrupted", NORMAL, "It is deleted: the time that its node has to drain is over"),
    ListedEvent(_POD, "InvalidDoNotDisruptAnnotation", WARNING, "Neither `true` nor a duration", "1 h"),
    ListedEvent(_POD, "DoNotDisruptUntil", NORMAL, "Until when it is protected", "1 h"),
    ListedEvent(_POD, "DoNotDisruptGracePeriodElapsed", NORMAL, "It is protected no more", "1 h"),
)

NODES: Final = (
    ListedEvent(_BOTH, "DisruptionBlocked", NORMAL, "What holds a node that would be disrupted", _HOURLY),
    ListedEvent(_BOTH, "DisruptionTerminating", NORMAL, "It goes, why, and what becomes of its pods"),
    ListedEvent(
        _BOTH,
        "Unconsolidatable",
        NORMAL,
        "Consolidation never looks at it, or a setting stands in the way of something cheaper",
        _ONCE,
        "same; not where its pods have no other place or nothing is cheaper: `kerf why node` says so",
    ),
    ListedEvent(
        _BOTH, "ConsolidationCandidate", NORMAL, "Something cheaper was found, what it saves, whose pods move", _HOURLY
    ),
    ListedEvent(_BOTH, "ConsolidationRejected", NORMAL, "It was dropped again: churn, budget, scheduling", _HOURLY),
    ListedEvent(
        f"{_BOTH}, {_POOL}",
        "ConsolidationApproved",
        NORMAL,
        "Its score, policy Balanced; of several nodes on the NodePool",
    ),
    ListedEvent(
        _NODE, "FailedDraining", WARNING, "Pods are waiting to be evicted; which PodDisruptionBudget holds one", _HOURLY
    ),
    ListedEvent(_NODE, "AwaitingVolumeDetachment", NORMAL, "Its volumes are not detached yet", _HOURLY),
    ListedEvent(_BOTH, "TerminationGracePeriodExpiring", WARNING, "When all its pods will be gone", _HOURLY),
    ListedEvent(
        f"{_BOTH}, {_POOL}",
        "NodeRepairBlocked",
        WARNING,
        "Too many nodes are sick",
        "1 h, and 15 m when the text changes",
        "same; each on its own object, where Karpenter has all three on the Node",
    ),
    ListedEvent(_BOTH, "NodeUnhealthy", WARNING, "It is sick, and replaced for it", karpenter=OWN),
    ListedEvent(_BOTH, "Expiring", EITHER, "It is about to expire; a warning when something holds it", "1 h", OWN),
    ListedEvent(_CLAIM, "LimitsExceeded", WARNING, "Its NodePool's limits leave no room; it is deleted", karpenter=OWN),
    ListedEvent(_CLAIM, "NotItsInstance", WARNING, "It names an instance that is not its own by tags", karpenter=OWN),
    ListedEvent(_CLAIM, "DisruptionLaunching", NORMAL, "It replaces another, which is named", _HOURLY),
    ListedEvent(_CLAIM, "DisruptionWaitingReadiness", NORMAL, "The replacement is not ready yet", _HOURLY),
    ListedEvent(_CLAIM, "FailedConsistencyCheck", WARNING, "The node has clearly less than was planned"),
    ListedEvent(_CLAIM, "InsufficientCapacityError", WARNING, "EC2 has none; the node claim is deleted"),
    ListedEvent(_CLAIM, "UnregisteredTaintMissing", WARNING, "The node joined without `karpenter.sh/unregistered`"),
    ListedEvent(
        f"{_CLAIM}, {_POOL}",
        "DeletionHeld",
        WARNING,
        "Others deleted many at once: the drain waits, until when; on the NodePool how to let them go",
        "10 m",
        OWN,
    ),
)

INTERRUPTIONS: Final = (
    ListedEvent(_BOTH, "SpotInterrupted", WARNING, "EC2 takes the instance back"),
    ListedEvent(_BOTH, "CapacityReservationInstanceInterrupted", WARNING, "EC2 takes the reserved capacity back"),
    ListedEvent(_BOTH, "SpotRebalanceRecommendation", NORMAL, "EC2 says that the instance is at risk"),
    ListedEvent(_BOTH, "InstanceStopping", WARNING, "The instance stops"),
    ListedEvent(_BOTH, "InstanceTerminating", WARNING, "The instance ends"),
    ListedEvent(_BOTH, "InstanceUnhealthy", WARNING, "A status check fails, or EC2 has scheduled something"),
    ListedEvent(_BOTH, "TerminatingOnInterruption", WARNING, "The node claim is deleted for it"),
)

POOLS: Final = (
    ListedEvent(
        _POOL, "DisruptionBlocked", NORMAL, "Its budget allows none for a reason", "1 h, and 1 m when the text changes"
    ),
    ListedEvent(_POOL, "NoCompatibleInstanceTypes", WARNING, "Its requirements, or minValues, leave no type", "1 m"),
    ListedEvent(_POOL, "ZonalShiftActive", WARNING, "Traffic is shifted away from one of its zones"),
    ListedEvent(
        _POOL,
        "MismatchesUnreadable",
        WARNING,
        "`kerf.sh/mismatches` is not readable: it counts as empty",
        karpenter=OWN,
    ),
    ListedEvent(_POOL, "ZonalShiftCleared", NORMAL, "That is over"),
    ListedEvent(_POOL, "InvalidNodePool", WARNING, "Its requirements, limits or class make no sense", "1 m", OWN),
    ListedEvent(_POOL, "Malformed", WARNING, "It cannot be read", "1 m", OWN),
    ListedEvent(_POOL, "InternalError", WARNING, "A bug of ours keeps it from being used", "1 m", OWN),
    ListedEvent(_POOL, "BackOff", WARNING, "It is left alone after failures, until when", "1 m", OWN),
    ListedEvent(_POOL, "InvalidBudget", WARNING, "A budget cannot be read: no node goes meanwhile", "1 h", OWN),
    ListedEvent(_POOL, "InvalidAnnotation", WARNING, "A threshold of consolidation cannot be read", "1 h", OWN),
    ListedEvent(
        _POOL,
        "ConsolidationMeasured",
        EITHER,
        "What consolidation promised and saved; a warning when it cost",
        karpenter=OWN,
    ),
    ListedEvent(
        f"{_POOL}, {_CLASS}",
        "GarbageCollectionHalted",
        WARNING,
        "Nothing stands for too many instances; how to allow their end",
        "10 m",
        OWN,
    ),
    ListedEvent(
        f"{_POOL}, {_CLASS}", "GarbageCollected", WARNING, "Nothing stood for them: they are ended", karpenter=OWN
    ),
    ListedEvent(
        f"{_POOL}, {_CLAIM}",
        "(empty)",
        WARNING,
        "The node class cannot be resolved; the service-linked role of spot cannot be made",
        karpenter="renamed: the conditions `NodeClassReady` and `Launched` say so, each with its event",
    ),
    ListedEvent(
        _CLASS, "WaitingOnNodeClaimTermination", NORMAL, "Its deletion waits for node claims, five of them named"
    ),
)

OTHERS: Final = (
    ListedEvent(
        f"{_CLAIM}, {_POOL}, {_CLASS}, CapacityBuffer",
        "(the type of the condition)",
        NORMAL,
        "A condition changed: from and to which status, reason and message",
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
        karpenter="missing: the object is gone then; the log says `deleted nodeclaim`",
    ),
    ListedEvent(
        "any",
        "Failed<Action>",
        WARNING,
        "An action that somebody must mend: forbidden, refused as invalid, or a bug (`FailedEvictPod`, …)",
        "10 m",
        OWN,
    ),
    ListedEvent("any", "Unreadable", WARNING, "It cannot be read, and is left alone", karpenter=OWN),
    ListedEvent(
        _LEASE,
        "LeaderElection",
        NORMAL,
        "Another replica leads",
        karpenter="missing: the log says `leading`, the Lease who does",
    ),
    ListedEvent(_LEASE, "WaitsForKarpenter", NORMAL, "Karpenter holds it: we only watch", "when it begins", OWN),
    ListedEvent(_LEASE, "WaitsForKerf", NORMAL, "Another Kerf holds it: we only watch", "when it begins", OWN),
    ListedEvent(
        _LEASE, "LeaseUnread", WARNING, "Nobody knows whether Karpenter holds it: we only watch", "when it begins", OWN
    ),
)

EVENTS: Final[dict[str, tuple[ListedEvent, ...]]] = {
    "Pods": PODS,
    "Nodes and node claims": NODES,
    "What EC2 announces": INTERRUPTIONS,
    "NodePools and node classes": POOLS,
    "All the others": OTHERS,
}
