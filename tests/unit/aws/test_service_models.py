"""The service models that clients keep: those operations that Kerf calls, as botocore itself describes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.session import get_session

from kerf.aws.requests import service_models
from kerf.aws.requests.clients import Clients
from kerf.aws.requests.service_models import OPERATIONS
from tests.unit.aws.test_permissions import called_names

#: Operations that botocore calls by itself: for credentials, and for the region of a bucket.
BY_ITSELF = {"AssumeRole", "AssumeRoleWithWebIdentity", "HeadBucket"}


@pytest.mark.parametrize("service", OPERATIONS)
def test_all_operations_that_are_called_are_kept_and_no_others(service: str) -> None:
    whole = boto3.client(service, region_name="us-west-2").meta.method_to_api_mapping
    called = {whole[name] for name in called_names() & whole.keys()}
    # A method of Kerf's own port has the name of an operation that is called in batches.
    called -= {"DeleteMessage"} if service == "sqs" else set()
    assert called | (BY_ITSELF & set(whole.values())) == OPERATIONS[service]


@pytest.mark.parametrize("service", OPERATIONS)
def test_what_is_kept_is_the_same_as_in_the_whole_model(service: str) -> None:
    trimmed, whole = service_models.session().get_service_model(service), get_session().get_service_model(service)
    assert set(trimmed.operation_names) == OPERATIONS[service]
    assert trimmed.metadata == whole.metadata
    for name in OPERATIONS[service]:
        ours, theirs = trimmed.operation_model(name), whole.operation_model(name)
        assert ours.http == theirs.http
        assert described(ours.input_shape) == described(theirs.input_shape)
        assert described(ours.output_shape) == described(theirs.output_shape)
        assert [one.name for one in ours.error_shapes] == [one.name for one in theirs.error_shapes]


def described(shape: Any, above: tuple[str, ...] = ()) -> Any:
    """All of a shape, and of those below it, that clients use; a shape within itself by its name alone."""
    if shape is None or shape.name in above:
        return shape and shape.name
    above = (*above, shape.name)
    if shape.type_name == "structure":
        below: Any = {name: described(one, above) for name, one in shape.members.items()}
        return [shape.name, shape.serialization, shape.metadata, below]
    parts = {"list": ("member",), "map": ("key", "value")}.get(shape.type_name, ())
    return [shape.name, shape.serialization, shape.metadata, [described(getattr(shape, p), above) for p in parts]]


def test_a_member_with_the_name_of_a_field_for_readers_stays() -> None:
    content = b"""{"metadata": {}, "documentation": "d",
        "operations": {"A": {"name": "A", "input": {"shape": "S"}, "documentation": "d"}, "B": {"name": "B"}},
        "shapes": {"S": {"type": "structure", "documentation": "d", "members": {"documentation": {"shape": "T"}}},
                   "T": {"type": "string"}, "U": {"type": "string"}}}"""
    assert service_models.trimmed_model(content, {"A"}) == {
        "metadata": {},
        "operations": {"A": {"name": "A", "input": {"shape": "S"}}},
        "shapes": {
            "S": {"type": "structure", "members": {"documentation": {"shape": "T"}}},
            "T": {"type": "string"},
        },
    }


def test_endpoints_and_partitions_are_those_of_the_whole_list() -> None:
    trimmed, whole = service_models.session(), get_session()
    for region in ("us-west-2", "cn-north-1", "us-gov-west-1", "eu-isoe-west-1", "mars-1"):
        for service in OPERATIONS:
            ours, theirs = (one.create_client(service, region_name=region).meta for one in (trimmed, whole))
            assert (ours.endpoint_url, ours.partition) == (theirs.endpoint_url, theirs.partition)
    assert trimmed.get_available_regions("ec2") == whole.get_available_regions("ec2")


def test_models_of_other_services_are_whole() -> None:
    whole = get_session().get_service_model("sso")
    assert service_models.session().get_service_model("sso").operation_names == whole.operation_names


@pytest.mark.parametrize(
    "content",
    [
        {"metadata": {}, "operations": {"GetQueueUrl": {"input": {"shape": "Missing"}}}, "shapes": {}},
        {"metadata": {}, "operations": {}},
        {"metadata": {}, "operations": [], "shapes": {}},
    ],
)
def test_a_model_of_another_form_is_whole(content: dict[str, Any], tmp_path: Path) -> None:
    """Another version of botocore, or a model in AWS_DATA_PATH: the SDK reads it as it always does."""
    folder = tmp_path / "sqs" / "2012-11-05"
    folder.mkdir(parents=True)
    (folder / "service-2.json").write_text(json.dumps(content))
    made = service_models.session()
    loader = made.get_component("data_loader")
    loader.search_paths.insert(0, str(tmp_path))
    assert loader.load_service_model("sqs", "service-2", "2012-11-05") == content


def test_clients_have_the_trimmed_models() -> None:
    ec2 = Clients("us-west-2").get("ec2")
    assert set(ec2.meta.service_model.operation_names) == OPERATIONS["ec2"]
