"""Pods are alike when scheduling reads the same of them, however their objects came to be."""

from __future__ import annotations

from types import MappingProxyType

import msgspec
import pytest

from kerf.model.kubernetes.objects import Expression, LabelSelector
from kerf.model.kubernetes.selectors import keys_of, selector_of
from kerf.scheduling.placing.pod_parts import shape_of
from tests.unit.scheduling import worlds as w

ONE = w.pod("one", nodeSelector={"a": "1", "b": "2"}, requests={"example.com/gpu": "1"})

EXISTS, IN = Expression(key="zone", operator="Exists"), Expression(key="tier", operator="In", values=("a",))


def test_the_order_of_labels_and_requests_does_not_matter() -> None:
    other = w.pod("two", nodeSelector={"b": "2", "a": "1"}, requests={"example.com/gpu": "1"})
    assert shape_of(other) == shape_of(ONE)


def test_a_mapping_that_is_no_dict_is_read_like_one() -> None:
    view = MappingProxyType(dict(reversed(list(ONE.spec.node_selector.items()))))
    other = msgspec.structs.replace(ONE, spec=msgspec.structs.replace(ONE.spec, node_selector=view))
    assert shape_of(other) == shape_of(ONE)


def test_another_value_or_amount_makes_another_shape() -> None:
    others = [
        w.pod("three", nodeSelector={"a": "1", "b": "3"}, requests={"example.com/gpu": "1"}),
        w.pod("four", nodeSelector={"a": "1", "b": "2"}, requests={"example.com/gpu": "2"}),
    ]
    assert shape_of(ONE) not in {shape_of(other) for other in others}


@pytest.mark.parametrize(
    "selector",
    [
        None,
        LabelSelector(),
        LabelSelector(match_labels={"app": "web", "tier": "a"}),
        LabelSelector(match_labels={"app": "web"}, match_expressions=(EXISTS, IN)),
        LabelSelector(match_expressions=(IN,)),
        LabelSelector(match_labels={"app": "web"}, match_expressions=(msgspec.structs.replace(IN, operator="Gt"),)),
    ],
)
def test_the_keys_of_a_selector_are_those_that_it_looks_at(selector: LabelSelector | None) -> None:
    assert set(keys_of(selector)) == selector_of(selector, {}, ()).keys
