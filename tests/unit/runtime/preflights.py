"""An account and an API server as a preflight asks them: what they answer, and what they deny."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from kerf.model.kinds import Kind
from kerf.ports import AlreadyGone, Listing

DENIED, GONE = "AccessDeniedException", "ResourceNotFoundException"
#: Paths of a preflight's questions about the webhook, and the answer of a cluster that has Kerf's.
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
TRIED = "/apis/karpenter.sh/v1/nodepools?dryRun=All"
_SERVICE = {"service": {"namespace": "kerf", "name": "kerf-webhook"}}
INSTALLED = {HOOKS: {"items": [{}, {"webhooks": [{"name": "validation.webhook.kerf.sh", "clientConfig": _SERVICE}]}]}}


@dataclass
class Account:
    """It has these answers by method; a text is the code of an error, and so is the first of a pair."""

    answers: Mapping[str, Any] = field(default_factory=dict)
    region: str = "us-west-2"
    asked: list[str] = field(default_factory=list)

    @property
    def meta(self) -> Any:
        return SimpleNamespace(partition="aws")

    def get(self, service: str) -> Account:
        return self

    def get_paginator(self, method: str) -> Any:
        return SimpleNamespace(paginate=lambda **parameters: iter([self.answer(method, parameters)]))

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda **parameters: self.answer(method, parameters)

    def answer(self, method: str, parameters: Mapping[str, Any]) -> Any:
        self.asked.append(method)
        found = self.answers.get(method, GONE)
        if callable(found):
            found = found(**parameters)
        code, metadata = (found, {}) if isinstance(found, str) else found if isinstance(found, tuple) else ("", {})
        if code:
            raise ClientError({"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": metadata}, method)
        return found


@dataclass
class ApiServer:
    """It has these answers by path, or an error in place of one; `denied` are permissions that the caller lacks.

    `lacking` are permissions that the account lacks whom a review is about.
    """

    answers: Mapping[str, Any] = field(default_factory=dict)
    denied: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    caller: str = "admin"
    asked: list[str] = field(default_factory=list)

    def request(self, method: str, path: str, body: Any = None) -> Any:
        self.asked.append(f"{method} {path}")
        if path.endswith("selfsubjectreviews"):
            return {"status": {"userInfo": {"username": self.caller}}}
        if path.endswith("accessreviews"):
            denied = self.lacking if "user" in body["spec"] else self.denied
            return {"status": {"allowed": right(body["spec"]["resourceAttributes"]) not in denied}}
        found = self.answers.get(path, AlreadyGone(path))
        if isinstance(found, Exception):
            raise found
        return found

    def list(self, kind: Kind) -> Listing:
        return Listing((), "1")


def right(attributes: Mapping[str, str]) -> str:
    """As `list nodes`, `get configmaps in kube-system`, `create pods/eviction`."""
    sub = f"/{attributes['subresource']}" if attributes["subresource"] else ""
    place = f" in {attributes['namespace']}" if attributes.get("namespace") else ""
    return f"{attributes['verb']} {attributes['resource']}{sub}{place}"
