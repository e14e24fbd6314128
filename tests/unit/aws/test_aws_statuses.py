"""Which instances EC2 is asked about by ID."""

from __future__ import annotations

from typing import Any

from kerf.aws.observe.statuses import read_impairments


class Ec2:
    """Answers one page without rows; notes the IDs."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def get_paginator(self, operation: str) -> Ec2:
        assert operation == "describe_instance_status"
        return self

    def paginate(self, **parameters: Any) -> list[dict[str, Any]]:
        self.asked.append(parameters["InstanceIds"])
        return [{"InstanceStatuses": []}]


def test_a_text_that_is_no_instance_id_does_not_spoil_the_question_about_the_others() -> None:
    ec2 = Ec2()
    ids = ["i-0123456789abcdef0", "i-shared", "not a provider ID", "i-0123abcd", "i-0123456789ABCDEF0", ""]
    assert read_impairments(ec2, ids) == ()
    assert ec2.asked == [["i-0123456789abcdef0", "i-0123abcd"]]


def test_without_a_single_instance_id_nothing_is_asked() -> None:
    ec2 = Ec2()
    assert read_impairments(ec2, ["i-shared"]) == ()
    assert ec2.asked == []
