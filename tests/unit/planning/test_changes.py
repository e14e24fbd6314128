"""A change beside a snapshot from a file: user data and annotations that the file lacks."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.planning.changes import Change, Comparison, key
from kerf.snapshots.sanitizing import Sanitizer
from tests.unit.snapshots.worlds import busy


def _class(text: str | None) -> dict[str, Any]:
    spec = {} if text is None else {"userData": text}
    return {"kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": spec}


def _pool(**annotations: str) -> dict[str, Any]:
    template = {"metadata": {"annotations": annotations, "labels": {"a": "b"}}, "spec": {}}
    return {"kind": "NodePool", "metadata": {"name": "general"}, "spec": {"template": template}}


def _comparison(known: str | None, before: list[dict[str, Any]], *, with_key: bool) -> Comparison:
    snapshot = busy().snapshot
    old = snapshot.node_classes["default"]
    own = replace(old, spec=replace(old.spec, user_data=known))
    digest = Sanitizer(b"key", snapshot).digest if with_key else None
    from dataclasses import replace as changed

    return Comparison(changed(snapshot, node_classes={"default": own}), digest, {key(one): one for one in before})


@pytest.mark.parametrize(
    ("before", "with_key", "same", "assumed"),
    [
        ([], False, True, 1),
        ([_class("new")], False, True, 0),
        ([_class("old")], False, False, 0),
        ([], True, False, 0),
    ],
)
def test_user_data(before: list[dict[str, Any]], with_key: bool, same: bool, assumed: int) -> None:
    known = "# digest:of something"
    comparison = _comparison(known, before, with_key=with_key)
    found = comparison.comparable(Change((_class("new"),))).applied[0]
    assert (found["spec"]["userData"] == known) == same
    assert len(comparison.assumed) == assumed


def test_user_data_of_the_same_key_is_the_same() -> None:
    known = Sanitizer(b"key", busy().snapshot).digest("text")
    comparison = _comparison(known, [], with_key=True)
    assert comparison.comparable(Change((_class("text"),))).applied[0]["spec"]["userData"] == known
    assert comparison.comparable(Change((_class("other"),))).applied[0]["spec"]["userData"] != known


@pytest.mark.parametrize(("known", "text"), [(None, "new"), ("# digest:a", None)])
def test_user_data_that_comes_or_goes_is_a_change(known: str | None, text: str | None) -> None:
    comparison = _comparison(known, [], with_key=False)
    assert comparison.comparable(Change((_class(text),))).applied[0] == _class(text)
    assert not comparison.assumed


@pytest.mark.parametrize(
    ("before", "kept", "assumed"),
    [
        ([], {}, 1),
        ([_pool(**{"example.com/a": "1"})], {}, 0),
        ([_pool(**{"example.com/a": "0"})], {"example.com/a": "1"}, 0),
    ],
)
def test_annotations_of_a_template(before: list[dict[str, Any]], kept: dict[str, str], assumed: int) -> None:
    comparison = _comparison(None, before, with_key=False)
    found = comparison.comparable(Change((_pool(**{"example.com/a": "1"}),))).applied[0]
    assert found["spec"]["template"]["metadata"]["annotations"] == kept
    assert found["spec"]["template"]["metadata"]["labels"] == {"a": "b"}
    assert len(comparison.assumed) == assumed


def test_annotations_that_decisions_read_are_compared() -> None:
    pool = _pool(**{"karpenter.sh/do-not-disrupt": "true"})
    comparison = _comparison(None, [], with_key=False)
    assert comparison.comparable(Change((pool,))).applied[0] == pool
    assert not comparison.assumed


def test_what_is_no_nodepool_or_class_stays() -> None:
    other = {"kind": "PodDisruptionBudget", "metadata": {"name": "a", "namespace": "b"}}
    assert _comparison(None, [], with_key=False).comparable(Change((other,))).applied == (other,)
    assert key(other) == ("PodDisruptionBudget", "b", "a")
