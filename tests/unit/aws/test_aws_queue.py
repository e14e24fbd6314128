"""How many messages of the interruption queue are fetched at once."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from kerf.aws.interruptions import MOST_AT_ONCE, Queue
from kerf.ports import Throttled


class Sqs:
    """A queue that holds `left` messages, and is throttled from the call `breaks` on; also what hands out clients."""

    def __init__(self, left: int, breaks: int = 10**6) -> None:
        self._left, self._breaks = left, breaks
        self.waited = list[int]()

    def get(self, service: str, **_: Any) -> Sqs:
        assert service == "sqs"
        return self

    def get_queue_url(self, **_: Any) -> dict[str, str]:
        return {"QueueUrl": "https://sqs.example.internal/q"}

    def receive_message(self, **given: Any) -> dict[str, Any]:
        if len(self.waited) == self._breaks:
            raise ClientError({"Error": {"Code": "RequestThrottled", "Message": "slow down"}}, "ReceiveMessage")
        self.waited.append(given["WaitTimeSeconds"])
        count = min(given["MaxNumberOfMessages"], self._left)
        self._left -= count
        rows = [{"MessageId": f"{self._left}-{n}", "ReceiptHandle": "r", "Body": "{}"} for n in range(count)]
        return {"Messages": rows} if rows else {}


@pytest.mark.parametrize(
    ("left", "waited"),
    [(0, [20]), (9, [20]), (10, [20, 0]), (25, [20, 0, 0, 0])],
)
def test_after_a_full_poll_the_rest_is_fetched_without_waiting(left: int, waited: list[int]) -> None:
    sqs = Sqs(left)
    found = Queue(sqs, "q", 20).receive()  # type: ignore[arg-type]
    assert len({message.id for message in found}) == left
    assert sqs.waited == waited


def test_no_more_at_once_than_can_be_dealt_with_in_time() -> None:
    queue = Queue(Sqs(MOST_AT_ONCE + 15), "q", 20)  # type: ignore[arg-type]
    assert [len(queue.receive()) for _ in range(3)] == [MOST_AT_ONCE, 15, 0]


def test_no_longer_than_they_are_hidden_from_others() -> None:
    seconds = iter(range(99))
    queue = Queue(Sqs(100), "q", 20, elapsed=lambda: float(next(seconds)))  # type: ignore[arg-type]
    assert len(queue.receive()) == 30


def test_what_was_received_is_handed_on_when_the_next_poll_fails() -> None:
    queue = Queue(Sqs(30, breaks=2), "q", 20)  # type: ignore[arg-type]
    assert len(queue.receive()) == 20
    with pytest.raises(Throttled):
        queue.receive()
