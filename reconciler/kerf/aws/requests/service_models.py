"""The service models of botocore, cut down to the operations that Kerf calls.

botocore keeps the whole model of each service as a tree of dicts: 28 MiB for EC2 with its 830 operations. Here a model
is scanned once without making objects of it. Only the operations below, and the shapes that they reach, become dicts.
Models of services that are not listed, such as those by which the SDK gets credentials from SSO, stay whole.
"""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from botocore.loaders import JSONFileLoader, create_loader
from botocore.session import Session, get_session

#: Operations by service. botocore itself calls the AssumeRole operations of STS, for credentials, and HeadBucket of S3,
#: for the region of a bucket.
OPERATIONS: Final[Mapping[str, frozenset[str]]] = {
    "arc-zonal-shift": frozenset({"GetManagedResource"}),
    "ec2": frozenset(
        {
            "CreateFleet",
            "CreateLaunchTemplate",
            "CreateTags",
            "DeleteLaunchTemplate",
            "DescribeCapacityReservations",
            "DescribeImages",
            "DescribeInstanceStatus",
            "DescribeInstanceTypeOfferings",
            "DescribeInstanceTypes",
            "DescribeInstances",
            "DescribeLaunchTemplates",
            "DescribePlacementGroups",
            "DescribeSecurityGroups",
            "DescribeSpotPriceHistory",
            "DescribeSubnets",
            "DescribeVpcEndpoints",
            "RunInstances",
            "TerminateInstances",
        }
    ),
    "eks": frozenset(
        {
            "DescribeAccessEntry",
            "DescribeCluster",
            "DescribePodIdentityAssociation",
            "ListClusters",
            "ListPodIdentityAssociations",
        }
    ),
    "events": frozenset({"DescribeRule", "ListRuleNamesByTarget"}),
    "iam": frozenset(
        {
            "AddRoleToInstanceProfile",
            "CreateInstanceProfile",
            "DeleteInstanceProfile",
            "GetInstanceProfile",
            "GetRole",
            "ListInstanceProfiles",
            "RemoveRoleFromInstanceProfile",
        }
    ),
    "pricing": frozenset({"GetProducts"}),
    "s3": frozenset({"DeleteObject", "GetObject", "HeadBucket", "ListObjectsV2", "PutObject"}),
    "service-quotas": frozenset({"GetServiceQuota"}),
    "sqs": frozenset({"DeleteMessageBatch", "GetQueueUrl", "ReceiveMessage"}),
    "ssm": frozenset({"GetParameter"}),
    "sts": frozenset({"AssumeRole", "AssumeRoleWithWebIdentity", "GetCallerIdentity"}),
}
#: Services in botocore's list of endpoints that are kept: those above by their prefixes, and those for credentials.
_ENDPOINTS: Final = frozenset(
    {
        *("api.pricing", "arc-zonal-shift", "ec2", "eks", "events", "iam", "oidc", "portal.sso", "s3"),
        *("servicequotas", "signin", "sqs", "ssm", "sts"),
    }
)
#: The fields of a model that are for readers only.
_PROSE: Final = frozenset({"documentation", "documentationUrl"})
#: The parts of a model whose prose botocore requires; only that of S3 has one.
_WITH_PROSE: Final = frozenset({"clientContextParams"})
_RAW: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_PARTITIONS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


def session() -> Session:
    """Return a session of botocore that reads models in part."""
    made = get_session()
    loader = create_loader(made.get_config_variable("data_path"))
    loader.file_loader = _Files()
    made.register_component("data_loader", loader)
    return made


class _Files(JSONFileLoader):  # type: ignore[misc]  # botocore has no types
    """Reads botocore's files: models and the list of endpoints in part, all others as botocore does."""

    def load_file(self, file_path: str) -> Any:
        """Return the content of a file, named without its ending; None when there is no such file."""
        with suppress(LookupError, TypeError, ValueError):  # of a form that this version does not know: whole
            if (found := _trimmed(Path(file_path))) is not None:
                return found
        return super().load_file(file_path)


def _trimmed(path: Path) -> dict[str, Any] | None:
    """Return a file in part; None of a file that stays whole. Raises LookupError, TypeError, ValueError."""
    service = path.parts[-3] if len(path.parts) > 2 else ""
    if path.name == "endpoints" and (content := _content(str(path))):
        return trimmed_endpoints(content)
    if path.name == "service-2" and service in OPERATIONS and (content := _content(str(path))):
        return trimmed_model(content, OPERATIONS[service])
    return None


def _content(file_path: str) -> bytes:
    """Return the bytes of a file, named without its ending; empty when there is no such file."""
    if (plain := Path(f"{file_path}.json")).is_file():
        return plain.read_bytes()
    packed = Path(f"{file_path}.json.gz")
    return gzip.decompress(packed.read_bytes()) if packed.is_file() else b""


def trimmed_model(content: bytes, operations: Collection[str]) -> dict[str, Any]:
    """Return a service model in JSON as dicts: these of its operations, the shapes that they reach, and no prose."""
    parts = _RAW.decode(content)
    raw_operations, raw_shapes = _RAW.decode(parts.pop("operations")), _RAW.decode(parts.pop("shapes"))
    kept = {name: _value(raw) for name, raw in raw_operations.items() if name in operations}
    shapes: dict[str, Any] = {}
    wanted = set(_referred(kept))
    while wanted:
        found = {name: _value(raw_shapes[name]) for name in wanted}
        shapes |= found
        wanted = set(_referred(found)) - shapes.keys()
    whole = {name: msgspec.json.decode(parts.pop(name)) for name in _WITH_PROSE & parts.keys()}
    rest = {name: _value(raw) for name, raw in parts.items() if name not in _PROSE}
    return {**rest, **whole, "operations": kept, "shapes": shapes}


def trimmed_endpoints(content: bytes) -> dict[str, Any]:
    """Return botocore's list of endpoints in JSON as dicts, with the services that Kerf calls in all partitions."""
    parts = _RAW.decode(content)
    partitions = []
    for raw in _PARTITIONS.decode(parts.pop("partitions")):
        services = _RAW.decode(raw.pop("services"))
        kept = {name: _value(one) for name, one in services.items() if name in _ENDPOINTS}
        partitions.append({**{name: _value(one) for name, one in raw.items()}, "services": kept})
    return {**{name: _value(one) for name, one in parts.items()}, "partitions": partitions}


def _value(raw: msgspec.Raw) -> Any:
    return _without_prose(msgspec.json.decode(raw))


def _without_prose(value: Any) -> Any:
    """The same value; a member of a shape may have the name of such a field, but is no text."""
    if isinstance(value, dict):
        return {k: _without_prose(v) for k, v in value.items() if not (k in _PROSE and isinstance(v, str))}
    return [_without_prose(one) for one in value] if isinstance(value, list) else value


def _referred(value: Any) -> Iterator[str]:
    """The names of the shapes that operations or shapes refer to, at any depth."""
    if isinstance(value, dict):
        if isinstance(name := value.get("shape"), str):
            yield name
        for one in value.values():
            yield from _referred(one)
    elif isinstance(value, list):
        for one in value:
            yield from _referred(one)
