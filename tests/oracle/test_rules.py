"""Rules of the kube-scheduler that are easily misread, each as a small world with a known end."""

from __future__ import annotations

import pytest

from tests.oracle.client import Oracle
from tests.oracle.known import judge
from tests.oracle.rules import RULES


@pytest.mark.parametrize("name", RULES)
def test_a_rule_of_the_kube_scheduler(name: str, oracle: Oracle) -> None:
    judge(RULES[name], oracle)
