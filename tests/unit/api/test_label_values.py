"""Label values: a list is looked at as a whole, with the same outcome as one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf_api.lint.reading.reading import are_label_values, label_value_fault

_TEXTS = st.text("aZ09-_.\n é", max_size=6) | st.sampled_from(["a" * 63, "a" * 64, ""])


@given(st.lists(_TEXTS, max_size=4))
def test_a_list_has_a_fault_if_one_of_its_texts_has(values: list[str]) -> None:
    assert are_label_values(values) is all(label_value_fault(value) is None for value in values)


@pytest.mark.parametrize("value", ["a\nb", "-a", "a.", "a b", "é", "a" * 64, "\n"])
def test_one_fault_among_many_values_is_found(value: str) -> None:
    assert not are_label_values([*(f"v{i}" for i in range(50)), value, "a-b_c.d"])
