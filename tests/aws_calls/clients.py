"""Judges every call of every client of boto3 in this process, before it is sent."""

from __future__ import annotations

from typing import Any, Final

from botocore import handlers
from botocore.exceptions import ClientError

from .ledger import CLIENTS, LEDGER

#: Marks a request that was judged here, for the emulated AWS, which then leaves it to this process.
HEADER: Final = "X-Kerf-Judged"
#: botocore refuses such a call by itself, with an exception of its own.
_BY_BOTOCORE: Final = "ValidationError"


def install() -> None:
    """From now on every session of botocore has its calls judged. Repeating it changes nothing."""
    for handler in (("before-parameter-build", _judge, handlers.REGISTER_LAST), ("before-call", _mark)):
        if handler not in handlers.BUILTIN_HANDLERS:
            handlers.BUILTIN_HANDLERS.append(handler)


def _judge(params: dict[str, Any], model: Any, **_: Any) -> None:
    refusal = LEDGER.judge(CLIENTS, model.service_model.service_name, model.name, params)
    if refusal is not None and refusal.code != _BY_BOTOCORE:
        raise refused(refusal.code, refusal.text, model.name)


def refused(code: str, text: str, operation: str) -> ClientError:
    """The exception by which boto3 reports an error answer of AWS."""
    answer = {"Error": {"Code": code, "Message": text}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    return ClientError(answer, operation)


def _mark(params: dict[str, Any], **_: Any) -> None:
    params["headers"][HEADER] = "yes"
