"""IAM, SSM, EKS, Pricing and ARC."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from .rule import Call, rule

_IAM: Final = "https://docs.aws.amazon.com/IAM/latest/"
_SSM: Final = "https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_PutParameter.html"
_ARN: Final = r"arn:aws[a-z-]*:"


@rule("iam:ListInstanceProfiles", address=f"{_IAM}APIReference/API_ListInstanceProfiles.html", code="ValidationError")
def profile_path_prefix(call: Call) -> Iterator[str]:
    """A path prefix begins and ends with a slash."""
    prefix = str(call.parameters.get("PathPrefix", "/"))
    if not (prefix.startswith("/") and prefix.endswith("/")):
        yield f"path prefix {prefix!r}"


@rule("iam:CreateInstanceProfile", address=f"{_IAM}UserGuide/id_tags.html", code="InvalidInput")
def profile_tag_prefix(call: Call) -> Iterator[str]:
    """Tag keys and values of IAM cannot begin with aws:."""
    for row in call.parameters.get("Tags") or ():
        if any(row[part].lower().startswith("aws:") for part in ("Key", "Value")):
            yield f"tag {row['Key']!r}={row['Value']!r}"


@rule("iam:CreateInstanceProfile", address=f"{_IAM}UserGuide/id_tags.html", code="InvalidInput")
def profile_tag_keys(call: Call) -> Iterator[str]:
    """Tag keys of IAM are not case-sensitive, and unique."""
    for key, count in Counter(row["Key"].lower() for row in call.parameters.get("Tags") or ()).items():
        if count > 1:
            yield f"tag key {key!r} is there {count} times"


@rule("ssm:GetParameter", address=_SSM, code="ValidationException")
def parameter_name(call: Call) -> Iterator[str]:
    """A parameter name has letters, digits and . - _ / characters, then a version or label, or it is an ARN."""
    name = str(call.parameters.get("Name", ""))
    if not re.fullmatch(rf"({_ARN}ssm:\S+|[a-zA-Z0-9_.\-/]+(:[a-zA-Z0-9_.\-]+)?)", name):
        yield f"parameter {name!r}"


@rule("ssm:GetParameter", address=_SSM, code="HierarchyLevelLimitExceededException")
def parameter_depth(call: Call) -> Iterator[str]:
    """A hierarchy of parameters has fifteen levels at most, and a name 1011 characters."""
    name = str(call.parameters.get("Name", ""))
    if name.strip("/").count("/") + 1 > 15 or len(name) > 1011:
        yield f"parameter {name[:80]!r} has {len(name)} characters and {name.strip('/').count('/') + 1} levels"


@rule(
    "eks:DescribeCluster",
    address="https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html",
    code="InvalidParameterException",
)
def cluster_name(call: Call) -> Iterator[str]:
    """A cluster name has up to 100 letters, digits, hyphens and underscores, and begins with a letter or digit."""
    name = str(call.parameters.get("name", ""))
    if not re.fullmatch(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}", name):
        yield f"cluster {name!r}"


@rule(
    "pricing:GetProducts",
    address="https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html",
    code="InvalidParameterException",
)
def price_format(call: Call) -> Iterator[str]:
    """The format version of the price list is aws_v1."""
    if call.parameters.get("FormatVersion", "aws_v1") != "aws_v1":
        yield f"format version {call.parameters['FormatVersion']!r}"


@rule(
    "arc-zonal-shift:GetManagedResource",
    address="https://docs.aws.amazon.com/arc-zonal-shift/latest/api/API_GetManagedResource.html",
    code="ValidationException",
)
def managed_resource(call: Call) -> Iterator[str]:
    """A managed resource is named by its ARN."""
    if not re.match(_ARN, str(call.parameters.get("resourceIdentifier", ""))):
        yield f"resource {call.parameters.get('resourceIdentifier')!r}"
