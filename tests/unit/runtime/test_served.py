"""What `kerf preflight`, and a controller at its start, find of definitions that are older than Kerf."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kerf.model import kinds
from kerf.ports import AlreadyGone, Forbidden
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, UNCHECKED, WRONG, Finding
from kerf.runtime.preflight.served import CHECKED, look
from kerf_api import crds

Schema = dict[str, Any]


class Server:
    """It serves Kerf's definitions, changed by `edits` of the schema of a kind; `error` is raised where it is set."""

    def __init__(self, edits: Mapping[str, Callable[[Schema], object]], error: Exception | None = None) -> None:
        self._edits, self._error = edits, error

    def request(self, method: str, path: str, body: Any = None) -> Any:
        if self._error is not None:
            raise self._error
        assert (method, body) == ("GET", None)
        return {"components": {"schemas": dict(self._schemas(path.removeprefix("/openapi/v3/apis/")))}}

    def _schemas(self, group_version: str) -> list[tuple[str, Schema]]:
        group, _, version = group_version.partition("/")
        found = [("meta", {"type": "object"})]
        for kind in CHECKED:
            if kind.api_version == group_version:
                schema = copy.deepcopy(dict(crds.schema(kind.name)))
                if kind.name in self._edits:
                    self._edits[kind.name](schema)
                schema["x-kubernetes-group-version-kind"] = [{"group": group, "version": version, "kind": kind.name}]
                found.append((kind.name, schema))
        return found


def found(kind: str, edit: Callable[[Schema], object] = lambda schema: None) -> Finding:
    rows = {one.what: one for one in look(Server({kind: edit}))}
    assert len(rows) == len(CHECKED)
    return rows[f"definition of {kind}"]


def at(schema: Schema, path: str) -> Schema:
    for name in path.split("."):
        schema = schema["items"] if name == "[]" else schema["properties"][name]
    return schema


@pytest.mark.parametrize("kind", [kind.name for kind in CHECKED])
def test_kerfs_own_definitions_lack_nothing(kind: str) -> None:
    assert found(kind).how == GOOD


def test_a_status_that_is_not_served_is_done_without() -> None:
    one = found("NodePool", lambda schema: at(schema, "status")["properties"].pop("nodeClassObservedGeneration"))
    assert (one.how, one.seen) == (DOUBTFUL, "no status.nodeClassObservedGeneration: Kerf does without")
    assert "kerf-crd" in one.fix


def test_of_a_field_that_is_missing_those_below_are_not_named() -> None:
    one = found("EC2NodeClass", lambda schema: at(schema, "spec")["properties"].pop("networkInterfaces"))
    assert (one.how, one.seen) == (
        WRONG,
        "no spec.networkInterfaces: the API server drops them from what is applied",
    )
    assert one.fix.startswith("helm upgrade kerf-crd")


def test_values_that_are_not_served_are_named() -> None:
    def edit(schema: Schema) -> None:
        at(schema, "spec.requirements.[].operator")["enum"] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

    assert found("NodeClaim", edit).seen == "spec.requirements[].operator cannot be Gte or Lte"


def test_many_fields_are_counted() -> None:
    one = found("EC2NodeClass", lambda schema: at(schema, "spec")["properties"].clear())
    assert " and " in one.seen
    assert " more: " in one.seen


@pytest.mark.parametrize("error", [Forbidden("no"), AlreadyGone("/openapi/v3")])
def test_what_cannot_be_read_is_not_called_good(error: Exception) -> None:
    rows = list(look(Server({}, error)))
    assert {one.how for one in rows} == {UNCHECKED}
    assert all("not checked" in one.seen for one in rows)


@pytest.mark.parametrize("document", [[], "<html>", None, {"components": []}, {"components": {"schemas": {"a": 5}}}])
def test_a_document_of_another_shape_is_not_called_good_and_stops_nothing(document: Any) -> None:
    class Odd(Server):
        def request(self, method: str, path: str, body: Any = None) -> Any:
            return document

    rows = list(look(Odd({})))
    assert [one.how for one in rows] == [UNCHECKED] * len(CHECKED)


def test_each_document_is_read_once() -> None:
    asked: list[str] = []

    class Counting(Server):
        def request(self, method: str, path: str, body: Any = None) -> Any:
            asked.append(path)
            return super().request(method, path, body)

    assert len(list(look(Counting({})))) == len(CHECKED)
    assert len(asked) == len(set(asked)) == 2


def test_a_kind_that_is_not_served_is_for_others_to_name() -> None:
    class Empty(Server):
        def request(self, method: str, path: str, body: Any = None) -> Any:
            return {"components": {"schemas": {}}}

    assert list(look(Empty({}))) == []
    assert kinds.NODE_POOL in CHECKED
