"""SQS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .rule import Call, outside, rule

_SQS: Final = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_"
BATCHES: Final = ("sqs:DeleteMessageBatch", "sqs:SendMessageBatch", "sqs:ChangeMessageVisibilityBatch")


@rule("sqs:ReceiveMessage", address=f"{_SQS}ReceiveMessage.html")
def received_messages(call: Call) -> Iterator[str]:
    """ReceiveMessage returns 1 to 10 messages."""
    yield from outside(call.parameters, "MaxNumberOfMessages", 1, 10)


@rule("sqs:ReceiveMessage", address=f"{_SQS}SetQueueAttributes.html")
def receive_wait(call: Call) -> Iterator[str]:
    """A long poll waits 0 to 20 seconds."""
    yield from outside(call.parameters, "WaitTimeSeconds", 0, 20)


@rule(
    *("sqs:ReceiveMessage", "sqs:ChangeMessageVisibility"),
    address=f"{_SQS}ChangeMessageVisibility.html",
)
def visibility(call: Call) -> Iterator[str]:
    """The visibility timeout is 0 to 43200 seconds (12 hours)."""
    yield from outside(call.parameters, "VisibilityTimeout", 0, 43200)


@rule(*BATCHES, address=f"{_SQS}DeleteMessageBatch.html", code="AWS.SimpleQueueService.TooManyEntriesInBatchRequest")
def batch_size(call: Call) -> Iterator[str]:
    """A batch has one to ten entries."""
    if not 1 <= len(call.parameters.get("Entries", ())) <= 10:
        yield f"{len(call.parameters.get('Entries', ()))} entries"


@rule(*BATCHES, address=f"{_SQS}DeleteMessageBatch.html", code="AWS.SimpleQueueService.BatchEntryIdsNotDistinct")
def batch_ids_unique(call: Call) -> Iterator[str]:
    """The IDs of a batch are unique within the request."""
    ids = [one.get("Id") for one in call.parameters.get("Entries", ())]
    if len(set(ids)) < len(ids):
        yield "two entries have one ID"


@rule(*BATCHES, address=f"{_SQS}DeleteMessageBatchRequestEntry.html", code="AWS.SimpleQueueService.InvalidBatchEntryId")
def batch_id_form(call: Call) -> Iterator[str]:
    """The ID of an entry has up to 80 letters, digits, hyphens and underscores."""
    for one in call.parameters.get("Entries", ()):
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", str(one.get("Id", ""))):
            yield f"entry ID {one.get('Id')!r}"


@rule("sqs:GetQueueUrl", "sqs:CreateQueue", address=f"{_SQS}GetQueueUrl.html")
def queue_name(call: Call) -> Iterator[str]:
    """A queue name has up to 80 letters, digits, hyphens and underscores; that of a FIFO queue ends with .fifo."""
    name = str(call.parameters.get("QueueName", ""))
    if len(name) > 80 or not re.fullmatch(r"[A-Za-z0-9_-]+(\.fifo)?", name):
        yield f"queue name {name!r}"
