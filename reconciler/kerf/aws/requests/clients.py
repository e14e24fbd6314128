"""One boto3 client per service, made when first needed, all with the same time-outs and few retries.

A client may be used by many threads at once. The SDK tries a call twice at most: the next tick tries again anyway,
and by then it knows more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import InvalidConfigError

from kerf.aws.requests import answer_checks, service_models
from kerf.aws.requests.pace import Pace

CONNECT_SECONDS: Final = 4
READ_SECONDS: Final = 30
ATTEMPTS: Final = 2
CONNECTIONS: Final = 50
#: A list has no more pages, and takes no longer. The longest, of spot prices, has about a hundred.
MOST_PAGES: Final = 2000
PAGES_SECONDS: Final = 300.0


class Clients:
    """Clients of one region. `endpoint_url` replaces every service's address (an emulator, a proxy); those of EC2
    keep to the `pace`, if there is one. `on_client` is handed each client that is made."""

    def __init__(
        self,
        region: str,
        session: Any | None = None,
        endpoint_url: str | None = None,
        pace: Pace | None = None,
        on_client: Callable[[Any], None] = lambda client: None,
    ) -> None:
        self.region: Final = region
        self._session = session or boto3.session.Session(region_name=region, botocore_session=service_models.session())
        self._endpoint_url, self._pace, self._on_client = endpoint_url, pace, on_client
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str, int], Any] = {}

    def get(self, service: str, *, region: str = "", extra_read_seconds: int = 0, attempts: int = ATTEMPTS) -> Any:
        """The client of a service, in our region unless another is named; it tries a call so many times at most."""
        key = (service, region or self.region, attempts)
        with self._lock:  # a session may not make two clients at the same time
            if key not in self._clients:
                self._clients[key] = self._make(service, key[1], READ_SECONDS + extra_read_seconds, attempts)
            return self._clients[key]

    def _make(self, service: str, region: str, read_seconds: int, attempts: int) -> Any:
        own = _of_s3(self._endpoint_url) if service == "s3" else {}
        config = Config(
            **own,
            connect_timeout=CONNECT_SECONDS,
            read_timeout=read_seconds,
            retries={"mode": "standard", "total_max_attempts": attempts},
            max_pool_connections=CONNECTIONS,
            user_agent_extra="kerf",
        )
        try:
            client = self._session.client(service, region_name=region, endpoint_url=self._endpoint_url, config=config)
            urlsplit(client.meta.endpoint_url).port  # noqa: B018  # else the first call raises it
        except ValueError:  # its text has the URL, with a password; also of a variable that only botocore reads
            fix = "write a URL such as https://s3.example.com into AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_<SERVICE>"
            raise InvalidConfigError(error_msg=f"the endpoint of {service} is no URL: {fix}") from None
        answer_checks.install(client)
        if service == "ec2" and self._pace is not None:
            self._pace.install(client)
        self._on_client(client)
        return client


def _of_s3(endpoint_url: str | None) -> dict[str, Any]:
    """Other stores have one address for all buckets, and few have the checksums that S3 has by default."""
    if not endpoint_url:
        return {}
    when = dict.fromkeys(("request_checksum_calculation", "response_checksum_validation"), "when_required")
    return {"s3": {"addressing_style": "path"}, **when}


def pages(client: Any, operation: str, key: str, **parameters: Any) -> list[Any]:
    """All items under `key` of a paginated operation, in the order in which the pages bring them.

    Raises UnexpectedAnswer when a page has no `key`, or the pages do not end.
    """
    found: list[Any] = []
    ends = time.monotonic() + PAGES_SECONDS
    for number, page in enumerate(client.get_paginator(operation).paginate(**parameters), start=1):
        if key not in page:
            raise answer_checks.UnexpectedAnswer(operation=operation, problem=f"it has no {key}")
        found.extend(page[key])
        if number >= MOST_PAGES or time.monotonic() > ends:
            raise answer_checks.UnexpectedAnswer(operation=operation, problem=f"its pages do not end ({number})")
    return found


def tag_list(tags: Any) -> list[dict[str, str]]:
    """A mapping of tags as AWS writes it, sorted by key."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]
