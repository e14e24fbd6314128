"""Launch templates that several fleets need at once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from kerf.aws.launch.launch_templates import LaunchTemplates
from kerf.ports import Throttled
from tests.unit.aws.test_aws_launches import TEMPLATE

OTHER = replace(TEMPLATE, name="karpenter.k8s.aws/2")


class SlowEc2:
    """Also what hands out clients. The first `refusals` calls are throttled."""

    region = "us-west-2"

    def __init__(self, refusals: int = 0) -> None:
        self.made, self._left, self._lock = list[str](), refusals, threading.Lock()

    def get(self, service: str) -> SlowEc2:
        assert service == "ec2"
        return self

    def create_launch_template(self, **given: Any) -> None:
        with self._lock:
            self.made.append(given["LaunchTemplateName"])
            self._left -= 1
            refused = self._left >= 0
        time.sleep(0.05)
        if refused:
            error = {"Error": {"Code": "RequestLimitExceeded", "Message": "slow down"}}
            raise ClientError(error, "CreateLaunchTemplate")


def ensure_at_once(templates: LaunchTemplates, *wanted: tuple[Any, ...]) -> list[BaseException | None]:
    with ThreadPoolExecutor(len(wanted)) as pool:
        return [one.exception() for one in [pool.submit(templates.ensure, each) for each in wanted]]


def test_one_that_several_fleets_need_at_once_is_made_once() -> None:
    ec2 = SlowEc2()
    templates = LaunchTemplates(ec2, "demo")  # type: ignore[arg-type]
    assert ensure_at_once(templates, (TEMPLATE,), (TEMPLATE, OTHER), (OTHER,), (TEMPLATE,)) == [None] * 4
    assert sorted(ec2.made) == [TEMPLATE.name, OTHER.name]
    templates.ensure((TEMPLATE,))
    assert len(ec2.made) == 2


def test_who_waited_for_one_that_could_not_be_made_makes_it() -> None:
    ec2 = SlowEc2(refusals=1)
    templates = LaunchTemplates(ec2, "demo")  # type: ignore[arg-type]
    errors = ensure_at_once(templates, (TEMPLATE,), (TEMPLATE,), (TEMPLATE,))
    assert [type(error) for error in errors if error is not None] == [Throttled]
    assert len(ec2.made) == 2


@pytest.mark.parametrize("forgotten", [False, True])
def test_one_that_is_gone_is_made_again(forgotten: bool) -> None:
    ec2 = SlowEc2()
    templates = LaunchTemplates(ec2, "demo")  # type: ignore[arg-type]
    templates.ensure((TEMPLATE,))
    if forgotten:
        templates.forget((TEMPLATE,))
    templates.ensure((TEMPLATE,))
    assert len(ec2.made) == 1 + forgotten
