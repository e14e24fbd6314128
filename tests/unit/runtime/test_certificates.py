"""The webhook's certificate: made, announced, renewed, and really served with."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from reconciler.ports import AlreadyGone
from reconciler.runtime.certificates import (
    LIFETIME,
    RENEW_BEFORE,
    Bundle,
    WebhookCertificate,
    make,
    service_names,
    write_files,
)

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
