"""Pods that differ in their constraints only: the work grows with their number, not with that of their subsets."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.objects import Pod
from reconciler.scheduling.ports import HeldPorts, clash
from reconciler.scheduling.template import Template
from tests.unit.scheduling import worlds as w


def not_in(number: int) -> list[Pod]:
    """Each keeps away from another value of a label."""
    return [w.pod(f"p{i}", affinity=w.node_affinity([("example.com/x", "NotIn", [f"v{i}"])])) for i in range(number)]


def test_pods_that_keep_away_from_one_value_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """24 such pods have 16 million subsets."""
    joins = 0
    join = Template.join

    def counted(self: Template, *both: Any) -> Any:
        nonlocal joins
        joins += 1
        return join(self, *both)

    monkeypatch.setattr(Template, "join", counted)
    assert not w.solved(w.pool(), not_in(24)).unplaced
    assert joins < 24**2 * 4


@pytest.mark.parametrize(
    ("asked", "clashes"),
    [
        (("0.0.0.0", 80, "TCP"), True),
        (("10.0.0.1", 80, "TCP"), True),
        (("10.0.0.2", 80, "TCP"), False),
        (("10.0.0.1", 80, "UDP"), False),
        (("10.0.0.1", 81, "TCP"), False),
        (("10.0.0.9", 82, "TCP"), True),
        (("::", 80, "TCP"), False),
    ],
)
def test_held_ports_clash_by_address_port_and_protocol(asked: tuple[str, int, str], clashes: bool) -> None:
    held = HeldPorts([("10.0.0.1", 80, "TCP"), ("10.0.0.1", 83, "UDP")])
    other = held.copy()
    held.take([("0.0.0.0", 82, "TCP")])
    assert held.clash([("10.0.0.1", 99, "TCP"), asked]) == clashes
    assert clash([asked], held) == clashes
    assert ("0.0.0.0", 82, "TCP") not in set(other)
