"""The interruption queue: long polling for messages, and deleting what has been dealt with."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from reconciler.aws.clients import Clients
from reconciler.aws.errors import translated
from reconciler.model.cloud import Message
from reconciler.ports import AlreadyGone

MOST_MESSAGES: Final = 10
#: A message that was received and not deleted comes again after this long.
VISIBILITY_SECONDS: Final = 20


class Queue:
    """One SQS queue by name. A poll waits up to `wait_seconds` (at most 20) for the first message."""

    def __init__(self, clients: Clients, name: str, wait_seconds: int) -> None:
        self._clients = clients
        self._name = name
        self._wait_seconds = wait_seconds
        self._url = ""

    def receive(self) -> tuple[Message, ...]:
        """Up to ten messages; none when no queue is configured. Raises AlreadyGone when there is no such queue."""
        if not self._name:
            return ()
        try:
            with translated("sqs:ReceiveMessage"):
                answer = self._sqs().receive_message(
                    QueueUrl=self._address(),
                    MaxNumberOfMessages=MOST_MESSAGES,
                    VisibilityTimeout=VISIBILITY_SECONDS,
                    WaitTimeSeconds=self._wait_seconds,
                    MessageSystemAttributeNames=["SentTimestamp"],
                )
        except AlreadyGone:
            self._url = ""  # it may be made again, at another address
            raise
        return tuple(_message(row) for row in answer.get("Messages", ()))

    def delete(self, message: Message) -> None:
        """Raises AlreadyGone when the receipt is not (or no longer) good."""
        with translated("sqs:DeleteMessage"):
            self._sqs().delete_message(QueueUrl=self._address(), ReceiptHandle=message.receipt)

    def _sqs(self) -> Any:
        return self._clients.get("sqs", extra_read_seconds=self._wait_seconds)

    def _address(self) -> str:
        if not self._url:
            with translated("sqs:GetQueueUrl"):
                self._url = self._sqs().get_queue_url(QueueName=self._name)["QueueUrl"]
        return self._url


def _message(row: Any) -> Message:
    sent = row.get("Attributes", {}).get("SentTimestamp", "")
    return Message(
        id=row["MessageId"],
        receipt=row["ReceiptHandle"],
        body=row.get("Body", ""),
        sent=datetime.fromtimestamp(int(sent) / 1000, UTC) if sent.isdigit() else None,
    )
