"""AWS's error codes, each under the answer to "what next?"."""

from __future__ import annotations

import pytest
from botocore import exceptions as boto

from kerf import ports
from kerf.aws.buckets import Bucket
from kerf.aws.requests.clients import Clients
from kerf.aws.requests.errors import translate, translated
from kerf_api.texts import without_credentials
from tests.unit.runtime import stores

SECRET = "hunter2"


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


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:{}@127.0.0.1:9", "http://127.0.0.1:9"),
        ("http://{}@127.0.0.1:9", "http://127.0.0.1:9"),
        ("http://user:a@{}@127.0.0.1:9", "http://127.0.0.1:9"),
        ("http://user:a/{}@127.0.0.1:9", "the endpoint of s3 is no URL"),
        ("http://user:{}%20b@127.0.0.1:9", "http://127.0.0.1:9"),
        ("http://user:{} b@127.0.0.1:9", "http://127.0.0.1:9"),
        ('http://user:a"{}@127.0.0.1:9', "http://127.0.0.1:9"),
        ("http://user:{}@127.0.0.1:99999", "the endpoint of s3 is no URL"),
        ("http://user:{}\\@127.0.0.1:9", "percent-encode the password"),
        ("user:{}@127.0.0.1:9", "the endpoint of s3 is no URL"),
    ],
)
def test_no_password_of_an_endpoint_reaches_an_error(url: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in stores.CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    bucket = Bucket(Clients("us-west-2", endpoint_url=url.format(SECRET)), "s3://records/kerf")
    with pytest.raises(ports.PortError) as raised:
        bucket.objects()
    assert SECRET not in str(raised.value)
    assert shown in str(raised.value)


def test_an_answer_that_repeats_an_address_has_no_password_either() -> None:
    message = f"no route to https://user:{SECRET}@example.com\nsee https://example.com"
    error = boto.ClientError({"Error": {"Code": "InternalError", "Message": message}}, "PutObject")
    text = str(translate("s3:PutObject", error))
    assert text == "s3:PutObject: InternalError: no route to https://example.com\nsee https://example.com"


def test_a_text_without_an_address_is_unchanged() -> None:
    text = "ec2:CreateFleet: UnauthorizedOperation: arn:aws:sts::1:assumed-role/a/me@example.com is not authorized"
    assert without_credentials(text) == text


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(ZeroDivisionError), translated("x"):
        raise ZeroDivisionError
