"""People who open the page of the feed's cluster, as its API server reviews them: by the name that is their token."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

Json = dict[str, Any]
#: May list all pods, and those of about half of the namespaces.
ALL, SOME = "ann", ("nina", "sam")
PEOPLE: Final = (ALL, *SOME)
_TOKENS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_PERMISSIONS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def reviewed(path: str, data: bytes) -> Json | None:
    """The answer to a review; None for any other request."""
    if path not in (_TOKENS, _PERMISSIONS):
        return None
    body: Json = msgspec.json.decode(data)
    if path == _TOKENS:
        spec = body["spec"]
        user = {"username": spec["token"]}
        known = spec["token"] in PEOPLE
        return {**body, "status": {"authenticated": known, "audiences": spec["audiences"], "user": user}}
    return {**body, "status": {"allowed": _allowed(body["spec"]["user"], body["spec"]["resourceAttributes"])}}


def _allowed(user: str, asked: Mapping[str, str]) -> bool:
    if user == ALL or asked["resource"] != "pods":
        return True
    return bool(asked["namespace"]) and zlib.crc32(f"{user} {asked['namespace']}".encode()) % 2 == 0
