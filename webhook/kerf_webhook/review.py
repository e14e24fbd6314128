"""AdmissionReview v1: what the API server asks, and how it is answered.

Parsed once at the door; behind it there are no half-checked dicts. What is not an AdmissionReview is a `NotAReview`
with a message for its sender.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kerf_api import labels
from kerf_api.foreign import is_foreign_object

VERSION: Final = "admission.k8s.io/v1"
#: What the API server passes on to the user of one warning.
LONGEST_WARNING: Final = 256
_UNPROCESSABLE: Final = (422, "Invalid")
#: Resources of which other controllers have objects too, each with its kind.
_SHARED: Final = {f"nodepools.{labels.GROUP}": "NodePool", f"nodeclaims.{labels.GROUP}": "NodeClaim"}
_FORBIDDEN: Final = (403, "Forbidden")


class NotAReview(Exception):
    """The body is not an AdmissionReview; the message says why."""


@dataclass(frozen=True, slots=True)
class Review:
    """One question: may `new` be written, in place of `old` if that is not None?

    `resource` is `<plural>.<group>`; `namespace` is empty for objects of the whole cluster; `new` is None where the
    operation has no object. `user` is the name of the account that sends the request; empty when it is not given.
    """

    uid: str
    operation: str
    resource: str
    subresource: str
    namespace: str
    name: str
    new: Mapping[str, Any] | None
    old: Mapping[str, Any] | None
    user: str = ""

    @property
    def foreign(self) -> bool:
        """Whether the object is another controller's (`kerf_api.foreign`), before the request too if it was there."""
        kind = _SHARED.get(self.resource, "")
        there = [one for one in (self.new, self.old) if one is not None]
        return bool(there) and all(is_foreign_object(kind, one) for one in there)


def parse(body: bytes) -> Review:
    """Read a request body. Raises NotAReview for anything that is not an AdmissionReview v1 with a request."""
    try:
        content = msgspec.json.decode(body)
    except RecursionError:
        raise NotAReview("the body is nested too deeply") from None
    except (msgspec.MsgspecError, ValueError) as problem:
        raise NotAReview(f"the body is not JSON: {problem}") from None
    if not isinstance(content, dict) or content.get("kind") != "AdmissionReview":
        raise NotAReview("the body is not an AdmissionReview")
    if content.get("apiVersion") != VERSION:
        raise NotAReview(f"only {VERSION} is spoken here")
    request = content.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str) or not request["uid"]:
        raise NotAReview("the AdmissionReview has no request with a uid")
    return _review(request)


def _review(request: Mapping[str, Any]) -> Review:
    resource = request.get("resource")
    if not isinstance(resource, dict):
        raise NotAReview("the request names no resource")
    new, old, user = request.get("object"), request.get("oldObject"), request.get("userInfo")
    return Review(
        uid=request["uid"],
        operation=_text(request.get("operation")),
        resource=f"{_text(resource.get('resource'))}.{_text(resource.get('group'))}",
        subresource=_text(request.get("subResource")),
        namespace=_text(request.get("namespace")),
        name=_text(request.get("name")),
        new=new if isinstance(new, dict) else None,
        old=old if isinstance(old, dict) else None,
        user=_text(user.get("username")) if isinstance(user, dict) else "",
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def allowed(uid: str, warnings: Sequence[str] = (), patch: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The answer yes, with warnings for the user and a JSONPatch for the object."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(patch)).decode()
    return _answer(response, warnings)


def denied(uid: str, message: str, warnings: Sequence[str] = ()) -> dict[str, Any]:
    """The answer no to an object that is wrong, with the reason that the user will read."""
    return _answer(_refusal(uid, _UNPROCESSABLE, message), warnings)


def forbidden(uid: str, message: str) -> dict[str, Any]:
    """The answer no to a request, whatever the object is like."""
    return _answer(_refusal(uid, _FORBIDDEN, message), ())


def _refusal(uid: str, why: tuple[int, str], message: str) -> dict[str, Any]:
    code, reason = why
    status = {"status": "Failure", "code": code, "reason": reason, "message": message}
    return {"uid": uid, "allowed": False, "status": status}


def _answer(response: dict[str, Any], warnings: Sequence[str]) -> dict[str, Any]:
    if warnings:
        response["warnings"] = [_cut(warning) for warning in warnings]
    return {"apiVersion": VERSION, "kind": "AdmissionReview", "response": response}


def _cut(text: str) -> str:
    """A warning in one line, no longer than the API server passes on (it counts bytes)."""
    line = " ".join(text.split()).encode()
    return line.decode() if len(line) <= LONGEST_WARNING else line[: LONGEST_WARNING - 3].decode(errors="ignore") + "…"
