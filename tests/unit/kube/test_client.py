"""The Kube adapter against a scripted server on a real socket."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import pytest
from kubernetes.client import Configuration

from kerf.kube.client import KubeClient
from kerf.kube.decoding import KindDecoder
from kerf.kube.errors import translate
from kerf.kube.transport import Limiter, Sending, Transport
from kerf.kube.watching import HttpWatch
from kerf.model import kinds
from kerf.model.kinds import Kind, Ref
from kerf.ports import (
    AlreadyExists,
    AlreadyGone,
    Change,
    Conflict,
    Disconnected,
    EvictionBlocked,
    Expired,
    Forbidden,
    Invalid,
    Lease,
    PortError,
    SeveralBudgets,
    Throttled,
    Unavailable,
    Watch,
)

from .api_double import ApiDouble, Handler

PODS = "/api/v1/pods"


@pytest.fixture
def api() -> Iterator[ApiDouble]:
    with ApiDouble() as double:
        yield double


def pod(name: str, version: str = "1") -> dict[str, Any]:
    meta = {"name": name, "namespace": "d", "uid": f"uid-{name}", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "c"}]}, "status": {}}


def line(type_: str, object_: Any) -> bytes:
    return json.dumps({"type": type_, "object": object_}).encode() + b"\n"


def client(api: ApiDouble, poison: list[str] | None = None) -> KubeClient:
    def poisoned(kind: Kind, problem: str) -> None:
        if poison is not None:
            poison.append(f"{kind.name}: {problem}")

    return KubeClient(api.configuration, on_poison=poisoned)


# --- lists ------------------------------------------------------------------------------------------------------
def test_all_pages_of_a_list(api: ApiDouble) -> None:
    def page(request: Handler) -> tuple[int, Any]:
        number = int(request.query.get("continue", "0"))
        items = [pod(f"{number}-{n}") for n in range(2)]
        follow = str(number + 1) if number < 2 else ""
        return 200, {"metadata": {"resourceVersion": "77", "continue": follow}, "items": items}

    api.routes[f"GET {PODS}"] = page
    listing = client(api).list(kinds.POD, field_selector="spec.nodeName=n")
    assert [p.metadata.name for p in listing.items] == ["0-0", "0-1", "1-0", "1-1", "2-0", "2-1"]
    assert listing.resource_version == "77"
    assert len(api.requests) == 3


def test_a_list_of_nothing_may_be_null(api: ApiDouble) -> None:
    api.routes[f"GET {PODS}"] = lambda _: (200, {"metadata": {"resourceVersion": "1"}, "items": None})
    assert client(api).list(kinds.POD).items == ()


def test_an_object_is_read_as_far_as_it_can_be_and_does_not_hold_up_the_others(api: ApiDouble) -> None:
    broken = pod("broken")
    broken["spec"]["containers"] = "none"
    broken["spec"]["nodeName"] = "n"
    broken["metadata"]["labels"] = {"app": "web", "depth": 7}
    nameless = {"metadata": {"name": ["x"]}}
    body = {"metadata": {"resourceVersion": "1"}, "items": [pod("a"), broken, nameless, pod("b")]}
    api.routes[f"GET {PODS}"] = lambda _: (200, body)
    poison: list[str] = []
    listing = client(api, poison).list(kinds.POD)
    assert [p.metadata.name for p in listing.items] == ["a", "broken", "b"]
    assert [bool(p.metadata.unreadable) for p in listing.items] == [False, True, False]
    found = listing.items[1]
    assert (found.spec.node_name, found.spec.containers, found.metadata.labels) == ("n", (), {"app": "web"})
    assert len(poison) == 2


@pytest.mark.parametrize("status", [404, 410, 500])
def test_a_list_that_fails_is_never_empty(api: ApiDouble, status: int) -> None:
    api.routes[f"GET {PODS}"] = lambda _: (status, {"code": status})
    with pytest.raises(Unavailable):
        client(api).list(kinds.POD)


# --- watches ----------------------------------------------------------------------------------------------------
def test_a_watch_line_by_line(api: ApiDouble) -> None:
    gone = line("DELETED", pod("b", "6"))

    def stream(request: Handler) -> None:
        assert request.query["allowWatchBookmarks"] == "true"
        assert int(request.query["timeoutSeconds"]) >= 60
        request.begin_stream()
        request.stream(line("ADDED", pod("a", "5")) + gone[:20])
        request.stream(gone[20:])
        request.stream(line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "9"}, "spec": None}))
        request.end_stream()

    api.routes[f"GET {PODS}"] = stream
    watch = client(api).watch(kinds.POD, "4")
    changes: list[Change] = []
    with pytest.raises(Disconnected):
        _read_on(watch, changes)
    assert [(c.type, c.resource_version) for c in changes] == [("ADDED", "5"), ("DELETED", "6"), ("BOOKMARK", "9")]
    assert [getattr(c.value, "key", None) for c in changes] == ["d/a", "d/b", None]


def _read_on(watch: Watch, changes: list[Change]) -> None:
    while True:
        changes += watch.read(5)


def test_a_watch_goes_on_over_what_cannot_be_read_and_says_when_it_is_gone(api: ApiDouble) -> None:
    broken, nameless = pod("broken", "5"), {"metadata": {"resourceVersion": 5}}
    broken["spec"] = []

    def stream(request: Handler) -> None:
        request.begin_stream()
        lines = (("ADDED", broken), ("ADDED", nameless), ("ADDED", pod("a", "6")), ("DELETED", broken))
        request.stream(b"".join(line(*one) for one in lines))
        request.end_stream()

    api.routes[f"GET {PODS}"] = stream
    poison: list[str] = []
    watch = client(api, poison).watch(kinds.POD, "4")
    changes: list[Change] = []
    with pytest.raises(Disconnected):
        _read_on(watch, changes)
    assert [(c.type, c.value.key if c.value else None) for c in changes] == [
        ("ADDED", "d/broken"),
        ("ADDED", "d/a"),
        ("DELETED", "d/broken"),
    ]
    assert len(poison) == 3


def test_a_bug_over_a_line_ends_the_watch_and_is_no_silence(api: ApiDouble) -> None:
    def stream(request: Handler) -> None:
        request.begin_stream()
        request.stream(line("ADDED", {**pod("a"), "spec": []}))
        api.ended.wait(10)

    def poisoned(kind: Kind, problem: str) -> None:
        raise ZeroDivisionError

    api.routes[f"GET {PODS}"] = stream
    with pytest.raises(Disconnected):
        KubeClient(api.configuration, on_poison=poisoned).watch(kinds.POD, "4").read(5)


def test_a_quiet_watch_answers_in_time_and_can_be_closed_by_another(api: ApiDouble) -> None:
    def stream(request: Handler) -> None:
        request.begin_stream()
        api.ended.wait(10)

    api.routes[f"GET {PODS}"] = stream
    watch = client(api).watch(kinds.POD, "4")
    assert watch.read(0.05) == ()
    threading.Timer(0.05, watch.close).start()
    began = time.monotonic()
    with pytest.raises(Disconnected):
        watch.read(5)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("in_the_stream", [True, False])
def test_a_version_that_is_too_old(api: ApiDouble, in_the_stream: bool) -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}

    def stream(request: Handler) -> tuple[int, Any] | None:
        if not in_the_stream:
            return 410, status
        request.begin_stream()
        request.stream(line("ERROR", status))
        request.end_stream()
        return None

    api.routes[f"GET {PODS}"] = stream
    with pytest.raises(Expired):
        client(api).watch(kinds.POD, "4").read(5)


def test_a_half_open_connection_is_noticed(api: ApiDouble) -> None:
    def stream(request: Handler) -> None:
        request.begin_stream()
        request.stream(line("ADDED", pod("a", "5")))
        api.ended.wait(10)

    api.routes[f"GET {PODS}"] = stream
    transport = Transport(api.configuration, Sending())
    watch = HttpWatch(transport.open("GET", PODS, read_seconds=0.2), KindDecoder(kinds.POD, lambda *_: None), "pods")
    assert len(watch.read(5)) == 1
    with pytest.raises(Disconnected):
        watch.read(5)


def test_a_request_ends_although_the_server_does_not_answer(api: ApiDouble) -> None:
    def silence(request: Handler) -> None:
        api.ended.wait(10)

    api.routes[f"GET {PODS}"] = silence
    with pytest.raises(Unavailable):
        Transport(api.configuration, Sending()).request("GET", PODS, read_seconds=0.2)
    with pytest.raises(Unavailable):
        client(api).request("GET", PODS, read_seconds=0.2)


def test_no_server_at_all() -> None:
    configuration = Configuration()
    configuration.host = "http://127.0.0.1:9"
    with pytest.raises(Unavailable):
        KubeClient(lambda: configuration).list(kinds.POD)


# --- writes -----------------------------------------------------------------------------------------------------
def test_what_writes_look_like(api: ApiDouble) -> None:
    own = "/api/v1/namespaces/d/pods/a"
    for method in ("PATCH", "DELETE"):
        api.routes[f"{method} {own}"] = lambda _: (200, pod("a", "2"))
    api.routes[f"PATCH {own}/status"] = lambda _: (200, pod("a", "3"))
    api.routes[f"POST {own}/eviction"] = lambda _: (201, {"kind": "Status"})
    ref, kube = Ref("Pod", "d", "a"), client(api)
    assert kube.patch(ref, {"metadata": {"labels": {"x": "1"}}}, resource_version="1").metadata.resource_version == "2"
    kube.patch(ref, {"status": {}}, subresource="status")
    kube.delete(ref, uid="u", grace_seconds=0)
    kube.evict(ref, uid="u")
    patch, status, delete, evict = api.requests
    assert patch[2]["Content-Type"] == "application/merge-patch+json"
    assert patch[3] == {"metadata": {"labels": {"x": "1"}, "resourceVersion": "1"}}
    assert status[3] == {"status": {}}
    assert (delete[3]["preconditions"], delete[3]["gracePeriodSeconds"]) == ({"uid": "u"}, 0)
    assert evict[3]["deleteOptions"] == {"preconditions": {"uid": "u"}}
    assert (evict[3]["apiVersion"], evict[3]["kind"]) == ("policy/v1", "Eviction")


def test_events_of_cluster_scoped_objects_live_in_default(api: ApiDouble) -> None:
    api.routes["POST /api/v1/namespaces/default/events"] = lambda _: (201, {})
    client(api).emit(Ref("NodeClaim", "", "c"), "u", "Normal", "Launched", "text")
    body = api.requests[0][3]
    assert body["metadata"]["namespace"] == "default"
    assert body["involvedObject"]["apiVersion"] == "karpenter.sh/v1"
    assert body["source"] == {"component": "karpenter"}


def test_a_lease_has_six_digits_and_a_guard(api: ApiDouble) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/d/leases"

    def written(request: Handler) -> tuple[int, Any]:
        return 200, {**request.body, "metadata": {**request.body["metadata"], "resourceVersion": "8"}}

    api.routes[f"POST {path}"] = api.routes[f"PUT {path}/l"] = written
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    kube = client(api)
    kept = kube.put_lease("d", "l", Lease("me", moment, moment))
    assert api.requests[0][3]["spec"]["renewTime"] == "2026-01-01T00:00:00.000000Z"
    assert kept == Lease("me", moment, moment, resource_version="8")
    kube.put_lease("d", "l", kept)
    assert api.requests[1][0] == "PUT"
    assert api.requests[1][3]["metadata"]["resourceVersion"] == "8"


def test_credentials_are_read_again_when_they_are_refused(api: ApiDouble) -> None:
    tokens = iter(["old", "new"])

    def load() -> Configuration:
        configuration = api.configuration()
        configuration.api_key = {"authorization": f"Bearer {next(tokens)}"}
        return configuration

    def guarded(request: Handler) -> tuple[int, Any]:
        if request.headers["Authorization"] != "Bearer new":
            return 401, {"code": 401}
        return 200, {"metadata": {"resourceVersion": "1"}, "items": []}

    api.routes[f"GET {PODS}"] = guarded
    transport = Transport(load, Sending(reload_every_seconds=0.0))
    assert b"items" in transport.request("GET", PODS)
    assert len(api.requests) == 2


@pytest.mark.parametrize(("patience", "refusals", "heard"), [(5, 2, True), (1, 2, False), (0, 1, False)])
def test_a_busy_server_is_asked_again_by_who_is_patient(
    api: ApiDouble, monkeypatch: pytest.MonkeyPatch, patience: int, refusals: int, heard: bool
) -> None:
    """As one is that has only just learned of a kind; a writer is refused before anything is done, too."""
    waits = list[float]()
    monkeypatch.setattr("kerf.kube.transport.time.sleep", waits.append)

    def busy(request: Handler) -> tuple[int, Any]:
        if len(api.requests) > refusals:
            return 200, {"metadata": {"resourceVersion": "1"}, "items": []}
        said = {"kind": "Status", "code": 429, "message": "storage is (re)initializing"}
        return 429, {**said, "details": {"retryAfterSeconds": 60 if waits else 2}}

    api.routes |= {f"GET {PODS}": busy, f"POST {PODS}": busy}
    for method in ("GET", "POST"):
        api.requests.clear()
        waits.clear()
        client = KubeClient(api.configuration, Sending(patience=patience))
        with nullcontext() if heard else pytest.raises(Throttled, match="initializing"):
            client.request(method, PODS)
        assert len(api.requests) == min(refusals, patience) + 1
        assert waits == [2.0, 5.0][: min(refusals, patience)]


def test_what_the_server_warns_of_is_told(api: ApiDouble) -> None:
    warnings = list[str]()

    def known(request: Handler) -> None:
        request.send_response(200)
        request.send_header("Warning", '299 - "unknown field \\"spec.new\\"", 299 - "v1beta1 goes"')
        request.send_header("Content-Length", "2")
        request.end_headers()
        request.wfile.write(b"{}")

    api.routes["GET /version"] = known
    Transport(api.configuration, Sending(), on_warning=warnings.append).request("GET", "/version")
    assert warnings == ['unknown field "spec.new"', "v1beta1 goes"]


# --- errors -----------------------------------------------------------------------------------------------------
def budget() -> dict[str, Any]:
    return {"reason": "TooManyRequests", "details": {"causes": [{"reason": "DisruptionBudget"}]}}


@pytest.mark.parametrize(
    ("code", "body", "error"),
    [
        (404, {"reason": "NotFound"}, AlreadyGone),
        (409, {"reason": "AlreadyExists"}, AlreadyExists),
        (409, {"reason": "Conflict"}, Conflict),
        (410, {"reason": "Expired"}, Expired),
        (429, {"reason": "TooManyRequests"}, Throttled),
        (429, budget(), EvictionBlocked),
        (
            500,
            {"message": "This pod has more than one PodDisruptionBudget, which the eviction does not"},
            SeveralBudgets,
        ),
        (401, {}, Forbidden),
        (403, {"reason": "Forbidden"}, Forbidden),
        (400, {}, Invalid),
        (422, {"reason": "Invalid"}, Invalid),
        (500, {}, Unavailable),
        (503, {}, Unavailable),
    ],
)
def test_errors_by_next_step(code: int, body: dict[str, Any], error: type[PortError]) -> None:
    assert type(translate("GET /x", code, json.dumps(body).encode(), {})) is error


def test_a_proxy_may_answer_anything() -> None:
    assert type(translate("GET /x", 502, b"<html>\xff", {})) is Unavailable


def test_the_server_says_how_long_to_wait() -> None:
    error = translate("GET /x", 429, b"{}", {"Retry-After": "7"})
    assert isinstance(error, Throttled)
    assert error.retry_after_seconds == 7


def test_no_more_requests_than_allowed() -> None:
    now = [0.0]
    limiter = Limiter(10, 5, lambda: now[0])
    assert [limiter.reserve() for _ in range(5)] == [0.0] * 5
    assert limiter.reserve() == pytest.approx(0.1)
    assert limiter.reserve() == pytest.approx(0.2)
    now[0] = 10.0
    assert limiter.reserve() == 0.0
