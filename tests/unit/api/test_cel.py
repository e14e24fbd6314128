"""What spares the CEL engine work changes no answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf_api import crds
from kerf_api.lint.expressions import cel

VEILED = [rule for kind in crds.kinds() for rule in cel.rules(kind) if rule.veiled]
texts = st.sampled_from(("", "0", "1", "-1", "007", "1.0", "a", "true", "9223372036854775808"))
operators = st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte", "in", ""))
entries = st.fixed_dictionaries(
    {}, optional={"operator": operators, "values": st.lists(texts, max_size=3), "minValues": st.integers(0, 4)}
)


def test_there_are_rules_to_which_lengths_are_told_first() -> None:
    assert {name for rule in VEILED for name in rule.veiled} == {"values"}


@pytest.mark.parametrize("rule", VEILED, ids=lambda rule: rule.id)
@given(entry=entries)
def test_what_holds_by_lengths_alone_holds(rule: cel.Rule, entry: dict[str, Any]) -> None:
    read = {name: entry[name] for name in rule.reads or () if name in entry}
    assert cel._holds(rule, entry, None) == cel._evaluate(rule, read, None)


@pytest.mark.parametrize(
    ("source", "veiled"),
    [
        ("size(x.values) == 1 && int(x.values[0]) >= 0", {"values"}),
        ("size(x.values) == 1 && x.values[0] == 'a'", set()),
        ("size(x.values) == 1 && 'a' in x.values", set()),
        ("has(x.values) && size(x.values) > 0", set()),
        ("x.operator == 'size(x.operator)'", set()),
    ],
)
def test_of_which_fields_the_length_may_be_enough(source: str, veiled: set[str]) -> None:
    assert cel._veiled(source, "x", ("operator", "values")) == veiled
