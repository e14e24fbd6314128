"""Turns what botocore raises into the port's errors, by what the caller must do next.

An AWS error code says what went wrong; the reconciler only asks: is it gone, is it there already, shall I wait, must a
person act, is my request wrong, or may it have worked? Each code is listed under the one answer that fits. Source:
EC2 API reference, "Error codes"; common errors of IAM, SSM, SQS and EKS.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from kerf.ports import (
    AlreadyExists,
    AlreadyGone,
    Forbidden,
    IdempotencyMismatch,
    Invalid,
    PortError,
    TemplateMissing,
    Throttled,
    Unavailable,
)
from kerf_api.texts import without_credentials

GONE: Final = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "InvalidInstanceID.NotFound",
        "InvalidLaunchTemplateId.NotFound",
        "InvalidPlacementGroup.Unknown",
        "NoSuchEntity",
        "NoSuchKey",
        "ParameterNotFound",
        "QueueDoesNotExist",
        "ReceiptHandleIsInvalid",
        "ResourceNotFoundException",
    }
)
EXISTS: Final = frozenset({"EntityAlreadyExists", "InvalidLaunchTemplateName.AlreadyExistsException"})
TEMPLATE_MISSING: Final = frozenset(
    {"InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFoundException"}
)
MISMATCH: Final = frozenset({"IdempotentParameterMismatch", "IdempotentInstanceTerminated"})
THROTTLED: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
FORBIDDEN: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "Blocked",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "OptInRequired",
        "PendingVerification",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
UNAVAILABLE: Final = frozenset({"InternalError", "InternalFailure", "RequestTimeout", "ServiceUnavailable"})

_BY_CODE: Final[tuple[tuple[frozenset[str], type[PortError]], ...]] = (
    (GONE, AlreadyGone),
    (EXISTS, AlreadyExists),
    (TEMPLATE_MISSING, TemplateMissing),
    (MISMATCH, IdempotencyMismatch),
    (THROTTLED, Throttled),
    (FORBIDDEN, Forbidden),
    (UNAVAILABLE, Unavailable),
)


#: Of urllib3, for the URL of an endpoint or of HTTPS_PROXY.
_UNPARSED: Final = "Failed to parse: "


def translate(call: str, error: Exception) -> PortError:
    """The port's error for what botocore raised in `call` (such as `ec2:CreateFleet`)."""
    if isinstance(error, boto.ClientError):
        return _from_answer(call, error)
    text = without_credentials(f"{call}: {error}")
    if isinstance(error, boto.HTTPClientError) and _UNPARSED in text:  # it has a part of the password
        text = f"{call}: the URL of an endpoint or proxy cannot be parsed: percent-encode the password in it"
    if isinstance(error, boto.NoCredentialsError | boto.PartialCredentialsError | boto.CredentialRetrievalError):
        return Forbidden(text)
    if isinstance(error, boto.ParamValidationError):
        return Invalid(text)
    return Unavailable(text)


def _from_answer(call: str, error: boto.ClientError) -> PortError:
    code = str(error.response.get("Error", {}).get("Code", ""))
    message = error.response.get("Error", {}).get("Message", "")
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    kind = next((kind for codes, kind in _BY_CODE if code in codes), None) or _by_status(code, status)
    found = kind(without_credentials(f"{call}: {code}: {message}"))
    found.details = _details(call, error, code, status)
    return found


def _details(call: str, error: boto.ClientError, code: str, status: int) -> dict[str, str]:
    """What Karpenter's log has of an answer of AWS, in fields of their names."""
    request = error.response.get("ResponseMetadata", {}).get("RequestId", "")
    told = {
        "aws-error-code": code,
        "aws-operation-name": error.operation_name or call.rpartition(":")[2],
        "aws-service-name": call.partition(":")[0],
        "aws-status-code": str(status or ""),
        "aws-request-id": str(request),
    }
    return {key: text for key, text in told.items() if text}


def _by_status(code: str, status: int) -> type[PortError]:
    if status == 429 or code.startswith("Throttl"):
        return Throttled
    if status in (401, 403) or code.startswith("AuthFailure"):
        return Forbidden
    return Unavailable if status >= 500 else Invalid


@contextmanager
def translated(call: str) -> Iterator[None]:
    """Within this block whatever botocore raises becomes a PortError that names the call."""
    try:
        yield
    except (boto.BotoCoreError, boto.ClientError, ResponseParserError) as error:
        raise translate(call, error) from error
