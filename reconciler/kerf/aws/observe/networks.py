"""Subnets and security groups that a node class selects.

Terms are alternatives; tags inside one term must all match. All IDs share one question and all names another; each
term of tags is a question of its own. Selecting goes by filters, which answer an unknown ID with nothing, not an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kerf.aws.requests.answers import Ask
from kerf.aws.requests.clients import pages
from kerf.aws.requests.errors import translated
from kerf.aws.requests.parallel import each
from kerf.model.aws.cloud import SecurityGroup, Subnet
from kerf_api.v1.ec2nodeclass import SelectorTerm

Filters = list[dict[str, Any]]
ANY_VALUE: Final = "*"
PAGE: Final = {"PageSize": 500}


def read_subnets(ec2: Any, terms: Sequence[SelectorTerm], ask: Ask) -> tuple[Subnet, ...]:
    """The subnets that the terms select, those with most free addresses first."""
    rows = _select(ec2, "describe_subnets", "Subnets", terms, {"id": "subnet-id"}, ask)
    found = {row["SubnetId"]: _subnet(row) for row in rows}
    return tuple(sorted(found.values(), key=lambda subnet: (-subnet.free_addresses, subnet.id)))


def read_security_groups(ec2: Any, terms: Sequence[SelectorTerm], ask: Ask) -> tuple[SecurityGroup, ...]:
    """The security groups that the terms select, by ID."""
    fields = {"id": "group-id", "name": "group-name"}
    rows = _select(ec2, "describe_security_groups", "SecurityGroups", terms, fields, ask)
    found = {row["GroupId"]: SecurityGroup(id=row["GroupId"], name=row.get("GroupName", "")) for row in rows}
    return tuple(found[key] for key in sorted(found))


def tag_filters(tags: Mapping[str, str]) -> Filters:
    """Filters for an object that carries all these tags; the value `*` asks for the key alone."""
    return [
        {"Name": "tag-key", "Values": [key]} if value == ANY_VALUE else {"Name": f"tag:{key}", "Values": [value]}
        for key, value in sorted(tags.items())
    ]


def questions(terms: Sequence[SelectorTerm], fields: Mapping[str, str]) -> list[Filters]:
    """One list of filters per query; `fields` maps a term's field to the filter that asks for it."""
    asked: list[Filters] = []
    for field, name in fields.items():
        values = sorted({getattr(term, field) for term in terms if getattr(term, field)})
        if values:
            asked.append([{"Name": name, "Values": values}])
    by_tags = (term for term in terms if term.tags and not any(getattr(term, field) for field in fields))
    return asked + [tag_filters(term.tags) for term in by_tags]


def _select(
    ec2: Any, operation: str, key: str, terms: Sequence[SelectorTerm], fields: Mapping[str, str], ask: Ask
) -> list[Any]:
    """The rows under `key` of all answers."""

    def read(filters: Filters) -> list[Any]:
        with translated(f"ec2:Describe{key}"):
            return pages(ec2, operation, key, Filters=filters, PaginationConfig=PAGE)

    answers = each(lambda filters: ask((operation, repr(filters)), lambda: read(filters)), questions(terms, fields))
    return [row for answer in answers for row in answer]


def _subnet(row: Mapping[str, Any]) -> Subnet:
    return Subnet(
        id=row["SubnetId"],
        zone=row["AvailabilityZone"],
        zone_id=row.get("AvailabilityZoneId", ""),
        free_addresses=row.get("AvailableIpAddressCount", 0),
    )
