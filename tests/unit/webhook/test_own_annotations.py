"""Annotations in which Kerf keeps its own state: which changes the webhook refuses, and in which words."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from kerf_api import labels, thresholds
from kerf_api.written_annotations import WRITTEN, Change, refused
from kerf_webhook import create_app
from tests.unit.api.manifests import BASES, changed, placed

from .reviews import review

KINDS = ("EC2NodeClass", "NodeClaim", "NodePool")
HASHES = {
    "NodePool": {labels.NODEPOOL_HASH, labels.NODEPOOL_HASH_VERSION},
    "EC2NodeClass": {labels.NODECLASS_HASH, labels.NODECLASS_HASH_VERSION},
    "NodeClaim": set[str](),
}
EACH = [pytest.param(kind, key, id=f"{kind} {key}") for kind in KINDS for key in sorted(WRITTEN[kind])]
FOR_USERS = (
    labels.DO_NOT_DISRUPT,
    labels.ALLOW_DELETION,
    labels.ALLOW_GARBAGE,
    labels.DEVICE_TEMPLATES,
    labels.PLAN_FIRST,
    labels.APPROVED_PLAN,
    labels.CANARY_SOAK,
    labels.CONTINUED_PLAN,
    *thresholds.ANNOTATIONS,
    "example.com/team",
    "kubectl.kubernetes.io/last-applied-configuration",
)
PAGE = Path(__file__).resolve().parents[3] / "docs/permissions.md"
ABSENT = object()
USER = "system:serviceaccount:shop:editor"


@pytest.fixture(scope="module")
def client() -> FlaskClient:
    return create_app().test_client()


def written(kind: str, notes: Any) -> dict[str, Any]:
    """The smallest object of a kind with these annotations."""
    return BASES[kind] if notes is ABSENT else placed(BASES[kind], "metadata.annotations", notes)


def asked(client: FlaskClient, kind: str, new: Any, old: Any = ABSENT, **more: Any) -> dict[str, Any]:
    """The answer to annotations `new` of a new object, or in place of `old`; `ABSENT` is no map at all."""
    return asked_of(client, kind, written(kind, new), None if old is ABSENT else written(kind, old), **more)


def updated(client: FlaskClient, kind: str, new: Any, old: Any) -> dict[str, Any]:
    return asked_of(client, kind, written(kind, new), written(kind, old))


def asked_of(
    client: FlaskClient, kind: str, new: Any, old: Any, path: str = "/annotations", **more: Any
) -> dict[str, Any]:
    operation = "CREATE" if old is None else "UPDATE"
    more = {"operation": operation, "userInfo": {"username": USER}, **more}
    answer = client.post(path, json=review(new, old=old, kind=kind, **more))
    assert answer.status_code == 200, answer.text
    response: dict[str, Any] = json.loads(answer.data)["response"]
    return response


@pytest.mark.parametrize(("kind", "key"), EACH)
def test_another_account_may_not_write_it(client: FlaskClient, kind: str, key: str) -> None:
    for old in (ABSENT, None, {}, {"a": "b"}):
        assert not updated(client, kind, {"a": "b", key: "x"}, old)["allowed"], f"added to {old}"
    assert not updated(client, kind, {key: ""}, {})["allowed"], "an empty value is a value"
    assert not updated(client, kind, {key: "y"}, {key: "x"})["allowed"]
    assert asked(client, kind, {key: "x"})["allowed"] is (key in HASHES[kind])


@pytest.mark.parametrize(("kind", "key"), EACH)
def test_nothing_of_a_claim_may_be_removed_and_of_parents_not_the_terminated_instances(
    client: FlaskClient, kind: str, key: str
) -> None:
    for new in (ABSENT, None, {}, {"a": "b"}):
        answer = updated(client, kind, new, {"a": "b", key: "x"})
        assert answer["allowed"] is (kind != "NodeClaim" and key != labels.GARBAGE), f"removed by {new}"


@pytest.mark.parametrize(("kind", "key"), EACH)
def test_unchanged_values_pass_whatever_else_changes(client: FlaskClient, kind: str, key: str) -> None:
    old = placed(written(kind, {key: "x", "a": "b"}), "metadata.finalizers", ["karpenter.sh/termination"])
    for path, value in (
        ("metadata.annotations", {key: "x", "a": "c"}),
        ("metadata.annotations", {key: "x"}),
        ("metadata.finalizers", []),
        ("metadata.deletionTimestamp", "2026-01-01T00:00:00Z"),
        ("metadata.labels", {"team": "web"}),
        ("spec", {}),
    ):
        assert asked_of(client, kind, placed(old, path, value), old) == {"uid": "11111111-2222", "allowed": True}


@pytest.mark.parametrize("kind", KINDS)
def test_annotations_for_users_pass(client: FlaskClient, kind: str) -> None:
    notes = dict.fromkeys(FOR_USERS, "true")
    assert not WRITTEN[kind] & notes.keys()
    assert asked(client, kind, notes)["allowed"]
    assert updated(client, kind, notes, {})["allowed"]
    assert updated(client, kind, ABSENT, notes)["allowed"]


def test_each_annotation_of_kerf_is_listed_or_for_users() -> None:
    of_kerf = {
        value for value in vars(labels).values() if isinstance(value, str) and value.startswith(f"{labels.KERF}/")
    }
    for_users = {key for key in FOR_USERS if key.startswith(f"{labels.KERF}/")}
    of_others = {labels.RECONCILE_ID, labels.KUBERNETES_VERSION, labels.LEADING_SINCE}  # of Events, and of Leases
    assert of_kerf - set().union(*WRITTEN.values()) == for_users | of_others


def test_only_the_annotations_are_judged(client: FlaskClient) -> None:
    """An object that the rules of today refuse can still have its metadata changed, and its finalizers removed."""
    wrong = changed("NodePool", "T.expireAfter", "30d")
    assert not asked_of(client, "NodePool", wrong, None, path="/validate")["allowed"]
    annotated = placed(wrong, "metadata.annotations", {"a": "b"})
    assert asked_of(client, "NodePool", annotated, wrong) == {"uid": "11111111-2222", "allowed": True}
    listed = placed(wrong, "metadata.annotations", {labels.BACK_OFF: "x"})
    assert "expireAfter" not in asked_of(client, "NodePool", listed, wrong)["status"]["message"]


def test_the_refusal_names_the_annotation_the_account_and_the_fix(client: FlaskClient) -> None:
    assert updated(client, "NodeClaim", {labels.LAUNCH_REQUEST: "{}"}, {})["status"] == {
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": "NodeClaim default: metadata.annotations[kerf.sh/launch-request] is added: only Kerf and the "
        "accounts in webhook.trustedAccounts of its chart may do that, and the account "
        f'"{USER}" is none of them; remove it from the manifest',
    }


@pytest.mark.parametrize(
    ("new", "old", "problem", "fix"),
    [
        ({labels.ENDS: "y"}, {labels.ENDS: "x"}, "[kerf.sh/ends] is changed:", "; remove it from the manifest"),
        ({}, {labels.ENDS: "x"}, "[kerf.sh/ends] is removed:", "; keep it as in the cluster"),
        (
            {labels.ENDS: "x", labels.COMMAND: "x"},
            {},
            "[kerf.sh/command] is added, metadata.annotations[kerf.sh/ends] is added:",
            "; remove them from the manifest",
        ),
        ({}, {labels.ENDS: "x", labels.COMMAND: "x"}, "[kerf.sh/ends] is removed:", "; keep them as in the cluster"),
        (
            {labels.ENDS: "x"},
            {labels.COMMAND: "x"},
            "[kerf.sh/command] is removed, metadata.annotations[kerf.sh/ends] is added:",
            "; remove from the manifest those that are added or changed, and keep the others as in the cluster",
        ),
    ],
    ids=["changed", "removed", "two added", "two removed", "both"],
)
def test_each_change_has_its_fix(client: FlaskClient, new: Any, old: Any, problem: str, fix: str) -> None:
    message = updated(client, "NodeClaim", new, old)["status"]["message"]
    assert problem in message
    assert message.endswith(fix)


def test_a_name_that_the_api_server_makes_is_in_the_message(client: FlaskClient) -> None:
    answer = asked(client, "NodeClaim", {labels.INSTANCE: "i-0"}, name="")
    assert answer["status"]["message"].startswith(f"NodeClaim {BASES['NodeClaim']['metadata']['name']}: ")
    unnamed = asked(client, "NodeClaim", {labels.INSTANCE: "i-0"}, userInfo=None)
    assert ", and this account is none of them; " in unnamed["status"]["message"]


@pytest.mark.parametrize("kind", ["NodeOverlay", "CapacityBuffer", "Deployment"])
def test_other_kinds_pass(client: FlaskClient, kind: str) -> None:
    new = {"metadata": {"annotations": {labels.LAUNCH_REQUEST: "{}"}}}
    assert asked_of(client, kind, new, None)["allowed"]
    assert refused(kind, {labels.LAUNCH_REQUEST: "{}"}, None) == ()


@pytest.mark.parametrize("subresource", ["status", "scale"])
def test_subresources_and_deletions_pass(client: FlaskClient, subresource: str) -> None:
    notes = {labels.LAUNCH_REQUEST: "{}"}
    assert asked(client, "NodeClaim", notes, {}, subResource=subresource)["allowed"]
    assert asked_of(client, "NodeClaim", None, written("NodeClaim", notes), operation="DELETE")["allowed"]


@pytest.mark.parametrize("notes", [None, [], "x", {"a": None}, {labels.ENDS: "x"}])
@pytest.mark.parametrize("new", [None, [], {}, {"metadata": None}, {"metadata": []}])
def test_malformed_objects_get_an_answer(client: FlaskClient, notes: Any, new: Any) -> None:
    """The API server sends none; without a name for what is missing it counts as removed."""
    answer = asked_of(client, "NodeClaim", new, written("NodeClaim", notes))
    assert answer["allowed"] is (not isinstance(notes, dict) or labels.ENDS not in notes)


def test_changes_come_in_the_order_of_their_keys() -> None:
    new = dict.fromkeys(sorted(WRITTEN["NodeClaim"], reverse=True), "x")
    assert refused("NodeClaim", new, None) == tuple(Change(key, "added") for key in sorted(new))


def test_the_page_lists_them_by_kind() -> None:
    _, _, section = PAGE.read_text(encoding="utf-8").partition("## Annotations that only Kerf writes\n")
    listed, removable = defaultdict[str, set[str]](set), set[tuple[str, str]]()
    for row in re.findall(
        r"^\| ([A-Z].+?) \| (`.+?`) \| (.+?) \| (.+?) \|$", section.partition("\n## ")[0], re.MULTILINE
    ):
        keys = set(re.findall(r"`(.+?)`", row[1]))
        for kind in row[0].split(", "):
            listed[kind] |= keys
        removable |= {(kind, key) for key in keys for kind in row[0].split(", ") if "removed" not in row[3]}
    assert listed == WRITTEN
    assert removable == {(kind, key) for kind in KINDS for key in WRITTEN[kind] if not refused(kind, {}, {key: "x"})}
