"""Questions to the API server, none of which is refused: each is preceded by whether the caller may ask it.

Source: Kubernetes, "Authorization", SelfSubjectAccessReview, SubjectAccessReview and SelfSubjectReview.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kerf.model.kinds import Kind
from kerf.ports import Forbidden, Listing, PortError
from kerf.runtime.preflight.findings import NotAllowed

_AUTHORIZATION: Final = "authorization.k8s.io/v1"
_REVIEWS: Final = f"/apis/{_AUTHORIZATION}"
_WHO: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_ACCOUNT: Final = "system:serviceaccount:"
#: The user of a request without credentials, as the refusals of the API server name it.
ANONYMOUS: Final = "system:anonymous"


class Kube(Protocol):
    """Of the Kubernetes client what a preflight needs."""

    def request(self, method: str, path: str, body: Any = None) -> Any: ...

    def list(self, kind: Kind) -> Listing: ...


@dataclass(frozen=True, slots=True)
class Right:
    """A permission, as `create pods/eviction` or `get leases.coordination.k8s.io in kerf`."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        name, slash, sub = self.resource.partition("/")
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {name}{f'.{self.group}' if self.group else ''}{slash}{sub}{place}"

    @property
    def attributes(self) -> Mapping[str, str]:
        """As a review of access has it."""
        name, _, sub = self.resource.partition("/")
        found = {"group": self.group, "resource": name, "subresource": sub, "verb": self.verb}
        return {**found, "namespace": self.namespace} if self.namespace else found


REVIEW: Final = Right("create", "subjectaccessreviews", "authorization.k8s.io")
_SELF_REVIEW: Final = Right("create", "selfsubjectaccessreviews", "authorization.k8s.io")


@dataclass(frozen=True, slots=True)
class Account:
    """A ServiceAccount."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"ServiceAccount {self.namespace}/{self.name}"

    @property
    def user(self) -> str:
        return f"{_ACCOUNT}{self.namespace}:{self.name}"

    @property
    def groups(self) -> tuple[str, ...]:
        """Source: Kubernetes, "Authenticating", service account tokens."""
        return "system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated"


@dataclass(slots=True)
class Asker:
    """The API server as the caller may ask it. Answers about permissions are kept."""

    kube: Kube
    _known: dict[tuple[Right, Account | None], bool] = field(default_factory=dict)
    _caller: str | None = None

    def may(self, right: Right, account: Account | None = None) -> bool:
        """Whether the caller, or this account, has a permission. Raises NotAllowed, PortError."""
        if account is not None and account.user == self.caller():
            account = None
        key = (right, account)
        if key not in self._known:
            self._known[key] = self._reviewed(right, account)
        return self._known[key]

    def _reviewed(self, right: Right, account: Account | None) -> bool:
        spec: dict[str, Any] = {"resourceAttributes": right.attributes}
        kind, needed = "SelfSubjectAccessReview", _SELF_REVIEW
        if account is not None:
            self.require(REVIEW)
            kind, needed = "SubjectAccessReview", REVIEW
            spec = {**spec, "user": account.user, "groups": list(account.groups)}
        body = {"apiVersion": _AUTHORIZATION, "kind": kind, "spec": spec}
        try:
            answer = self.kube.request("POST", f"{_REVIEWS}/{kind.lower()}s", body)
        except Forbidden as error:
            raise NotAllowed(str(needed)) from error
        return bool(answer["status"]["allowed"])

    def require(self, right: Right) -> None:
        """Raises NotAllowed when the caller lacks a permission."""
        if not self.may(right):
            raise NotAllowed(str(right))

    def get(self, path: str, right: Right) -> Any:
        """What is at a path. Raises NotAllowed, PortError."""
        self.require(right)
        return self.kube.request("GET", path)

    def rows(self, path: str, right: Right) -> list[Any]:
        """The items of a list. Raises NotAllowed, PortError."""
        return list(self.get(path, right).get("items") or ())

    def caller(self) -> str:
        """The user of the requests, or `ANONYMOUS`; empty when the API server does not report it, as before Kubernetes
        1.28."""
        if self._caller is None:
            try:
                body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
                answer = self.kube.request("POST", _WHO, body)
                self._caller = str(answer["status"]["userInfo"]["username"])
            except Forbidden as error:
                self._caller = ANONYMOUS if f'"{ANONYMOUS}"' in str(error) else ""
            except (PortError, KeyError, TypeError):
                self._caller = ""
        return self._caller

    def own_account(self) -> Account | None:
        """The caller as a ServiceAccount; None for a person."""
        space, colon, name = self.caller().removeprefix(_ACCOUNT).partition(":")
        return Account(space, name) if self.caller().startswith(_ACCOUNT) and colon else None
