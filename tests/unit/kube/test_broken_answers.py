"""Whatever goes wrong on the way, a caller meets a PortError: a server or balancer dies, a token is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import Configuration
from kubernetes.config.incluster_config import InClusterConfigLoader

from kerf.kube.client import KubeClient
from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.ports import AlreadyGone, Lease, Unavailable

from .api_double import ApiDouble, Handler

LEASES = "/apis/coordination.k8s.io/v1/namespaces/d/leases"
POD = Ref("Pod", "d", "a")


@pytest.fixture
def api() -> Iterator[ApiDouble]:
    with ApiDouble() as double:
        yield double


def cut_off(status: int) -> Callable[[Handler], None]:
    """An answer that promises more than it brings."""

    def answer(request: Handler) -> None:
        request.send_response(status)
        request.send_header("Content-Length", "200")
        request.end_headers()
        request.wfile.write(b'{"code": 5')
        request.close_connection = True

    return answer


CALLS: dict[str, Callable[[KubeClient], Any]] = {
    f"GET {kinds.POD.path()}": lambda kube: kube.list(kinds.POD),
    f"GET {kinds.POD.path('d', 'a')}": lambda kube: kube.get(POD),
    f"PATCH {kinds.POD.path('d', 'a')}": lambda kube: kube.patch(POD, {}),
    f"GET {LEASES}/l": lambda kube: kube.get_lease("d", "l"),
    f"POST {LEASES}": lambda kube: kube.put_lease("d", "l", Lease("me")),
    "GET /version": lambda kube: kube.request("GET", "/version"),
}


@pytest.mark.parametrize("status", [200, 503])
@pytest.mark.parametrize("call", CALLS)
def test_an_answer_that_is_cut_off(api: ApiDouble, call: str, status: int) -> None:
    api.routes[call] = cut_off(status)
    with pytest.raises(Unavailable):
        CALLS[call](KubeClient(api.configuration))


def test_a_refusal_that_is_cut_off_is_still_that_refusal(api: ApiDouble) -> None:
    api.routes[f"GET {kinds.POD.path('d', 'a')}"] = cut_off(404)
    with pytest.raises(AlreadyGone):
        KubeClient(api.configuration).get(POD)


def test_a_watch_that_is_refused_and_cut_off(api: ApiDouble) -> None:
    api.routes[f"GET {kinds.POD.path()}"] = cut_off(503)
    with pytest.raises(Unavailable):
        KubeClient(api.configuration).watch(kinds.POD, "1")


NO_TEXT = b'{"metadata": {"name": "\xff", "resourceVersion": "\xff"}}'


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"metadata": 7}', NO_TEXT, b"7"])
@pytest.mark.parametrize("call", [call for call in CALLS if "version" not in call])
def test_an_answer_that_makes_no_sense(api: ApiDouble, call: str, body: bytes) -> None:
    api.routes[call] = lambda _: (200, body)
    with pytest.raises(Unavailable):
        CALLS[call](KubeClient(api.configuration))


def test_an_answer_that_is_no_json(api: ApiDouble) -> None:
    api.routes["GET /version"] = lambda _: (200, b"<html>")
    with pytest.raises(Unavailable):
        KubeClient(api.configuration).request("GET", "/version")


@pytest.mark.parametrize("lost", [Path.unlink, lambda file: file.write_text("")], ids=["gone", "empty"])
def test_a_token_that_is_not_there_for_a_moment(api: ApiDouble, tmp_path: Path, lost: Callable[[Path], Any]) -> None:
    """The pod's token file is read anew every minute; where it is replaced there may be none just then."""
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("one")
    authority.write_text("any")
    host, port = api.configuration().host.removeprefix("http://").split(":")
    environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    make: Any = InClusterConfigLoader
    loader = make(str(token), str(authority), environ=environment)

    def load() -> Configuration:
        configuration = Configuration()
        loader.load_and_set(configuration)
        loader.host = configuration.host = api.configuration().host
        loader.token_expires_at = loader.token_expires_at.min
        return configuration

    api.routes[f"GET {LEASES}/l"] = lambda _: (404, {})
    kube = KubeClient(load)
    lost(token)
    with pytest.raises(Unavailable):
        kube.get_lease("d", "l")
    token.write_text("two")
    assert kube.get_lease("d", "l") is None
    assert api.requests[-1][2]["Authorization"] == "bearer two"
