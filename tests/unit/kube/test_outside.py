"""From outside the cluster, as kubectl comes there: credentials by a program, tokens that rotate, a proxy, an own CA.

All over real sockets, by a process of its own, whose environment is the only thing that differs.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import pytest

from kerf.runtime.secrets.certificates import write_files
from tests.sources import ROOT

from .api_double import ApiDouble, Handler

#: Asks for the version, as often as it is told; what fails is said in one line.
ASK = """
import sys, time
from kerf.kube.client import KubeClient
from kerf.ports import PortError
from kerf.kube.transport import Sending
# not five seconds between two looks at what was refused
try:
    kube = KubeClient.from_kubeconfig(sys.argv[1], sending=Sending(reload_every_seconds=0.0))
except PortError as error:
    sys.exit(print(type(error).__name__, error))
for pause in sys.argv[2:]:
    time.sleep(float(pause))
    try:
        print(kube.request("GET", "/version")["minor"])
    except PortError as error:
        print(type(error).__name__, error)
"""
#: Asks STS who somebody is.
WHO = """
import sys
from kerf.aws.requests.clients import Clients
print(Clients("us-west-2", endpoint_url=sys.argv[1]).get("sts").get_caller_identity()["Account"])
"""
ACCOUNT = b"""<GetCallerIdentityResponse><GetCallerIdentityResult><Account>123</Account><Arn>arn:aws:iam::123:root</Arn>
</GetCallerIdentityResult></GetCallerIdentityResponse>"""


class Proxy:
    """An HTTP proxy that tunnels (CONNECT), and notes where to."""

    def __init__(self) -> None:
        self.asked = list[str]()
        proxy = self

        class Tunnel(BaseRequestHandler):
            def handle(self) -> None:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += self.request.recv(4096)
                where = head.split()[1].decode()
                proxy.asked.append(where)
                name, _, port = where.rpartition(":")
                with socket.create_connection((name, int(port))) as there:
                    self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    back = threading.Thread(target=_relay, args=(there, self.request), daemon=True)
                    back.start()
                    _relay(self.request, there)
                    back.join()

        self._server = ThreadingTCPServer(("127.0.0.1", 0), Tunnel)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _relay(one: socket.socket, other: socket.socket) -> None:
    try:
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        return


class Outside:
    """An API server with a certificate of its own CA, and kubeconfigs for it."""

    def __init__(self, folder: Path, api: ApiDouble) -> None:
        self.folder, self.api = folder, api
        write_files(folder / "tls", ("localhost",), datetime.now(UTC))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls/tls.crt", folder / "tls/tls.key")
        api.serve_tls(context)
        self.url = f"https://localhost:{api.port}"
        self.ca = folder / "tls/ca.crt"
        self.accepted = {"Bearer good"}
        api.routes["GET /version"] = self._version

    def _version(self, request: Handler) -> tuple[int, Any]:
        known = request.headers["Authorization"] in self.accepted
        return (200, {"major": "1", "minor": "36"}) if known else (401, {"code": 401, "message": "who are you"})

    def kubeconfig(self, user: dict[str, Any], **cluster: Any) -> Path:
        known = {"server": self.url, **(cluster or {"certificate-authority": str(self.ca)})}
        path = self.folder / "kubeconfig"
        whole = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": known}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        path.write_text(json.dumps(whole))
        return path

    def program(self, body: str) -> dict[str, Any]:
        """A user whose credentials come from a program."""
        path = self.folder / "credentials"
        path.write_text(f"#!{sys.executable}\n{body}")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        version = "client.authentication.k8s.io/v1"
        return {"exec": {"apiVersion": version, "command": str(path), "interactiveMode": "Never"}}


def asked(kubeconfig: Path, *pauses: float, **environment: str) -> list[str]:
    """What each asking came to."""
    return said(ASK, str(kubeconfig), *map(str, pauses or (0,)), **environment)


def said(script: str, *arguments: str, **environment: str) -> list[str]:
    """The lines that a script prints. Proxies are those of the test, not of the machine."""
    own = {key: value for key, value in os.environ.items() if not key.upper().endswith("_PROXY")}
    command = (sys.executable, "-c", script, *arguments)
    done = subprocess.run(
        command, cwd=ROOT, env={**own, **environment}, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    with ExitStack() as stack:
        yield Outside(tmp_path, stack.enter_context(ApiDouble()))


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as made:
        yield made


TOKEN = {"token": "good"}


# --- credentials ------------------------------------------------------------------------------------------------
def credential(token: str, expires: datetime | None = None) -> str:
    status = {"token": token} | ({"expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ")} if expires else {})
    return json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})


def test_credentials_come_from_a_program(outside: Outside) -> None:
    user = outside.program(f"print({credential('good')!r})")
    assert asked(outside.kubeconfig(user)) == ["36"]


def test_a_program_is_asked_again_when_what_it_gave_has_expired(outside: Outside) -> None:
    """The first token holds for a moment: it is used once, and not offered again."""
    outside.accepted = {"Bearer first", "Bearer second"}
    soon = datetime.now(UTC) + timedelta(seconds=60)
    body = f"""
