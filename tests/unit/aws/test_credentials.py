"""Credentials of IRSA and EKS Pod Identity that expire are renewed, with the ServiceAccount's token of that moment."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

import pytest
from botocore.exceptions import BotoCoreError

from kerf.aws.requests.clients import Clients

#: Less than what is left of credentials when the SDK renews them.
SHORT: Final = timedelta(minutes=5)
LONG: Final = timedelta(hours=6)
ASSUMED: Final = """<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>
<SessionToken>t</SessionToken><Expiration>{until}</Expiration></Credentials>
<AssumedRoleUser><Arn>arn:aws:sts::111122223333:assumed-role/kerf/x</Arn><AssumedRoleId>A:x</AssumedRoleId>
</AssumedRoleUser></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"""


class Issuer:
    """STS and the Pod Identity agent at one address: other credentials for each request, valid for `lifetime`."""

    def __init__(self) -> None:
        issuer, self.tokens, self.lifetime = self, list[str](), SHORT

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self._answer(
                    parse_qs(body)["WebIdentityToken"][0], lambda key, until: ASSUMED.format(key=key, until=until)
                )

            def do_GET(self) -> None:
                self._answer(self.headers["Authorization"], agent)

            def _answer(self, token: str, body: Callable[[str, str], str]) -> None:
                issuer.tokens.append(token)
                until = (datetime.now(UTC) + issuer.lifetime).strftime("%Y-%m-%dT%H:%M:%SZ")
                data = body(f"KEY{len(issuer.tokens)}", until).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


def agent(key: str, until: str) -> str:
    return json.dumps({"AccessKeyId": key, "SecretAccessKey": "s", "Token": "t", "Expiration": until})


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    found = Issuer()
    thread = threading.Thread(target=found.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """The file in which the kubelet keeps the ServiceAccount's token."""
    (tmp_path / "token").write_text("first")
    return tmp_path / "token"


@pytest.fixture(params=["IRSA", "Pod Identity"])
def clients(
    request: pytest.FixtureRequest, issuer: Issuer, token: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Clients, list[str]]:
    """Clients in a pod with the variables that EKS sets; and the access keys of the requests, none of which is sent."""
    variables = {
        "IRSA": {
            "AWS_ROLE_ARN": "arn:aws:iam::111122223333:role/kerf",
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
            "AWS_ENDPOINT_URL_STS": issuer.address,
        },
        "Pod Identity": {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{issuer.address.replace('127.0.0.1', 'localhost')}/v1/credentials",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token),
        },
    }
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, text in variables[request.param].items():
        monkeypatch.setenv(name, text)
    keys: list[str] = []

    def watch(client: Any) -> None:
        client.meta.events.register("before-send", called)

    def called(request: Any, **_: Any) -> None:
        found = re.search(rb"Credential=(\w+)/", request.headers["Authorization"])
        keys.append(found[1].decode() if found else "")
        raise BotoCoreError

    return Clients("eu-central-1", on_client=watch), keys


def ask(clients: Clients) -> None:
    with suppress(BotoCoreError):
        clients.get("ec2").describe_instances()


def test_credentials_are_renewed_with_the_token_of_the_moment(
    clients: tuple[Clients, list[str]], issuer: Issuer, token: Path
) -> None:
    cloud, keys = clients
    ask(cloud)
    issued = len(issuer.tokens)
    token.write_text("second")
    ask(cloud)
    assert len(set(keys)) == len(keys) == 2
    assert (issuer.tokens[0], issuer.tokens[-1]) == ("first", "second")
    assert len(issuer.tokens) > issued


def test_credentials_that_are_valid_for_long_are_kept(clients: tuple[Clients, list[str]], issuer: Issuer) -> None:
    cloud, keys = clients
    issuer.lifetime = LONG
    for _ in range(3):
        ask(cloud)
    assert keys == ["KEY1"] * 3
    assert issuer.tokens == ["first"]
