"""The webhook's certificate: made, announced, renewed, and really served with."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kerf.ports import AlreadyGone, Forbidden
from kerf.runtime.inbox import Reported
from kerf.runtime.secrets.certificates import (
    LIFETIME,
    RENEW_BEFORE,
    Bundle,
    WebhookCertificate,
    make,
    service_names,
    write_files,
)
from kerf.runtime.secrets.keepers import Keepers
from kerf.runtime.settings.options import Options
from kerf.sandbox.clock import VirtualClock
from kerf.sandbox.world import World
from kerf.telemetry.log.logs import silent
from kerf.telemetry.telemetry import Telemetry

NOW = datetime.now(UTC)
SECRET = "/api/v1/namespaces/kerf/secrets/cert"
VALIDATING, MUTATING = (
    f"/apis/admissionregistration.k8s.io/v1/{which}webhookconfigurations/kerf" for which in ("validating", "mutating")
)


class Objects:
    """An API of plain objects by path; notes what is written."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.writes: list[str] = []

    def webhooks(self, path: str, *services: str) -> None:
        hooks = [
            {"name": f"{service}.x", "clientConfig": {"service": {"namespace": "kerf", "name": service}}}
            for service in services
        ]
        self.objects[path] = {"webhooks": hooks}

    def request(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json") -> Any:
        if method == "GET":
            if path not in self.objects:
                raise AlreadyGone(path)
            return self.objects[path]
        self.writes.append(f"{method} {path}")
        if method == "POST":
            path += "/" + body["metadata"]["name"]
        if method == "PATCH":
            assert content_type == "application/strategic-merge-patch+json"
            by_name = {hook["name"]: hook for hook in self.objects[path]["webhooks"]}
            for change in body["webhooks"]:
                by_name[change["name"]]["clientConfig"].update(change["clientConfig"])
            return self.objects[path]
        self.objects[path] = body
        return body

    def bundles(self, path: str) -> list[str | None]:
        return [hook["clientConfig"].get("caBundle") for hook in self.objects[path]["webhooks"]]


def keeper(api: Objects) -> WebhookCertificate:
    return WebhookCertificate(api, namespace="kerf", service="hook", secret="cert", configuration="kerf")


def test_it_is_made_once_and_announced_to_our_webhooks_only() -> None:
    api = Objects()
    api.webhooks(VALIDATING, "hook", "foreign")
    api.webhooks(MUTATING, "hook")
    assert keeper(api).keep(NOW)
    bundle = Bundle.of_secret(api.objects[SECRET])
    assert bundle is not None
    ca = base64.b64encode(bundle.ca).decode()
    assert api.bundles(VALIDATING) == [ca, None]
    assert api.bundles(MUTATING) == [ca]
    api.writes.clear()
    assert not keeper(api).keep(NOW)
    assert api.writes == []


def test_it_is_renewed_in_time_and_the_old_ca_stays_trusted() -> None:
    api = Objects()
    api.webhooks(VALIDATING, "hook")
    keeper(api).keep(NOW)
    first = Bundle.of_secret(api.objects[SECRET])
    later = NOW + LIFETIME - RENEW_BEFORE
    assert not keeper(api).keep(later - timedelta(days=1))
    assert keeper(api).keep(later)
    second = Bundle.of_secret(api.objects[SECRET])
    assert first is not None
    assert second is not None
    assert second.cert != first.cert
    assert first.ca in second.ca
    assert api.bundles(VALIDATING) == [base64.b64encode(second.ca).decode()]
    keeper(api).keep(later + LIFETIME)
    third = Bundle.of_secret(api.objects[SECRET])
    assert third is not None
    assert first.ca not in third.ca


def test_a_missing_configuration_and_a_spoilt_secret_are_no_obstacle() -> None:
    api = Objects()
    api.objects[SECRET] = {"metadata": {"name": "cert", "resourceVersion": "7"}, "data": {"tls.crt": "!"}}
    assert keeper(api).keep(NOW)
    assert api.writes == [f"PUT {SECRET}"]
    assert api.objects[SECRET]["metadata"]["resourceVersion"] == "7"


def test_a_certificate_for_other_names_is_not_enough() -> None:
    bundle = make(("a.b.svc",), NOW)
    assert bundle.serves(("a.b.svc",), NOW)
    assert not bundle.serves(service_names("b", "a"), NOW)


def test_a_client_that_trusts_the_ca_can_connect(tmp_path: Path) -> None:
    write_files(tmp_path, ("localhost",), NOW)
    assert (tmp_path / "tls.key").stat().st_mode & 0o077 == 0
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: server.wrap_socket(listener.accept()[0], server_side=True).close())
        thread.start()
        client = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        with socket.create_connection(listener.getsockname()) as plain:
            client.wrap_socket(plain, server_hostname="localhost").close()
        thread.join(5)


# --- replicas that do not lead ----------------------------------------------------------------------------------
def test_a_replica_that_does_not_lead_makes_and_announces_it() -> None:
    """A Karpenter controller may lead for as long as it likes: an installer waits for the webhook's pods meanwhile."""
    api = Objects()
    api.webhooks(VALIDATING, "hook")
    api.webhooks(MUTATING, "hook")
    assert keeper(api).keep(NOW, leads=False)
    bundle = Bundle.of_secret(api.objects[SECRET])
    assert bundle is not None
    assert api.bundles(VALIDATING) == api.bundles(MUTATING) == [base64.b64encode(bundle.ca).decode()]
    assert not keeper(api).keep(NOW, leads=True)


