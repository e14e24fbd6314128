"""AWS's error codes, each under the answer to "what next?"."""

from __future__ import annotations

import pytest
from botocore import exceptions as boto

from kerf import ports
from kerf.aws.requests.errors import translate, translated


def client_error(code: str, status: int = 400) -> boto.ClientError:
    answer = {"Error": {"Code": code, "Message": "because"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return boto.ClientError(answer, "Something")


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("InvalidInstanceID.NotFound", 400, ports.AlreadyGone),
        ("NoSuchEntity", 404, ports.AlreadyGone),
        ("ResourceNotFoundException", 404, ports.AlreadyGone),
        ("QueueDoesNotExist", 400, ports.AlreadyGone),
        ("AWS.SimpleQueueService.NonExistentQueue", 400, ports.AlreadyGone),
        ("EntityAlreadyExists", 409, ports.AlreadyExists),
        ("InvalidLaunchTemplateName.AlreadyExistsException", 400, ports.AlreadyExists),
        ("InvalidLaunchTemplateName.NotFoundException", 400, ports.TemplateMissing),
        ("IdempotentParameterMismatch", 400, ports.IdempotencyMismatch),
        ("RequestLimitExceeded", 503, ports.Throttled),
        ("ThrottlingException", 400, ports.Throttled),
        ("ThrottledByNewName", 400, ports.Throttled),
        ("Anything", 429, ports.Throttled),
        ("UnauthorizedOperation", 403, ports.Forbidden),
        ("AccessDeniedException", 400, ports.Forbidden),
        ("AuthFailure", 401, ports.Forbidden),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", 400, ports.Forbidden),
        ("ExpiredToken", 400, ports.Forbidden),
        ("UnknownCode", 403, ports.Forbidden),
        ("InternalError", 500, ports.Unavailable),
        ("UnknownCode", 502, ports.Unavailable),
        ("InvalidParameterValue", 400, ports.Invalid),
        ("MissingParameter", 400, ports.Invalid),
    ],
)
def test_a_code_becomes_what_to_do_next(code: str, status: int, expected: type[ports.PortError]) -> None:
    error = translate("ec2:Something", client_error(code, status))
    assert type(error) is expected
    assert str(error) == f"ec2:Something: {code}: because"


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (boto.EndpointConnectionError(endpoint_url="https://x"), ports.Unavailable),
        (boto.ReadTimeoutError(endpoint_url="https://x"), ports.Unavailable),
        (boto.ConnectTimeoutError(endpoint_url="https://x"), ports.Unavailable),
        (boto.ConnectionClosedError(endpoint_url="https://x"), ports.Unavailable),
        (boto.NoCredentialsError(), ports.Forbidden),
        (boto.ParamValidationError(report="no such member"), ports.Invalid),
    ],
)
def test_trouble_before_an_answer(raised: Exception, expected: type[ports.PortError]) -> None:
    with pytest.raises(expected, match="sqs:ReceiveMessage"), translated("sqs:ReceiveMessage"):
        raise raised


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(ZeroDivisionError), translated("x"):
        raise ZeroDivisionError
