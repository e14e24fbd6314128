"""The interruption queue: long polling for messages, and deleting what has been dealt with.

After a poll that came back full there are probably more: these are fetched at once, without waiting, so that a storm is
dealt with in a few looks at the cluster and not in one for every ten messages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from kerf.aws.requests.batches import Batches, Outcomes
from kerf.aws.requests.clients import Clients
from kerf.aws.requests.errors import translated
from kerf.model.aws.interruptions import Message
from kerf.ports import AlreadyGone, PortError, Unavailable
from kerf_api import bounds

MOST_MESSAGES: Final = 10
#: So many are handed on at once, and for so long they are fetched: they have to be dealt with while no other reader can
#: see them.
MOST_AT_ONCE: Final = 500
FETCHING_SECONDS: Final = 3.0
#: A message that was received and not deleted comes again after this long.
VISIBILITY_SECONDS: Final = 20
_UNANSWERED: Final = Unavailable("sqs:DeleteMessage: the answer does not name the message")


class Queue:
    """One SQS queue by name. A poll waits up to `wait_seconds` (at most 20) for the first message."""

    def __init__(
        self, clients: Clients, name: str, wait_seconds: int, elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        self._clients = clients
        self._name = name
        self._wait_seconds = wait_seconds
        self._elapsed = elapsed
        self._url = ""
        self._deletions = Batches(self._delete, MOST_MESSAGES)

    def receive(self) -> tuple[Message, ...]:
        """Up to MOST_AT_ONCE; none when no queue is configured. Raises AlreadyGone when there is no such queue."""
        if not self._name:
            return ()
        try:
            found = self._poll(self._wait_seconds)
        except AlreadyGone:
            self._url = ""  # it may be made again, at another address
            raise
        more, enough = len(found) == MOST_MESSAGES, self._elapsed() + FETCHING_SECONDS
        while more and len(found) < MOST_AT_ONCE and self._elapsed() < enough:
            try:
                found += (last := self._poll(0))
            except PortError:  # what has been received is hidden from others: it is handed on
                break
            more = bool(last)
        return tuple(map(_message, found))

    def _poll(self, wait_seconds: int) -> list[Any]:
        with translated("sqs:ReceiveMessage"):
            answer = self._sqs().receive_message(
                QueueUrl=self._address(),
                MaxNumberOfMessages=MOST_MESSAGES,
                VisibilityTimeout=VISIBILITY_SECONDS,
                WaitTimeSeconds=wait_seconds,
                MessageSystemAttributeNames=["SentTimestamp"],
            )
        return list(answer.get("Messages", ()))

    def delete(self, message: Message) -> None:
        """Raises AlreadyGone when the receipt is not (or no longer) good. Several at one time go with one call."""
        self._deletions.ask(message.receipt)

    def _delete(self, receipts: Sequence[str]) -> Outcomes:
        entries = [{"Id": str(number), "ReceiptHandle": receipt} for number, receipt in enumerate(receipts)]
        with translated("sqs:DeleteMessage"):
            answer = self._sqs().delete_message_batch(QueueUrl=self._address(), Entries=entries)
        failed = {row["Id"]: _failure(row) for row in answer.get("Failed", ())}
        done = dict.fromkeys(row["Id"] for row in answer.get("Successful", ()))
        outcomes = {**done, **failed}
        return {entry["ReceiptHandle"]: outcomes.get(entry["Id"], _UNANSWERED) for entry in entries}

    def _sqs(self) -> Any:
        return self._clients.get("sqs", extra_read_seconds=self._wait_seconds)

    def _address(self) -> str:
        if not self._url:
            with translated("sqs:GetQueueUrl"):
                self._url = self._sqs().get_queue_url(QueueName=self._name)["QueueUrl"]
        return self._url


def _failure(row: Any) -> PortError:
    """The reason for which SQS keeps one message of several."""
    words = f"sqs:DeleteMessage: {row.get('Code', '')}: {row.get('Message', '')}"
    return AlreadyGone(words) if row.get("SenderFault") else Unavailable(words)


def _message(row: Any) -> Message:
    sent = row.get("Attributes", {}).get("SentTimestamp", "")
    return Message(
        id=row["MessageId"],
        receipt=row["ReceiptHandle"],
        body=row.get("Body", ""),
        sent=bounds.instant_of_unix(sent),
    )
