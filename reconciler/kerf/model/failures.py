"""Failures of actions, as data: `kerf status`, `kerf why` and conditions report the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kerf.model.instants import rfc3339
from kerf_api import durations

#: Outcomes that another attempt does not fix: a person must change a permission, the object or Kerf.
STUCK: Final = frozenset({"forbidden", "invalid", "failed"})
#: The reasons of the conditions Drained and InstanceTerminating while their action fails.
EVICTION_FAILED: Final = "EvictionFailed"
TERMINATION_FAILED: Final = "TerminationFailed"
#: The reason of the event of a NodeClaim that Kerf deletes, for EC2 refused its launch.
NO_CAPACITY: Final = "InsufficientCapacityError"
#: The verbs of new NodeClaims and of launches; their object is the NodePool.
CREATE: Final = "CreateNodeClaim"
LAUNCH: Final = "LaunchInstances"
#: The verb of reads of AWS.
READ: Final = "Read"
#: The verb, the object and the outcome of slow answers of the API server.
ANSWER: Final = "Answer"
API_SERVER: Final = "kubernetes/api-server"
SLOW: Final = "slow"
#: The outcomes of writes that another writer undoes each time, and of those that it comes before each time.
CONTESTED: Final = "contested"
OVERTAKEN: Final = "overtaken"
#: The verbs and the objects of parts of this process that fail: a bug in deciding, or events that are not written.
DECIDE: Final = ("Decide", "loop")
PROPOSE: Final = ("ProposeDisruption", "loop")
WRITE_EVENTS: Final = ("WriteEvents", "kubernetes/events")
#: The action whose failure a condition reports, by the reason of the condition.
_REPORTED: Final = {EVICTION_FAILED: "EvictPod", TERMINATION_FAILED: "TerminateInstance"}

#: The verbs of the actions that AWS answers.
_OF_AWS: Final = frozenset(
    {
        "DeleteClassResources",
        "DeleteMessage",
        "DeleteUnused",
        "EnsureInstanceProfile",
        "EnsureTemplate",
        LAUNCH,
        READ,
        "TagInstance",
        "TerminateInstance",
        "ValidateClass",
    }
)
_OTHER_WRITER: Final = "find out who else writes the object (kubectl get -o yaml --show-managed-fields) and have it"
_FIXES: Final = {
    "forbidden": "give Kerf's account the rules of the chart's ClusterRole; kerf preflight lists the missing ones",
    "invalid": "correct the field that the error names",
    "failed": "correct what the error names; if nothing is wrong there, report it as a bug in Kerf",
    CONTESTED: f"{_OTHER_WRITER} leave out what Kerf writes; Kerf goes on, slowly",
    OVERTAKEN: f"{_OTHER_WRITER} write less often; Kerf goes on, slowly",
    SLOW: "check etcd, the load of the API server, its admission webhooks, and the network to it",
}
#: What another writer does to a write.
_INTERFERENCE: Final = {
    CONTESTED: "is undone by another writer each time",
    OVERTAKEN: "meets a conflict each time: another writer changes the object first",
}
#: What helps when AWS denies an action.
IAM_FIX: Final = "give Kerf's IAM role the permission; kerf preflight lists the missing ones"


@dataclass(frozen=True, slots=True)
class Failure:
    """An action that fails.

    Attributes:
        verb: the name of the action, as metrics and events have it (`EvictPod`, `LaunchInstances`).
        object: the object of the action, as `kind/[namespace/]name` in lower case.
        outcome: the outcome of the latest attempt, as in `kerf_actions_total`; or `SLOW`, `CONTESTED`, `OVERTAKEN`.
        error: the error of the latest attempt, in the words of the API; of the last two, the fields that it writes.
        since: the first attempt that failed, with no success since.
        latest: the latest attempt.
        times: the number of attempts that failed since then; 0 when it is not known.
        at_least: earlier attempts may have failed, too: before this process had the lease, or events expired.
    """

    verb: str
    object: str
    outcome: str
    error: str
    since: datetime
    latest: datetime
    times: int = 1
    at_least: bool = False

    @property
    def text(self) -> str:
        """The failure in words, without the object."""
        if self.outcome == SLOW:
            return f"answers slowly: {self.error}"
        if self.outcome in _INTERFERENCE:
            return f"{self.verb}{f' of {self.error}' if self.error else ''} {_INTERFERENCE[self.outcome]}"
        return f"{self.verb} {'is forbidden' if self.outcome == 'forbidden' else 'fails'}: {self.error or self.outcome}"

    @property
    def fix(self) -> str:
        """What helps, by what failed and how."""
        if self.object == of_aws("queue") and self.outcome != "forbidden":
            return "create the queue, or correct settings.interruptionQueue; kerf preflight checks queue and rules"
        if self.outcome == "forbidden" and self.verb in _OF_AWS:
            return IAM_FIX
        return _FIXES.get(
            self.outcome, "Kerf tries again by itself; if it persists, check the network and the API's limits"
        )

    def standing(self, now: datetime) -> str:
        """The failure in words, with how often and for how long."""
        length = durations.go_text(timedelta(seconds=max(round((now - self.since).total_seconds()), 0)))
        attempts = f"{self.times} attempt{'' if self.times == 1 else 's'}, " if self.times else ""
        least = "at least " if self.at_least else ""
        return f"{self.text} ({attempts}since {least}{rfc3339(self.since)}, {length} ago)"


def of_aws(question: str) -> str:
    """The object of the failure of a read of AWS, such as `queue` or `class/default`."""
    return f"aws/{question.replace(' ', '-')}"


def key(verb: str, subject: str) -> str:
    """The key of an action's failure in `Snapshot.failures`."""
    return f"{verb} {subject}"


def known_end(failures: Mapping[str, Failure], reason: str) -> bool:
    """Whether a failure is known that a condition with this reason would only repeat; True for any other reason."""
    verb = _REPORTED.get(reason)
    return verb is None or any(one.verb == verb for one in failures.values())


def eviction(failures: Mapping[str, Failure], pod: str) -> Failure | None:
    """The failure of the eviction of a pod (`namespace/name`), if it fails."""
    return failures.get(key("EvictPod", f"pod/{pod}"))


def launch(failures: Mapping[str, Failure], pool: str) -> Failure | None:
    """The failure of the launches of a NodePool, by its name, if they fail. Each attempt is a new fleet: only what they
    are made for stays."""
    return failures.get(key(LAUNCH, f"nodepool/{pool}"))


def of(failures: Mapping[str, Failure], *subjects: str) -> tuple[Failure, ...]:
    """The failures about some objects, the oldest first."""
    return ordered(one for one in failures.values() if one.object in subjects)


def of_coming(failures: Mapping[str, Failure], claim: str, pool: str, *, launched: bool) -> tuple[Failure, ...]:
    """The failures that delay a NodeClaim of a NodePool, both by name: its own, and before its launch those of the
    launches of the NodePool."""
    failed = None if launched else launch(failures, pool)
    return (*of(failures, f"nodeclaim/{claim}"), *(() if failed is None else (failed,)))


def of_class(failures: Mapping[str, Failure], name: str) -> tuple[Failure, ...]:
    """The failing reads of AWS and the dry run that an EC2NodeClass, by its name, waits for; the oldest first."""
    asked = [key(READ, of_aws(one)) for one in ("cluster", f"class/{name}", "region")]
    asked.append(key("ValidateClass", f"ec2nodeclass/{name}"))
    return ordered(failures[one] for one in asked if one in failures)


def ordered(failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """The oldest first; ties by verb and object."""
    return tuple(sorted(failures, key=lambda one: (one.since, one.verb, one.object)))
