"""Requirements that are sound at a glance: the rules of one requirement find no error in any of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf_api import labels
from kerf_api.defaulting import default
from kerf_api.lint import nearest
from kerf_api.lint.rules import requirement_rules, rules_nodepool
from kerf_api.v1.meta import Entry

_KEYS = st.sampled_from(
    [labels.ZONE, labels.NODEPOOL, labels.CAPACITY_TYPE, labels.HOSTNAME, "team", "example.com/a", "no key", "k8s.io/x"]
)
_OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
_VALUES = st.lists(st.sampled_from(["a", "spot", "free", "a-b", "-a", "3", "", "a b"]), max_size=4).map(tuple)
_ENTRIES = st.lists(st.builds(Entry, key=_KEYS, operator=_OPERATORS, values=_VALUES), max_size=4)


def _errors(entries: list[Entry]) -> list[str]:
    rows: list[Any] = [{"key": e.key, "operator": e.operator, "values": [*e.values]} for e in entries]
    spec = {"template": {"spec": {"requirements": rows}}}
    manifest = default({"apiVersion": f"{labels.GROUP}/v1", "kind": "NodePool", "spec": spec})
    return [problem.rule for problem in rules_nodepool.check(manifest) if problem.severity == "error"]


@given(_ENTRIES)
def test_no_rule_finds_an_error_in_sound_requirements(entries: list[Entry]) -> None:
    if requirement_rules.sound(entries, nearest.USABLE_LABELS):
        assert not _errors(entries)


@pytest.mark.parametrize(
    ("key", "value", "sound"),
    [
        ("example.com/a", "b-c", True),
        (labels.ZONE, "us-east-1a", True),
        (labels.NODEPOOL, "a", False),
        ("no key", "a", False),
        ("team", "a b", False),
        (labels.CAPACITY_TYPE, "spot", False),  # its values are known, so each has to be looked at
    ],
)
def test_which_requirements_are_sound_at_a_glance(key: str, value: str, sound: bool) -> None:
    entries = [Entry(key="team", operator="Exists"), Entry(key=key, operator="In", values=(value,))]
    assert requirement_rules.sound(entries, nearest.USABLE_LABELS) is sound
