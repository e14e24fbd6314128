"""The identity of a request: a bearer token, or a user that a proxy vouches for over mutual TLS.

Headers with a user are believed only with a client certificate that the TLS library has verified against the
configured CA, of a configured name. This is the API server's rule for its front proxy. Source: Kubernetes,
Authenticating, Authenticating Proxy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_to_bytes

TOKEN_HEADER: Final = "Authorization"
#: The headers of an authenticating proxy, as the API server names them.
USER_HEADER, GROUP_HEADER, EXTRA_PREFIX = "X-Remote-User", "X-Remote-Group", "X-Remote-Extra-"
_HEADERS: Final = f"{USER_HEADER}, {GROUP_HEADER}, {EXTRA_PREFIX}*"
#: Of a token, in characters. Tokens of identity providers with many groups have some thousand.
LONGEST_TOKEN: Final = 16_384
_LONGEST_NAME: Final = 1024
_MOST_GROUPS: Final = 256
#: Values of all extra keys together.
_MOST_EXTRA: Final = 64
#: Headers of a request: those of a person, and others.
MOST_HEADERS: Final = 1 + _MOST_GROUPS + _MOST_EXTRA + 100
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-f]{2})")
_BLANKS: Final = " \t"
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]+")
#: Users and groups of Kubernetes itself.
_SYSTEM: Final = "system:"
_ANONYMOUS: Final = ("system:anonymous", "")
_AUTHENTICATED, _UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"


class Unauthenticated(Exception):
    """The request proves no identity; the text is for the person."""


class Ambiguous(Exception):
    """The request names several identities; the text is for the person."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request before it is checked.

    Attributes:
        headers: names in upper case with values, in the order of the request. WSGI joins repeated headers with commas,
            which names may contain too.
        certificate: of the TLS client after verification, as `ssl.SSLSocket.getpeercert` returns it.
        address: of the client, without the port.
    """

    headers: Sequence[tuple[str, str]]
    certificate: Mapping[str, Any] | None = None
    address: str = ""

    def every(self, name: str) -> tuple[str, ...]:
        """The values of a header."""
        return tuple(value for key, value in self.headers if key == name.upper())

    def under(self, prefix: str) -> tuple[tuple[str, str], ...]:
        """The remainders of names that begin with a prefix, in lower case, and their values."""
        start = prefix.upper()
        return tuple((name[len(start) :].lower(), value) for name, value in self.headers if name.startswith(start))

    def only(self, name: str) -> str:
        """The value of a header; empty without it. Raises Ambiguous when there are several."""
        found = self.every(name)
        if len(found) > 1:
            raise Ambiguous(f"{name}: sent {len(found)} times: send it once")
        return found[0] if found else ""


@dataclass(frozen=True, slots=True)
class Identity:
    """A user as Kubernetes knows it. `extra` are keys with their values."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def anonymous(self) -> bool:
        return self.user in _ANONYMOUS or _UNAUTHENTICATED in self.groups


def token(sent: Sent) -> str:
    """The token of the Authorization header. Raises Unauthenticated, Ambiguous."""
    authorization = sent.only(TOKEN_HEADER)
    scheme, _, value = authorization.partition(" ")
    if not authorization:
        raise Unauthenticated(f"{TOKEN_HEADER}: missing: send a bearer token")
    if len(value) > LONGEST_TOKEN:
        raise Unauthenticated(f"{TOKEN_HEADER}: too long: a token has at most {LONGEST_TOKEN} characters")
    if scheme.lower() != "bearer" or not _TOKEN.fullmatch(value):
        raise Unauthenticated(f"{TOKEN_HEADER}: not a bearer token")
    return value


def vouched(sent: Sent, names: frozenset[str]) -> Identity | None:
    """The user that a proxy of one of these names vouches for; None when no such proxy sends one.

    Each header for groups names one group, as for the API server: a comma is a part of the name. Raises Ambiguous for
    several users, and Unauthenticated for users and groups of Kubernetes itself, which no proxy may name.
    """
    user = sent.only(USER_HEADER)
    if not sent.certificate or not names & names_of(sent.certificate):
        return None
    user = _text(user)
    if not user:
        return None
    groups = tuple(group for one in sent.every(GROUP_HEADER) if (group := _text(one)))
    if len(groups) > _MOST_GROUPS or max(map(len, (user, *groups))) > _LONGEST_NAME:
        raise Unauthenticated(f"{USER_HEADER}, {GROUP_HEADER}: too long")
    if any(name.startswith(_SYSTEM) for name in (user, *groups)):
        raise Unauthenticated(
            f"{USER_HEADER}, {GROUP_HEADER}: a name with the prefix {_SYSTEM} is not accepted from a proxy"
        )
    return Identity(user, (*groups, _AUTHENTICATED), extra=_extra(sent))


def _extra(sent: Sent) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The extra data of a user: sorted keys with their values. Raises Unauthenticated.

    As the API server reads it: keys in lower case, then percent-decoded; one that is badly encoded as it is.
    """
    rows = sent.under(EXTRA_PREFIX)
    if len(rows) > _MOST_EXTRA:
        raise Unauthenticated(f"{EXTRA_PREFIX}*: too many: at most {_MOST_EXTRA} values are accepted from a proxy")
    found: dict[str, list[str]] = {}
    for name, value in rows:
        key = _text(name if _BAD_ESCAPE.search(name) else unquote_to_bytes(name).decode("latin-1"))
        found.setdefault(key, []).append(_text(value))
        if not key or max(len(key), len(value)) > _LONGEST_NAME:
            raise Unauthenticated(f"{EXTRA_PREFIX}*: empty or too long: a key has 1 to {_LONGEST_NAME} characters")
    return tuple((key, tuple(values)) for key, values in sorted(found.items()))


def _text(header: str) -> str:
    """A header's text: WSGI gives its bytes as Latin-1, and names are UTF-8. Raises Unauthenticated."""
    try:
        text = header.encode("latin-1").decode().strip(_BLANKS)
    except UnicodeError as error:
        raise Unauthenticated(f"{_HEADERS}: not UTF-8") from error
    if not text.isprintable():
        raise Unauthenticated(f"{_HEADERS}: control characters")
    return text


def names_of(certificate: Mapping[str, Any]) -> frozenset[str]:
    """The common name and the DNS names of a verified certificate."""
    common = {value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"}
    return frozenset(common | {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"})
