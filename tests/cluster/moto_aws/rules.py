"""Reads the parameters of a request as botocore would take them, and has the table of AWS's rules judge them.

Requests with the header of `tests/aws_calls/clients.py` were judged by their sender.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from moto.core.parse import PROTOCOL_PARSERS, RequestDict
from moto.core.utils import get_service_model
from werkzeug.datastructures import Headers, MultiDict

from tests.aws_calls.clients import HEADER
from tests.aws_calls.ledger import EMULATION, LEDGER, Refusal
from tests.aws_rules.model import service_model

#: Names of services in signatures that are not those of their models.
_MODELS: Final = {"servicequotas": "service-quotas"}
_JUDGED: Final = f"HTTP_{HEADER.upper().replace('-', '_')}"


def judge(service: str, action: str, environ: Mapping[str, Any], body: bytes) -> Refusal | None:
    """The first problem of a request; None when it breaks no rule, or was judged by its sender."""
    if _JUDGED in environ or not service:
        return None
    service = _MODELS.get(service, service)
    operation, parameters = _read(service, action, environ, body)
    return LEDGER.judge(EMULATION, service, operation, parameters)


def _read(service: str, action: str, environ: Mapping[str, Any], body: bytes) -> tuple[str, dict[str, Any]]:
    if " " in action:
        return _rest(service, environ["REQUEST_METHOD"], environ["PATH_INFO"], body)
    protocol = service_model(service).resolved_protocol
    if protocol in ("ec2", "query"):
        return action, _form(service, action, protocol, body)
    if protocol == "rest-json":
        return _rest(service, environ["REQUEST_METHOD"], environ["PATH_INFO"], body)
    return action, json.loads(body or b"{}")


def _form(service: str, action: str, protocol: str, body: bytes) -> dict[str, Any]:
    model = get_service_model(service).operation_model(action)
    request: RequestDict = {
        "body": body,
        "headers": Headers(),
        "method": "POST",
        "url_params": {},
        "url_path": "/",
        "values": MultiDict(dict(parse_qsl(body.decode(), keep_blank_values=True))),
    }
    found: dict[str, Any] = PROTOCOL_PARSERS[protocol](model).parse(request)
    return found


def _rest(service: str, method: str, path: str, body: bytes) -> tuple[str, dict[str, Any]]:
    """The operation of a path, with the parameters that the path and a JSON body have."""
    for name, its_method, pattern in _paths(service):
        found = pattern.fullmatch(path)
        if its_method == method and found:
            shape = service_model(service).operation_model(name).input_shape
            members = shape.members.items() if shape is not None else ()
            named = {one.serialization.get("name", member): member for member, one in members}
            inside = {named.get(key, key): unquote(value) for key, value in found.groupdict().items()}
            return name, {**inside, **(json.loads(body) if body else {})}
    raise LookupError(f"{service} has no operation for {method} {path}")


@cache
def _paths(service: str) -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """(operation, method, pattern of the path) of every operation, those with more fixed parts first.

    A server decodes a path, so a parameter may have slashes: the patterns that allow it come last.
    """
    model = service_model(service)
    found = []
    for part in ("[^/]+", ".+"):
        for name in model.operation_names:
            http = model.operation_model(name).http
            uri = http["requestUri"].partition("?")[0]
            text = re.sub(r"\{(\w+)\+?\}", rf"(?P<\1>{part})", uri)
            found.append((part == ".+", uri.count("{"), name, http["method"], re.compile(text)))
    return tuple(row[2:] for row in sorted(found, key=lambda row: row[:3]))