import pathlib
seen = pathlib.Path({str(outside.folder / "seen")!r})
first = not seen.exists()
seen.touch()
print({credential("first", soon)!r} if first else {credential("second", soon + timedelta(hours=1))!r})
"""
    assert asked(outside.kubeconfig(outside.program(body)), 0, 0.1) == ["36", "36"]
    offered = [headers["Authorization"] for _, _, headers, _ in outside.api.requests]
    assert offered[-1] == "Bearer second"


def test_a_program_is_asked_again_when_what_it_gave_is_refused(outside: Outside) -> None:
    body = f"""
import pathlib
seen = pathlib.Path({str(outside.folder / "seen")!r})
first = not seen.exists()
seen.touch()
print({credential("stale")!r} if first else {credential("good")!r})
"""
    assert asked(outside.kubeconfig(outside.program(body))) == ["36"]
    assert len(outside.api.requests) == 2


def test_a_program_that_fails_is_an_answer_of_one_line(outside: Outside) -> None:
    file = outside.kubeconfig(outside.program("import sys; sys.exit('no session')"))
    (line,) = asked(file)
    command = outside.folder / "credentials"
    words = f"Unavailable kubeconfig {file}: the credential plugin {command} returned no credentials: "
    assert line == f"{words}exec: process returned 1. no session"


def test_a_token_in_a_file_is_read_again_when_it_has_been_rotated(outside: Outside) -> None:
    """As a pod's own: kubelets put another in its place well before it expires."""
    token = outside.folder / "token"
    token.write_text("good")
    kubeconfig = outside.kubeconfig({"tokenFile": str(token)})

    def rotated(request: Handler) -> tuple[int, Any]:
        answer = outside._version(request)
        outside.accepted = {"Bearer better"}
        token.write_text("better")
        return answer

    outside.api.routes["GET /version"] = rotated
    assert asked(kubeconfig, 0, 0) == ["36", "36"]


# --- the way there ----------------------------------------------------------------------------------------------
def test_the_way_leads_through_the_proxy_of_the_environment(outside: Outside, proxy: Proxy) -> None:
    assert asked(outside.kubeconfig(TOKEN), HTTPS_PROXY=proxy.url) == ["36"]
    assert proxy.asked == [f"localhost:{outside.api.port}"]


def test_but_not_to_hosts_that_need_none(outside: Outside, proxy: Proxy) -> None:
    assert asked(outside.kubeconfig(TOKEN), HTTPS_PROXY=proxy.url, NO_PROXY="localhost,.svc") == ["36"]
    assert proxy.asked == []


def test_the_proxy_of_the_kubeconfig_comes_first(outside: Outside, proxy: Proxy) -> None:
    cluster = {"certificate-authority": str(outside.ca), "proxy-url": proxy.url}
    assert asked(outside.kubeconfig(TOKEN, **cluster), HTTPS_PROXY="http://127.0.0.1:9") == ["36"]
    assert proxy.asked == [f"localhost:{outside.api.port}"]


def test_a_proxy_that_is_not_there_is_an_answer_of_one_line(outside: Outside) -> None:
    (line,) = asked(outside.kubeconfig(TOKEN), HTTPS_PROXY="http://127.0.0.1:9")
    assert line.startswith("Unavailable GET /version: ")


def test_a_ca_of_ones_own_as_a_file_or_in_the_kubeconfig(outside: Outside) -> None:
    data = base64.b64encode(outside.ca.read_bytes()).decode()
    for cluster in ({"certificate-authority": str(outside.ca)}, {"certificate-authority-data": data}):
        assert asked(outside.kubeconfig(TOKEN, **cluster)) == ["36"]


def test_a_server_of_another_ca_gets_no_token(outside: Outside) -> None:
    write_files(outside.folder / "other", ("localhost",), datetime.now(UTC))
    cluster = {"certificate-authority": str(outside.folder / "other/ca.crt")}
    (line,) = asked(outside.kubeconfig(TOKEN, **cluster))
    assert line.startswith("Unavailable GET /version: ")
    assert "certificate" in line.lower()
    assert outside.api.requests == []


def test_aws_too_is_reached_through_the_proxy_and_by_a_ca_of_ones_own(outside: Outside, proxy: Proxy) -> None:
    outside.api.routes["POST /"] = lambda request: (200, ACCOUNT)
    aws = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_CA_BUNDLE": str(outside.ca)}
    assert said(WHO, outside.url, HTTPS_PROXY=proxy.url, **aws) == ["123"]
    assert proxy.asked == [f"localhost:{outside.api.port}"]
