"""Questions to the API server about a person: who a token belongs to, and which objects that user may list.

Answers are kept for some seconds from the time of their question, so a removed permission lasts so long here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

from kerf.cli.gate.claims import Identity
from kerf.cli.gate.flights import PATIENCE_SECONDS, Answered, Flights, Permission
from kerf.cli.gate.limits import ReviewLimits
from kerf.cli.gate.recent import Recent
from kerf.cli.gate.tokens import Reviewed, Tokens, digest
from kerf.model import kinds
from kerf.model.kinds import Kind
from kerf.ports import PortError, Unavailable

#: Seconds after which a removed permission has no effect on an answer of the page, at the latest.
PROMISED_SECONDS: Final = 15.0
#: Seconds that an answer of the API server is kept; the remainder is for a page that is being made meanwhile.
KEPT_SECONDS: Final = 12.0
#: Answers about single permissions that are kept.
MOST_ANSWERS: Final = 20_000
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
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`patience` is the time in seconds for the reviews of all namespaces of a request; `reviewed` receives the
        kind and outcome of each review."""
        self._reviewed: Final = reviewed
        self._request, self._audiences, self._now = request, tuple(audiences), now
        self._patience: Final = patience
        self._limits: Final = ReviewLimits(now)
        self._tokens: Final = Tokens(KEPT_SECONDS, now)
        self._answers: Final = Recent[tuple[Identity, str, str], Permission](KEPT_SECONDS, MOST_ANSWERS, now)
        self._flights: Final = Flights(lambda who, name: self._permission(who, kinds.POD, name), KEPT_SECONDS, now)

    def identity(self, token: str, address: str = "") -> Identity | None:
        """The user of a token for one of the audiences; None for any other token. Raises Crowded for this address."""
        key = digest(token)
        known = self._tokens.get(key)
        if known is None:
            with nullcontext() if self._tokens.trusted(key) else self._limits.turn(address):
                asked = self._now()
                known = Reviewed(self._token_review(token), asked)
            self._tokens.put(key, known)
        return known.who

    def settle(self, token: str, may_look: bool) -> None:
        """Note whether the user of a token may look: only tokens of such users are exempt from limits."""
        self._tokens.settle(digest(token), may_look)

    def may_look(self, who: Identity) -> bool:
        """Whether the user may list all that every view shows."""
        return all(self._permission(who, kind).allowed for kind in REQUIRED)

    def namespaces(self, who: Identity, among: frozenset[str], patience: float | None = None) -> Answered:
        """Those of these namespaces whose pods the user may list, by the answers within so many seconds."""
        if self._permission(who, kinds.POD).allowed:
            return Answered(None)
        return self._flights.answers(who, among, self._patience if patience is None else patience)

    def _token_review(self, token: str) -> Identity | None:
        spec = {"token": token, "audiences": list(self._audiences)}
        status = self._asked(TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview", spec)
        audiences = status.get("audiences") or ()
        valid = status.get("authenticated") is True and {*audiences} & {*self._audiences}
        who = _identity(status.get("user") or {}) if valid else None
        who = None if who is None or who.anonymous else who
        self._reviewed("TokenReview", DENIED if who is None else ALLOWED)
        return who

    def _permission(self, who: Identity, kind: Kind, namespace: str = "") -> Permission:
        """Whether the user may list objects of this kind, in a namespace or in all."""
        key = (who, kind.plural, namespace)
        known = self._answers.get(key)
        if known is None:
            asked = self._now()
            known = Permission(self._access_review(who, kind, namespace), asked)
            self._answers.put(key, known, asked)
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
