"""Whatever is sent to the webhook, it answers in JSON, soon, never with a 5xx, and goes on. A real server, over TLS.

Time is what the server's own processes spent on their cores, so that a machine with other work to do fails nothing; an
answer that never comes fails by the client's patience.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from random import Random
from typing import Any, Final

import pytest

from benchmarks.webhook import cpu_seconds
from kerf_api.lint.reading.plain import plain
from tests.unit.webhook.reviews import review
from tests.unit.webhook.test_server import Server, served

from .manifests import Maker
from .wild import TEXTS, anything, deep

SEED: Final = 20260201
MOST_SECONDS: Final = 1.0
LARGEST: Final = 3 * 1024 * 1024
JSON: Final = {"Content-Type": "application/json"}
KINDS: Final = ("NodePool", "NodeClaim", "EC2NodeClass", "NodeOverlay", "CapacityBuffer", "Deployment")
BROKEN: Final = (b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"a": NaN}', b"9" * 5000, b"[" * 50_000, b'{"a":' * 50_000)
TYPES: Final = (
    "text/plain",
    "",
    "application/json; charset=utf-8",
    "application/yaml",
    "a" * 3000,
    "application/json;" * 50,
)
#: The server hung up, as it may on an idle connection, or in the middle of a body that it will not take.
LOST: Final = (http.client.HTTPException, ConnectionError, ssl.SSLError)
GONE: Final = (0, b"")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("fuzzed")) as running:
        yield running


class Client:
    """Sends requests on a connection that is made anew after whatever the server closed it for."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection = server.connect()
        #: How the server hung up, each time.
        self.lost: list[Exception] = []

    def send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        before = cpu_seconds(self._server.process.pid)
        try:
            found = self._try(method, path, body, headers)
        except LOST as error:
            self.lost.append(error)
            self._connection.close()
            try:
                found = self._try(method, path, body, headers)
            except LOST as again:
                self.lost.append(again)
                self._connection.close()
                found = GONE
        assert cpu_seconds(self._server.process.pid) - before < MOST_SECONDS
        return found

    def _try(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def raw(self, content: bytes) -> bytes:
        """Bytes as they are, and then no more: what the server says to them, if anything."""
        connection = self._server.connect()
        connection.connect()
        assert connection.sock is not None
        try:
            connection.sock.sendall(content)
            connection.sock.shutdown(1)
            return connection.sock.recv(65536)
        except (ConnectionError, ssl.SSLError):
            return b""
        finally:
            connection.close()


def asked(random: Random, maker: Maker, number: int) -> dict[str, Any]:
    """An AdmissionReview that is nearly right, as JSON can hold it."""
    kind = random.choice(KINDS)
    new, old = (plain(made)[0] for made in (maker.manifest(number), maker.before(number)))
    kind = str(new.get("kind")) if random.random() < 0.8 else kind
    operation = random.choice(("CREATE", "UPDATE", "UPDATE", "DELETE", "CONNECT", "", "create"))
    found = review(new, old=old, kind=kind, operation=operation, uid=f"uid-{number}")
    for _ in range(random.choice((0, 0, 1, 2))):
        field = random.choice(
            ("operation", "name", "namespace", "resource", "object", "oldObject", "subResource", "uid")
        )
        value = plain({"x": anything(random) if random.random() < 0.7 else deep(random)})[0]["x"]
        found["request"][field] = random.choice((None, value, {}))
    if random.random() < 0.05:
        found[random.choice(("kind", "apiVersion", "request"))] = random.choice(
            (None, 5, "admission.k8s.io/v1beta1", {})
        )
    return found


def encoded(random: Random, question: dict[str, Any]) -> bytes:
    """The text of a question: whole as a rule, else cut, doubled, with half a character, or with a key twice."""
    text = json.dumps(question)
    luck = random.random()
    if luck < 0.75:
        return text.encode()
    if luck < 0.82:
        return text[: random.randrange(len(text))].encode()
    if luck < 0.88:
        return text.replace('"uid"', '"uid": "twice", "uid"', 1).encode()
    if luck < 0.94:
        return random.choice(BROKEN)
    place = random.randrange(len(text))
    return (text[:place] + random.choice(("\\ud800", "\x00", "\\", '"', "NaN", "é")) + text[place:]).encode()


def try_request(client: Client, maker: Maker, number: int) -> None:
    """One request of many sorts; the answer must be of the sort that belongs to it."""
    random = Random(f"{SEED}/{number}")
    question = asked(random, maker, number)
    body, path, luck = encoded(random, question), random.choice(("/mutate", "/validate")), random.random()
    method, headers = "POST", dict(JSON)
    if luck < 0.05:
        headers = {"Content-Type": random.choice(TYPES)}
    elif luck < 0.08:
        method = random.choice(("GET", "PUT", "DELETE", "PATCH", "OPTIONS"))
    elif luck < 0.1:
        path = random.choice(("/", "/nowhere", "/validate/x", "/validate?timeout=10s", "/%00", "/validate%2f"))
    elif luck < 0.12:
        headers |= {f"X-{n}": "y" * 50 for n in range(random.choice((20, 90)))}
    elif luck < 0.125:
        body = b" " * (LARGEST + 1)
    status, content = client.send(method, path, body, headers)
    assert status < 500, (number, status)
    assert status or len(body) > LARGEST or len(headers) > 10, (number, client.lost[-2:])
    if method != "POST" or status != 200:
        assert not content or isinstance(json.loads(content), dict), number
        return
    response = json.loads(content)["response"]
    assert response["uid"] == json.loads(body)["request"]["uid"], number
    assert isinstance(response["allowed"], bool)
    if number % 20 == 0:
        assert client.send(method, path, body, headers) == (status, content), number


def try_wire(client: Client, random: Random) -> None:
    """What breaks HTTP itself. The server may hang up without a word; what it says is no 5xx."""
    body = json.dumps(review(None)).encode()
    head = b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    content = random.choice(
        (
            head + b"Content-Length: %d\r\n\r\n" % (len(body) + 50) + body,
            head + b"Content-Length: 5\r\n\r\n" + body,
            head + b"Content-Length: -1\r\n\r\n" + body,
            head + b"Content-Length: x\r\n\r\n" + body,
            head + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n" + body,
            head + b"Transfer-Encoding: chunked\r\n\r\n40\r\n" + body[:20],
            head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + body[:20],
            head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n" + body[:9],
            head + b"Transfer-Encoding: chunked\r\n\r\n",
            head + b"X: y\r\n" * 500 + b"\r\n",
            head + b"X: " + b"y" * 20_000 + b"\r\n\r\n",
            head[: random.randrange(len(head))],
            random.choice(TEXTS[10:24]).encode("utf-8", "replace") + b"\r\n\r\n",
            b"POST /validate HTTP/9.9\r\n\r\n",
            random.randbytes(200),
        )
    )
    answer = client.raw(content)
    first = answer.split(b"\r\n")[0].split(b" ")
    assert not answer.startswith(b"HTTP/") or int(first[1]) < 500, (content[:300], answer[:300])


def try_range(server: Server, first: int, count: int) -> None:
    client, maker = Client(server), Maker(SEED)
    for number in range(first, first + count):
        if number % 20 == 19:
            try_wire(client, Random(f"{SEED}/{number}/wire"))
        else:
            try_request(client, maker, number)
    assert client.send("GET", "/readyz", b"", {})[0] == 200
    assert server.process.poll() is None
    assert "Traceback" not in server.log.read_text()


def test_two_thousand_requests(server: Server) -> None:
    try_range(server, 0, 2000)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_ten_thousand_more(server: Server) -> None:
    try_range(server, 2000, 10_000)
