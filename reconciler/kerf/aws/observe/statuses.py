"""EC2's status checks and scheduled events: which instances are impaired.

A few instances are asked about by their IDs, with one call. Of many, or when EC2 does not know one of them, three
filters ask for impaired ones. Source: EC2 API reference, DescribeInstanceStatus; AWS provider reference
§8.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from kerf.aws.requests.clients import pages
from kerf.aws.requests.errors import translated
from kerf.aws.requests.parallel import each
from kerf.model.aws.cloud import INSTANCE_CHECK, SCHEDULED, SYSTEM_CHECK, Impairment
from kerf.ports import AlreadyGone, Invalid
from kerf_api import bounds

#: EC2 takes so many IDs in one question, and none of them together with a page's size.
MOST_IDS: Final = 100
_ID: Final = re.compile(r"i-(?:[0-9a-f]{8}|[0-9a-f]{17})")
#: Events after which the instance, or what it held, is not what it was.
EVENTS: Final = ("instance-reboot", "instance-retirement", "instance-stop", "system-maintenance", "system-reboot")
_QUESTIONS: Final = (
    {"Name": "instance-status.status", "Values": ["impaired"]},
    {"Name": "system-status.status", "Values": ["impaired"]},
    {"Name": "event.code", "Values": list(EVENTS)},
)
_CHECKS: Final = ((INSTANCE_CHECK, "InstanceStatus"), (SYSTEM_CHECK, "SystemStatus"))
#: How the description of an event begins that will not come any more. Source: EC2 user guide, "Scheduled events".
_OVER: Final = ("[Canceled]", "[Completed]")


def read_impairments(ec2: Any, of: Sequence[str] | None = None) -> tuple[Impairment, ...]:
    """All impairments of these instances, and maybe others, each once; what is impaired in two ways is there twice.

    None stands for all instances of the account.
    """
    rows = _impaired(ec2) if of is None or len(of) > MOST_IDS else _of(ec2, of)
    return tuple(sorted(set(found(rows)), key=lambda one: (one.instance_id, one.category, one.text)))


def _of(ec2: Any, ids: Sequence[str]) -> list[Any]:
    """For an instance that is gone EC2 returns nothing: then the filters find the others.

    A text that is no ID of an instance (anybody who may edit a NodeClaim's status can write one) is not asked about:
    EC2 would refuse the whole call.
    """
    known = sorted(one for one in ids if _ID.fullmatch(one))
    try:
        return _ask(ec2, InstanceIds=known) if known else []
    except (AlreadyGone, Invalid):
        return _impaired(ec2)


def _impaired(ec2: Any) -> list[Any]:
    def ask(question: Mapping[str, Any]) -> list[Any]:
        return _ask(ec2, Filters=[question], PaginationConfig={"PageSize": 1000})

    return [row for answer in each(ask, _QUESTIONS) for row in answer]


def _ask(ec2: Any, **question: Any) -> list[Any]:
    with translated("ec2:DescribeInstanceStatus"):
        return pages(ec2, "describe_instance_status", "InstanceStatuses", IncludeAllInstances=False, **question)


def found(rows: Iterable[Mapping[str, Any]]) -> Iterator[Impairment]:
    """Of elements of `InstanceStatuses`. What only its volumes suffer from is no impairment of the instance."""
    for row in rows:
        for category, key in _CHECKS:
            for detail in row.get(key, {}).get("Details", ()):
                if detail.get("Status") == "failed":
                    since = detail.get("ImpairedSince")
                    yield Impairment(row["InstanceId"], category, _utc(since), f"{detail.get('Name', 'check')} failed")
        for event in row.get("Events", ()):
            text = str(event.get("Description", ""))
            if event.get("Code") in EVENTS and not text.startswith(_OVER):
                yield Impairment(row["InstanceId"], SCHEDULED, _utc(event.get("NotBefore")), f"{event['Code']}: {text}")


def _utc(at: datetime | None) -> datetime | None:
    return bounds.instant(at) if at is not None else None
