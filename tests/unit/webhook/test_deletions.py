"""Deletions that would empty the cluster are refused until somebody has said that they are meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from kerf_api import crds, labels
from kerf_webhook import create_app
from kerf_webhook.deletions import GUARDED

from .reviews import review

CRDS = {"group": "apiextensions.k8s.io", "version": "v1", "resource": "customresourcedefinitions"}


@pytest.fixture(scope="module")
def client() -> FlaskClient:
    return create_app().test_client()


def pool(nodes: Any = None, word: Any = None) -> dict[str, Any]:
    notes = {} if word is None else {"annotations": {labels.ALLOW_DELETION: word}}
    return {"metadata": {"name": "general", **notes}, "status": {} if nodes is None else {"nodes": nodes}}


def definition(name: str, word: str | None = None) -> dict[str, Any]:
    notes = {} if word is None else {"annotations": {labels.ALLOW_DELETION: word}}
    return {"metadata": {"name": name, **notes}, "spec": {}}


def asked(client: FlaskClient, old: Any, *, path: str = "/validate", **more: Any) -> dict[str, Any]:
    answer = client.post(path, json=review(None, old=old, operation="DELETE", **more))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = json.loads(answer.data)["response"]
    return found


@pytest.mark.parametrize(
    ("nodes", "word", "goes"),
    [
        (None, None, True),
        (0, None, True),
        (3, None, True),
        (4, None, False),
        (40, None, False),
        (40, "40", True),
        (40, "39", False),
        (40, "100", True),
        (40, "all", True),
        (40, "true", False),
        (40, "-50", False),
        (40, "٤٠", False),
        (40, "", False),
        (40, 40, False),
        ("forty", None, True),
    ],
)
def test_a_pool_goes_with_few_nodes_or_with_a_word_for_as_many_as_it_has(
    client: FlaskClient, nodes: Any, word: Any, goes: bool
) -> None:
    assert asked(client, pool(nodes, word))["allowed"] is goes


def test_the_refusal_says_how_many_and_what_to_do(client: FlaskClient) -> None:
    assert asked(client, pool(40))["status"] == {
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": "NodePool general has 40 nodes, and its deletion drains all of them. If that is meant: "
        "kubectl annotate nodepool general kerf.sh/allow-deletion=40 "
        "(or commit this annotation, and remove the NodePool when it is there)",
    }


@pytest.mark.parametrize("name", sorted(GUARDED))
def test_definitions_go_with_a_word_only(client: FlaskClient, name: str) -> None:
    refused = asked(client, definition(name), resource=CRDS)
    assert f"kubectl annotate crd {name} kerf.sh/allow-deletion=all" in refused["status"]["message"]
    assert asked(client, definition(name, "all"), resource=CRDS)["allowed"]


def test_the_definitions_that_nodes_depend_on_are_ours(client: FlaskClient) -> None:
    ours = {crds.load(kind)["metadata"]["name"] for kind in crds.kinds()}
    assert ours > set(GUARDED)
    for name in (*sorted(ours - set(GUARDED)), "widgets.example.com"):
        assert asked(client, definition(name), resource=CRDS)["allowed"]


def test_a_collection_is_judged_by_its_members(client: FlaskClient) -> None:
    """The API server asks about each of them, and names none in the request."""
    assert not asked(client, definition("nodepools.karpenter.sh"), resource=CRDS, name="")["allowed"]


@pytest.mark.parametrize("old", [None, {}, {"metadata": None, "status": []}, {"metadata": {"annotations": []}}])
@pytest.mark.parametrize("resource", [{}, {"resource": CRDS}])
def test_what_cannot_be_read_holds_nobody_up(client: FlaskClient, old: Any, resource: dict[str, Any]) -> None:
    assert asked(client, old, **resource)["allowed"]


def test_deletions_of_others_and_the_other_door_have_nothing_to_say(client: FlaskClient) -> None:
    assert asked(client, pool(40), path="/mutate")["allowed"]
    assert asked(client, pool(40), kind="NodeClaim")["allowed"]
    assert asked(client, pool(40), subResource="status")["allowed"]
