"""Questions to the API server about a person: who a token belongs to, and which objects that user may list.

Answers are kept for some seconds, so a removed permission lasts so long here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

from kerf.cli.gate.claims import Identity
from kerf.cli.gate.flights import PATIENCE_SECONDS, Answered, Flights
from kerf.cli.gate.limits import ReviewLimits
from kerf.cli.gate.recent import Recent
from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.ports import PortError, Unavailable

#: Seconds that an answer of the API server is kept.
KEPT_SECONDS: Final = 15.0
#: Seconds since a token was valid in which its reviews are not limited.
TRUSTED_SECONDS: Final = 3600.0
#: Tokens and answers that are kept. Wrong tokens have a table of their own and push no valid one out.
MOST_TOKENS, MOST_ANSWERS = 1024, 20_000
#: A person must be allowed to list all of these to see anything.
REQUIRED: Final = (kinds.NODE, kinds.NODE_POOL, kinds.NODE_CLAIM, kinds.NODE_CLASS)
TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

#: Outcomes of a review.
ALLOWED, DENIED, FAILED = "allowed", "denied", "failed"

#: Sends a method, a path and a body, and returns the answer's JSON; raises PortError.
Request = Callable[[str, str, Any], Any]


class Reviews:
    """Belongs to any thread. Every method raises PortError when the API server does not answer."""

    def __init__(
        self,
        request: Request,
        audiences: Iterable[str],
        patience: float = PATIENCE_SECONDS,
        reviewed: Callable[[str, str], None] = lambda kind, outcome: None,
        **times: Any,
    ) -> None:
        """`patience` is the time in seconds for the reviews of all namespaces of a request; `reviewed` receives the
        kind and outcome of each review."""
        self._reviewed: Final = reviewed
        self._request, self._audiences = request, tuple(audiences)
        self._limits: Final = ReviewLimits(**times)
        self._trusted: Final = Recent[bytes, bool](TRUSTED_SECONDS, MOST_TOKENS, **times)
        self._tokens: Final = Recent[bytes, Identity](KEPT_SECONDS, MOST_TOKENS, **times)
        self._wrong: Final = Recent[bytes, bool](KEPT_SECONDS, MOST_TOKENS, **times)
        self._namespaces: Final = Recent[tuple[Identity, frozenset[str]], frozenset[str]](
            KEPT_SECONDS, MOST_TOKENS, **times
        )
        self._answers: Final = Recent[tuple[Identity, str, str], bool](KEPT_SECONDS, MOST_ANSWERS, **times)
        self._flights: Final = Flights(
            lambda who, name: self._may_list(who, kinds.POD, name),
            lambda who, among, found: self._namespaces.put((who, among), found),
            patience,
        )

    @property
    def kept(self) -> int:
        """The number of kept answers about tokens and about single permissions."""
        return len(self._tokens) + len(self._wrong) + len(self._answers)

    def identity(self, token: str, address: str = "") -> Identity | None:
        """The user of a token for one of the audiences; None for any other token. Raises Crowded for this address."""
        key = hashlib.sha256(token.encode()).digest()
        known = self._tokens.get(key)
        if known is not None or self._wrong.get(key):
            return known
        trusted = self._trusted.get(key)
        with nullcontext() if trusted else self._limits.turn(address):
            who = self._token_review(token)
        if who is None:
            self._wrong.put(key, True)
        else:
            self._tokens.put(key, who)
        if trusted or who is not None:
            self._trusted.put(key, who is not None)
        return who

    def may_look(self, who: Identity) -> bool:
        """Whether the user may list all that every view shows."""
        return all(self._may_list(who, kind) for kind in REQUIRED)

    def namespaces(self, who: Identity, among: frozenset[str]) -> Answered:
        """Those of these namespaces whose pods the user may list."""
        if self._may_list(who, kinds.POD):
            return Answered(None)
        # Kept for its whole time, however long the reviews of many namespaces took.
        known = self._namespaces.get((who, among))
        return self._flights.answers(who, among) if known is None else Answered(known)

    def _token_review(self, token: str) -> Identity | None:
        spec = {"token": token, "audiences": list(self._audiences)}
        status = self._asked(TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview", spec)
        audiences = status.get("audiences") or ()
        valid = status.get("authenticated") is True and {*audiences} & {*self._audiences}
        who = _identity(status.get("user") or {}) if valid else None
        who = None if who is None or who.anonymous else who
        self._reviewed("TokenReview", DENIED if who is None else ALLOWED)
        return who

    def _may_list(self, who: Identity, kind: Kind, namespace: str = "") -> bool:
        key = (who, kind.plural, namespace)
        known = self._answers.get(key)
        if known is None:
            known = self._access_review(who, kind, namespace)
            self._answers.put(key, known)
        return known

    def _access_review(self, who: Identity, kind: Kind, namespace: str) -> bool:
        attributes = {"verb": "list", "group": kind.group, "resource": kind.plural, "namespace": namespace}
        spec = {
            "user": who.user,
            "groups": list(who.groups),
            "uid": who.uid,
            "extra": {key: list(values) for key, values in who.extra},
            "resourceAttributes": {**attributes, "version": kind.api_version.rpartition("/")[2]},
        }
        status = self._asked(ACCESS_REVIEWS, "authorization.k8s.io/v1", "SubjectAccessReview", spec)
        allowed = status.get("allowed") is True and status.get("denied") is not True
        self._reviewed("SubjectAccessReview", ALLOWED if allowed else DENIED)
        return allowed

    def _asked(self, path: str, api_version: str, kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The status of a review. Raises PortError."""
        try:
            answer = self._request("POST", path, {"apiVersion": api_version, "kind": kind, "spec": spec})
            status = answer.get("status") if isinstance(answer, Mapping) else None
            if not isinstance(status, Mapping):
                raise Unavailable(f"{kind}: the answer has no status")
        except PortError:
            self._reviewed(kind, FAILED)
            raise
        return status


def _identity(user: Mapping[str, Any]) -> Identity:
    extra: Mapping[str, Sequence[str]] = user.get("extra") or {}
    return Identity(
        str(user.get("username") or ""),
        tuple(user.get("groups") or ()),
        str(user.get("uid") or ""),
        tuple((key, tuple(values or ())) for key, values in sorted(extra.items())),
    )
