"""Messages of the interruption queue, and what they announce."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class InterruptionKind(StrEnum):
    """What is going to happen to an instance, by the names of Karpenter's metrics; NO_OP: nothing that matters."""

    SPOT_INTERRUPTED = "spot_interrupted"
    CAPACITY_RESERVATION_INTERRUPTED = "capacity_reservation_interrupted"
    REBALANCE_RECOMMENDATION = "rebalance_recommendation"
    SCHEDULED_CHANGE = "scheduled_change"
    INSTANCE_STOPPED = "instance_stopped"
    INSTANCE_TERMINATED = "instance_terminated"
    NO_OP = "no_op"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the interruption queue: its raw body, and the receipt that deletes it."""

    id: str
    receipt: str
    body: str
    sent: datetime | None = None


@dataclass(frozen=True, slots=True)
class Interruption:
    """A parsed message: what happens to which instances. Source: EventBridge events of EC2."""

    kind: InterruptionKind
    instance_ids: tuple[str, ...]
    message: Message
    at: datetime | None = None
