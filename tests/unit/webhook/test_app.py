"""The app answers AdmissionReviews: what is refused, in what words, and what it does with nonsense."""

from __future__ import annotations

import copy
import io
import json
from typing import Any

import jsonpatch
import pytest
from flask.testing import FlaskClient
from gunicorn.http.errors import InvalidChunkSize
from hypothesis import given
from hypothesis import strategies as st

from kerf_api.defaulting import default
from kerf_webhook import Settings, create_app
from tests.unit.api.manifests import BASES, NODEPOOL, changed

from .reviews import patch_of, review


@pytest.fixture(scope="module")
def client() -> FlaskClient:
    return create_app().test_client()


def ask(client: FlaskClient, path: str, question: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(path, json=question)
    assert answer.status_code == 200, answer.text
    content = json.loads(answer.data)
    assert (content["apiVersion"], content["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = content["response"]
    assert response["uid"] == question["request"]["uid"]
    return response


@pytest.mark.parametrize("kind", sorted(BASES))
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_good_objects_are_allowed_and_defaulted(client: FlaskClient, kind: str, operation: str) -> None:
    question = review(BASES[kind], old=BASES[kind] if operation == "UPDATE" else None, operation=operation, kind=kind)
    assert ask(client, "/validate", question) == {"uid": "11111111-2222", "allowed": True}
    mutated = ask(client, "/mutate", question)
    assert mutated["allowed"]
    assert jsonpatch.apply_patch(BASES[kind], patch_of(mutated)) == default(BASES[kind])


def test_a_complete_object_gets_no_patch(client: FlaskClient) -> None:
    assert "patch" not in ask(client, "/mutate", review(default(NODEPOOL)))


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_a_refusal_names_place_value_bounds_and_nearest_value(client: FlaskClient, path: str) -> None:
    response = ask(client, path, review(changed("NodePool", "T.expireAfter", "30d")))
    assert not response["allowed"]
    assert response["status"] == {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": 'NodePool default: spec.template.spec.expireAfter: "30d" does not match the pattern; '
        "needed is a duration of whole hours, minutes and seconds such as 720h or 1h30m, or Never; "
        'did you mean "720h"? [KERF-SCHEMA-PATTERN]',
    }


def test_a_refusal_names_the_namespace_where_there_is_one(client: FlaskClient) -> None:
    wrong = changed("CapacityBuffer", "spec.percentage", -1)
    response = ask(client, "/validate", review(wrong, kind="CapacityBuffer", name="web", namespace="shop"))
    assert response["status"]["message"].startswith("CapacityBuffer shop/web: spec.percentage: -1 is less than 0")


def test_several_problems_are_told_together_and_bounded(client: FlaskClient) -> None:
    wrong = changed(
        "NodePool", "T.requirements", [{"key": f"karpenter.sh/{n}", "operator": "Exists"} for n in range(13)]
    )
    wrong["spec"]["weight"] = 0
    lines = ask(client, "/validate", review(wrong))["status"]["message"].splitlines()
    assert lines[0] == "NodePool default has 14 problems:"
    assert len(lines) == 12
    assert lines[1].startswith("- spec.template.spec.requirements[0].key: ")
    assert lines[-1] == "- and 4 more; `kerf validate` shows all of them"


def test_warnings_come_with_yes_and_are_short(client: FlaskClient) -> None:
    odd = changed("NodePool", "B.reasons", [])
    odd["spec"]["template"]["spec"]["nodeClassRef"] = {"group": "é" * 300, "kind": "EC2NodeClass", "name": "x"}
    response = ask(client, "/validate", review(odd))
    assert response["allowed"]
    assert any("KERF-NP-206" in warning for warning in response["warnings"])
    assert all(len(warning.encode()) <= 256 for warning in response["warnings"])
    assert "warnings" not in ask(client, "/mutate", review(odd))


def test_the_warning_of_what_is_only_unwise_is_not_a_refusal(client: FlaskClient) -> None:
    response = ask(client, "/validate", review(changed("NodePool", "B.nodes", "4294967296")))
    assert response["allowed"]
    assert len(response["warnings"]) == 1


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_an_old_fault_does_not_block_another_change(client: FlaskClient, path: str) -> None:
    old = changed("NodePool", "T.taints[0].key", "a" * 64)
    new = copy.deepcopy(old)
    new["spec"]["weight"] = 7
    assert ask(client, path, review(new, old=old, operation="UPDATE"))["allowed"]
    assert not ask(client, path, review(new))["allowed"]
    new["spec"]["weight"] = 700
    response = ask(client, path, review(new, old=old, operation="UPDATE"))
    assert "spec.weight" in response["status"]["message"]
    assert "taints" not in response["status"]["message"]


def test_the_old_fault_is_a_warning(client: FlaskClient) -> None:
    old = changed("NodePool", "T.taints[0].key", "a" * 64)
    response = ask(client, "/validate", review(old, old=old, operation="UPDATE"))
    assert "was so before" in response["warnings"][0]


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_changes_of_what_is_fixed_are_refused(client: FlaskClient, path: str) -> None:
    new = changed("NodeClaim", "spec.terminationGracePeriod", "1h")
    response = ask(client, path, review(new, old=BASES["NodeClaim"], operation="UPDATE", kind="NodeClaim"))
    assert "cannot change" in response["status"]["message"]


WRONG = changed("NodePool", "spec.weight", 0)


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(
    "question",
    [
        review(None, old=WRONG, operation="DELETE"),
        review(WRONG, operation="CONNECT"),
        review(WRONG, old=WRONG, operation="UPDATE", subResource="status"),
        review({"kind": "Scale"}, operation="UPDATE", subResource="scale"),
        review({"anything": 1}, kind="Deployment"),
        review(WRONG, resource={"group": "example.com", "version": "v1", "resource": "nodepools"}),
    ],
    ids=["delete", "connect", "status", "scale", "other kind", "other group"],
)
def test_what_is_none_of_our_business_is_allowed_untouched(client: FlaskClient, path: str, question: Any) -> None:
    assert ask(client, path, question) == {"uid": "11111111-2222", "allowed": True}


def _with(**request: Any) -> bytes:
    content = review(NODEPOOL)
    content["request"] |= request
    return json.dumps(content).encode()


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"a": NaN}', "not JSON"),
        (b"9" * 5000, "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"[]", "not an AdmissionReview"),
        (b"null", "not an AdmissionReview"),
        (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}', "only admission.k8s.io/v1"),
        (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', "no request"),
        (_with(uid=""), "no request with a uid"),
        (_with(uid=7), "no request with a uid"),
        (_with(resource=None), "names no resource"),
    ],
)
def test_nonsense_is_a_clear_400(client: FlaskClient, path: str, body: bytes, says: str) -> None:
    answer = client.post(path, data=body, content_type="application/json")
    assert answer.status_code == 400
    assert says in json.loads(answer.data)["error"]


class Torn(io.RawIOBase):
    """A body whose chunks make no sense, as gunicorn tells it."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        raise InvalidChunkSize(b"zz")


def test_a_torn_body_is_a_clear_400(client: FlaskClient) -> None:
    environment = {"wsgi.input": Torn(), "wsgi.input_terminated": True}
    answer = client.post("/validate", content_type="application/json", environ_overrides=environment)
    assert answer.status_code == 400
    assert json.loads(answer.data)["error"] == "the body cannot be read: Invalid chunk size: b'zz'"


def test_http_misuse_is_a_clear_4xx(client: FlaskClient) -> None:
    body = json.dumps(review(NODEPOOL))
    assert client.post("/validate", data=body, content_type="text/plain").status_code == 415
    assert client.post("/validate", data=body).status_code == 415
    assert client.post("/validate", data=body, content_type="application/json; charset=utf-8").status_code == 200
    missing = client.post("/nowhere", data=body)
    assert (missing.status_code, missing.mimetype) == (404, "application/json")
    wrong = client.get("/validate")
    assert wrong.status_code == 405
    assert "POST" in wrong.headers["Allow"]


def test_a_body_may_be_large_but_not_too_large(client: FlaskClient) -> None:
    big = changed("EC2NodeClass", "metadata.managedFields", [{"manager": "y" * (3 * 1024 * 1024 - 5000)}])
    assert ask(client, "/validate", review(big, kind="EC2NodeClass"))["allowed"]
    answer = client.post("/validate", data=b"x" * (3 * 1024 * 1024 + 1), content_type="application/json")
    assert answer.status_code == 413
    assert "3145728" in json.loads(answer.data)["error"]


def test_deep_objects_are_refused_in_words(client: FlaskClient) -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = {"a": deep}
    response = ask(client, "/mutate", review(changed("EC2NodeClass", "spec.kubelet", deep), kind="EC2NodeClass"))
    assert "nested more than" in response["status"]["message"]


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(
    "broken", [None, {}, [], "x", {"kind": 5}, {"spec": []}, {"metadata": 3, **NODEPOOL, "spec": 1}]
)
def test_broken_objects_are_refused_not_crashed(client: FlaskClient, path: str, broken: Any) -> None:
    assert not ask(client, path, review(broken))["allowed"]
    ask(client, path, review(broken, old=broken, operation="UPDATE"))


def test_health_and_metrics(client: FlaskClient) -> None:
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 200
    ask(client, "/validate", review(NODEPOOL))
    text = client.get("/metrics").text
    assert 'kerf_webhook_reviews_total{outcome="allowed",path="/validate",resource="nodepools.karpenter.sh"}' in text
    assert "kerf_webhook_duration_seconds_bucket" in text


def test_two_apps_count_apart() -> None:
    first, second = create_app(), create_app(Settings(most_problems=1, body_bytes=100_000))
    first.test_client().post("/validate", json=review(NODEPOOL))
    assert "kerf_webhook_reviews_total{" in first.test_client().get("/metrics").text
    assert "kerf_webhook_reviews_total{" not in second.test_client().get("/metrics").text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.sampled_from(["/mutate", "/validate"]),
    st.dictionaries(
        st.sampled_from(["uid", "operation", "name", "resource", "object", "oldObject", "subResource"]), json_values
    ),
)
def test_no_request_crashes(path: str, changes: dict[str, Any]) -> None:
    answer = _shared.test_client().post(path, data=_with(**changes), content_type="application/json")
    assert answer.status_code in (200, 400)


_shared = create_app()
