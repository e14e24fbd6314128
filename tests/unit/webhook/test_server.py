"""The real thing: gunicorn in a process of its own, TLS on a real socket, and a certificate that changes meanwhile."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kerf_webhook import Settings
from kerf_webhook.certificate import Certificate
from kerf_webhook.server import Options, configuration, doors, parse_options
from tests.ipv6 import LOOPBACK
from tests.sources import ROOT
from tests.unit.api.manifests import NODEPOOL, changed

from .certificates import replace, self_signed
from .reviews import review

START_SECONDS = 60.0
ANSWER_SECONDS = 20.0


class Server:
    """A webhook process, its ports and its certificate files."""

    def __init__(self, folder: Path, *options: str, threads: int = 4, host: str = "127.0.0.1") -> None:
        self.cert_file, self.key_file = folder / "tls.crt", folder / "tls.key"
        with socket.socket() as probe, socket.socket() as other:
            probe.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
            self.health_port: int = other.getsockname()[1]
        self.use(*self_signed("first"))
        command = [sys.executable, "-m", "kerf_webhook", "--bind", f"{host}:{self.port}", "--threads", str(threads)]
        health = ["--health-bind", f"{host}:{self.health_port}"]
        files = ["--cert-file", str(self.cert_file), "--key-file", str(self.key_file)]
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([*command, *health, *files, *options], cwd=ROOT, stdout=log, stderr=log)

    def use(self, certificate: bytes, key: bytes) -> None:
        replace(self.cert_file, certificate)
        replace(self.key_file, key)

    def connect(self) -> http.client.HTTPSConnection:
        trusted = ssl.create_default_context(cadata=self.cert_file.read_text())
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS, context=trusted)

    def wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                assert get(self.connect(), "/readyz") == 200
                return
            except OSError:
                assert self.process.poll() is None, self.log.read_text()
                assert time.monotonic() < deadline, self.log.read_text()
                time.sleep(0.1)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(START_SECONDS)


def get(connection: http.client.HTTPSConnection, path: str) -> int:
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def certificate_end(connection: http.client.HTTPSConnection) -> float:
    connection.request("GET", "/metrics")
    name = "kerf_webhook_certificate_expiry_timestamp_seconds "
    (value,) = (
        line[len(name) :] for line in connection.getresponse().read().decode().splitlines() if line.startswith(name)
    )
    return float(value)


def ask(connection: http.client.HTTPSConnection, path: str, question: Any) -> dict[str, Any]:
    connection.request("POST", path, json.dumps(question), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = json.loads(answer.read())
    assert answer.status == 200
    response: dict[str, Any] = content["response"]
    return response


def served_name(connection: http.client.HTTPSConnection) -> str:
    connection.connect()
    certificate = connection.sock.getpeercert()
    assert certificate
    return str(certificate["subject"][0][0][1])


@contextmanager
def served(folder: Path, *options: str, threads: int = 4, host: str = "127.0.0.1") -> Iterator[Server]:
    """A webhook that answers, and ends as it should afterwards."""
    running = Server(folder, *options, threads=threads, host=host)
    try:
        running.wait()
        yield running
        assert running.stop() == 0
    finally:
        running.process.kill()
        running.process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("webhook")) as running:
        yield running


def test_reviews_over_tls_on_one_connection(server: Server) -> None:
    connection = server.connect()
    for _ in range(3):
        assert ask(connection, "/validate", review(NODEPOOL))["allowed"]
        assert "patch" in ask(connection, "/mutate", review(NODEPOOL))
    assert not ask(connection, "/mutate", review(changed("NodePool", "spec.weight", 0)))["allowed"]


@pytest.mark.parametrize(
    ("method", "path", "type_", "status"),
    [
        ("DELETE", "/validate", "application/json", 405),
        ("POST", "/nowhere", "application/json", 404),
        ("POST", "/mutate", "text/plain", 415),
    ],
)
def test_who_is_refused_for_something_else_than_the_body_reads_so(
    server: Server, method: str, path: str, type_: str, status: int
) -> None:
    """The second half comes when the refusal is decided. Closed on it, the connection would be reset."""
    half, connection = bytes(200_000), server.connect()
    connection.putrequest(method, path)
    connection.putheader("Content-Type", type_)
    connection.putheader("Content-Length", str(2 * len(half)))
    connection.endheaders(half)
    time.sleep(0.1)
    connection.send(half)
    answer = connection.getresponse()
    answer.read()
    assert (answer.status, answer.will_close) == (status, False)
    assert get(connection, "/readyz") == 200


def test_a_new_certificate_is_served_without_a_restart_and_old_connections_go_on(server: Server) -> None:
    before = server.connect()
    assert served_name(before) == "first"
    certificate, key = self_signed("second")
    replace(server.cert_file, certificate)  # only one of the two files is there yet
    half = http.client.HTTPSConnection("127.0.0.1", server.port, context=ssl._create_unverified_context())
    assert get(half, "/healthz") == 200
    replace(server.key_file, key)
    after = server.connect()
    assert served_name(after) == "second"
    assert ask(after, "/validate", review(NODEPOOL))["allowed"]
    assert ask(before, "/validate", review(NODEPOOL))["allowed"]


def test_the_metrics_say_when_the_certificate_ends(server: Server) -> None:
    connection = server.connect()
    hours = (certificate_end(connection) - time.time()) / 3600
    assert 0.9 < hours < 1.1
    server.use(*self_signed("second", hours=48))
    hours = (certificate_end(connection) - time.time()) / 3600  # of what new connections meet, not of this one's own
    assert 47.9 < hours < 48.1


def test_certificates_change_under_load_and_no_request_is_lost(server: Server) -> None:
    """Every request is on a connection of its own, so that each meets the certificate of its moment."""
    trusted = server.cert_file.read_bytes()
    pairs = [self_signed(f"turn-{turn}") for turn in range(6)]
    everybody = ssl.create_default_context(cadata=b"".join([trusted, *(cert for cert, _ in pairs)]).decode())
    over, answered = threading.Event(), [0, 0, 0, 0]

    def drive(number: int) -> None:
        while not over.is_set():
            connection = http.client.HTTPSConnection(
                "127.0.0.1", server.port, timeout=ANSWER_SECONDS, context=everybody
            )
            assert ask(connection, "/validate", review(NODEPOOL))["allowed"]
            connection.close()
            answered[number] += 1

    with ThreadPoolExecutor(len(answered)) as drivers:
        driven = [drivers.submit(drive, number) for number in range(len(answered))]
        try:
            for pair in pairs:
                before = sum(answered)
                server.use(*pair)
                until = time.monotonic() + ANSWER_SECONDS
                while sum(answered) < before + 40 and time.monotonic() < until and not any(d.done() for d in driven):
                    time.sleep(0.01)
        finally:
            over.set()
        for done in driven:
            done.result()
    assert sum(answered) >= 200
    assert served_name(server.connect()) == "turn-5"


def test_strangers_do_not_disturb(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        plain.settimeout(ANSWER_SECONDS)
        plain.recv(100)
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(6)]
    try:
        assert get(server.connect(), "/healthz") == 200
    finally:
        for connection in silent:
            connection.close()


def test_the_certificate_is_loaded_only_when_it_changed(tmp_path: Path) -> None:
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate = Certificate(*files)
    with pytest.raises(OSError, match=r"tls\.crt"):
        certificate.context()
    for path, content in zip(files, self_signed("a"), strict=True):
        replace(path, content)
    first = certificate.context()
    assert certificate.context() is first
    for path in files:
        path.unlink()
    assert certificate.context() is first
    for path, content in zip(files, self_signed("b"), strict=True):
        replace(path, content)
    assert certificate.context() is not first


def test_the_command_line() -> None:
    assert parse_options([]) == Options()
    found = parse_options(["--bind", "[::]:9443", "--cert-file", "a", "--key-file", "b", "--workers", "2"])
    assert found == Options(bind=("::", 9443), cert_file=Path("a"), key_file=Path("b"), workers=2)
    assert configuration(found)["certfile"] == "a"
    assert configuration(found)["control_socket_disable"] is True
    assert "certfile" not in configuration(Options())


def test_the_health_port_answers_its_two_paths_and_no_other(server: Server) -> None:
    answers = {path: probed(server, path) for path in ("/healthz", "/readyz", "/metrics", "/validate")}
    assert answers == {"/healthz": 200, "/readyz": 200, "/metrics": 404, "/validate": 404}


def probed(server: Server, path: str, address: str = "127.0.0.1") -> int:
    connection = http.client.HTTPConnection(address, server.health_port, timeout=ANSWER_SECONDS)
    connection.request("GET", path)
    return connection.getresponse().status


def test_without_an_address_reviews_and_probes_are_answered_over_ipv6_and_ipv4(tmp_path: Path) -> None:
    with served(tmp_path, host="") as server:
        for address in LOOPBACK:
            assert probed(server, "/readyz", address) == 200
            unverified = ssl._create_unverified_context()
            connection = http.client.HTTPSConnection(address, server.port, timeout=ANSWER_SECONDS, context=unverified)
            assert ask(connection, "/validate", review(NODEPOOL))["allowed"]


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, "-m", "kerf_webhook", "--bind", taken],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("kerf webhook: cannot listen: [Errno 98] Address already in use")
    assert taken.partition(":")[2] in done.stderr


def test_a_certificate_that_cannot_be_read_is_not_ready_but_alive(tmp_path: Path) -> None:
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    for file in files:
        file.write_text("no certificate")
    options = Options(health_bind=("127.0.0.1", 0), cert_file=files[0], key_file=files[1])
    _, health = doors(options, Certificate(*files), Settings())
    assert health.respond is not None
    status, text = health.respond("/readyz")
    assert status == 503
    assert "the certificate cannot be read" in text
    assert health.respond("/healthz")[0] == 200


@pytest.mark.parametrize(
    "arguments",
    [
        ["--cert-file", "a"],
        ["--threads", "0"],
        ["--request-seconds", "31"],
        ["--request-seconds", "nan"],
        ["--workers", "x"],
        ["--log-level", "loud"],
        ["extra"],
        ["--bind", "8443"],
        ["--bind", "::1:8443"],
        ["--health-bind", "[::1]:99999"],
    ],
)
def test_a_wrong_command_line_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options(arguments)