OTHER = make(("hook.kerf.svc", "hook.kerf.svc.cluster.local"), NOW).data()


@pytest.mark.parametrize(
    "spoilt",
    [
        {"tls.key": OTHER["tls.key"]},
        {"tls.key": "eA=="},
        {"tls.key": ""},
        {"ca.crt": "eA=="},
        {"ca.crt": ""},
        {"ca.crt": base64.b64encode(b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n").decode()},
    ],
    ids=[
        "the key of another certificate",
        "no key",
        "an empty key",
        "no CA",
        "an empty CA",
        "a CA that cannot be read",
    ],
)
def test_the_leader_replaces_a_secret_with_parts_that_do_not_fit(spoilt: dict[str, str]) -> None:
    api = Objects()
    api.webhooks(VALIDATING, "hook")
    keeper(api).keep(NOW)
    whole = api.objects[SECRET]["data"]
    api.objects[SECRET] = {**api.objects[SECRET], "data": {**whole, **spoilt}}
    keeper(api).keep(NOW, leads=False)
    assert api.bundles(VALIDATING) == [whole["ca.crt"]]
    assert keeper(api).keep(NOW)
    bundle = Bundle.of_secret(api.objects[SECRET])
    assert bundle is not None
    assert bundle.serves(service_names("kerf", "hook"), NOW)
    assert api.bundles(VALIDATING) == [base64.b64encode(bundle.ca).decode()]
    assert not keeper(api).keep(NOW)


def test_a_secret_that_was_deleted_and_a_configuration_without_its_ca_are_made_again() -> None:
    api = Objects()
    api.webhooks(VALIDATING, "hook")
    keeper(api).keep(NOW)
    del api.objects[SECRET]
    api.webhooks(VALIDATING, "hook")
    assert keeper(api).keep(NOW, leads=False)
    bundle = Bundle.of_secret(api.objects[SECRET])
    assert bundle is not None
    assert api.bundles(VALIDATING) == [base64.b64encode(bundle.ca).decode()]


@pytest.mark.parametrize("data", [None, {"tls.crt": "eA=="}], ids=["one that ends soon", "one that is malformed"])
def test_only_the_leader_replaces_one(data: dict[str, str] | None) -> None:
    api = Objects()
    keeper(api).keep(NOW)
    before = api.objects[SECRET] = {**api.objects[SECRET], **({} if data is None else {"data": data})}
    later = NOW + LIFETIME - timedelta(days=1)
    assert not keeper(api).keep(later, leads=False)
    assert api.objects[SECRET] == before
    assert keeper(api).keep(later)
    assert api.objects[SECRET] != before


class Passing(threading.Event):
    """Time passes while a thread waits for it; it is set after so many seconds."""

    def __init__(self, clock: VirtualClock, seconds: float) -> None:
        super().__init__()
        self.clock, self.until = clock, clock.monotonic() + seconds

    def wait(self, timeout: float | None = None) -> bool:
        self.clock.sleep(timeout or 0)
        if self.clock.monotonic() >= self.until:
            self.set()
        return self.is_set()


def test_a_replica_that_waits_looks_once_a_minute_and_one_that_begins_to_lead_at_once() -> None:
    world, looks = World(), list[float]()
    clock, began = world.clock, world.clock.monotonic()

    class Watched(Objects):
        def request(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
            if (method, path) == ("GET", SECRET):
                looks.append(clock.monotonic() - began)
            return super().request(method, path, body, **more)

    options = Options(
        cluster_name="c", webhook_service="hook", webhook_cert_secret="cert", webhook_configuration="kerf"
    )
    telemetry = Telemetry.quiet(world.kube, clock)
    leads_from = began + 130

    def leads() -> bool:
        return clock.monotonic() >= leads_from

    Keepers(Watched(), clock, options, "kerf", silent(), telemetry, leads, print, Passing(clock, 290)).certificates()
    assert looks == [0, 60, 120, 130, 190, 250]


def test_an_expired_certificate_that_cannot_be_renewed_is_reported_until_it_can() -> None:
    world = World()
    clock, rows = world.clock, list[Reported]()
    made = make(service_names("kerf", "hook"), clock.now() - LIFETIME - timedelta(days=1))
    forbidden_until = clock.monotonic() + 15

    class Refusing(Objects):
        def request(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
            if method in ("PUT", "PATCH") and path == SECRET and clock.monotonic() < forbidden_until:
                raise Forbidden('secrets "cert" is forbidden: cannot patch')
            return super().request(method, path, body, **more)

    api = Refusing()
    api.objects[SECRET] = {"metadata": {"name": "cert", "resourceVersion": "1"}, "data": made.data()}
    options = Options(
        cluster_name="c", webhook_service="hook", webhook_cert_secret="cert", webhook_configuration="kerf"
    )
    telemetry, stop = Telemetry.quiet(world.kube, clock), Passing(clock, 30)
    Keepers(api, clock, options, "kerf", silent(), telemetry, lambda: True, rows.append, stop).certificates()
    assert [(one.verb, one.object, one.outcome) for one in rows] == [
        ("KeepWebhookCertificate", "secret/kerf/cert", "forbidden"),
        ("KeepWebhookCertificate", "secret/kerf/cert", "forbidden"),
        ("KeepWebhookCertificate", "secret/kerf/cert", ""),
    ]
    assert "cannot patch; the webhook's certificate has expired at " in rows[0].error
