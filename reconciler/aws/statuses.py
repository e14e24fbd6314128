"""EC2's status checks and scheduled events: which instances are impaired. Source: AWS provider reference §8.2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from reconciler.aws.clients import pages
from reconciler.aws.errors import translated
from reconciler.aws.parallel import each
from reconciler.model.cloud import INSTANCE_CHECK, SCHEDULED, SYSTEM_CHECK, Impairment

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


def read_impairments(ec2: Any) -> tuple[Impairment, ...]:
    """All that ails instances, each once; what is impaired in two ways is there twice."""
    rows = [row for answer in each(lambda question: _ask(ec2, question), _QUESTIONS) for row in answer]
    return tuple(sorted(set(found(rows)), key=lambda one: (one.instance_id, one.category, one.text)))


def _ask(ec2: Any, question: Mapping[str, Any]) -> list[Any]:
    with translated("ec2:DescribeInstanceStatus"):
        return pages(
            ec2,
            "describe_instance_status",
            "InstanceStatuses",
            Filters=[question],
            IncludeAllInstances=False,
            PaginationConfig={"PageSize": 1000},
        )


def found(rows: Iterable[Mapping[str, Any]]) -> Iterator[Impairment]:
    """Of elements of `InstanceStatuses`. What only its volumes suffer from is not the instance's ailment."""
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
    return at.astimezone(UTC) if at is not None else None
