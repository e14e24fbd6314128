"""Who sends a request: a bearer token, or a user that a proxy vouches for over mutual TLS.

Headers with a user are believed only with a client certificate that the TLS library has verified against the
configured CA, of a configured name. This is the API server's rule for its front proxy. Source: Kubernetes,
Authenticating, Authenticating Proxy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

#: The headers of an authenticating proxy, as the API server names them.
USER_HEADER, GROUP_HEADER = "X-Remote-User", "X-Remote-Group"
#: Of a token, in characters. Tokens of identity providers with many groups have some thousand.
LONGEST_TOKEN: Final = 16_384
_LONGEST_NAME: Final = 1024
_MOST_GROUPS: Final = 256
_BLANKS: Final = " \t"
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]+")
#: Users and groups of Kubernetes itself.
_SYSTEM: Final = "system:"
_ANONYMOUS: Final = ("system:anonymous", "")
_AUTHENTICATED, _UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"


class Unauthenticated(Exception):
    """The request proves no identity; the text is for the person."""


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


def token(authorization: str) -> str:
    """The token of an Authorization header. Raises Unauthenticated."""
    scheme, _, value = authorization.partition(" ")
    if not authorization:
        raise Unauthenticated("Authorization: missing: send a bearer token")
    if scheme.lower() != "bearer" or len(value) > LONGEST_TOKEN or not _TOKEN.fullmatch(value):
        raise Unauthenticated("Authorization: not a bearer token")
    return value


def vouched(
    headers: Mapping[str, str], certificate: Mapping[str, Any] | None, names: frozenset[str]
) -> Identity | None:
    """The user that a proxy of one of these names vouches for; None when no such proxy sends one.

    `certificate` is that of the TLS client after verification, as `ssl.SSLSocket.getpeercert` returns it. Raises
    Unauthenticated for users and groups of Kubernetes itself, which no proxy may name.
    """
    if not certificate or not names & names_of(certificate):
        return None
    user = _text(headers.get(USER_HEADER, ""))
    if not user:
        return None
    groups = tuple(group for one in _text(headers.get(GROUP_HEADER, "")).split(",") if (group := one.strip(_BLANKS)))
    if len(groups) > _MOST_GROUPS or max(map(len, (user, *groups))) > _LONGEST_NAME:
        raise Unauthenticated(f"{USER_HEADER}, {GROUP_HEADER}: too long")
    if any(name.startswith(_SYSTEM) for name in (user, *groups)):
        raise Unauthenticated(
            f"{USER_HEADER}, {GROUP_HEADER}: a name with the prefix {_SYSTEM} is not accepted from a proxy"
        )
    return Identity(user, (*groups, _AUTHENTICATED))


def _text(header: str) -> str:
    """A header's text: WSGI gives its bytes as Latin-1, and names are UTF-8. Raises Unauthenticated."""
    try:
        text = header.encode("latin-1").decode().strip(_BLANKS)
    except UnicodeError as error:
        raise Unauthenticated(f"{USER_HEADER}, {GROUP_HEADER}: not UTF-8") from error
    if not text.isprintable():
        raise Unauthenticated(f"{USER_HEADER}, {GROUP_HEADER}: control characters")
    return text


def names_of(certificate: Mapping[str, Any]) -> frozenset[str]:
    """The common name and the DNS names of a verified certificate."""
    common = {value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"}
    return frozenset(common | {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"})
