"""From the API server's bytes to typed values: pages, single objects, watch lines. No dict trees on the way.

An object that does not fit its type (a poisoned custom resource, a field of an unforeseen shape) is reported to
`on_poison` and handed on as far as it can be read, marked as such; the others of its page are not held up by it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import msgspec

from kerf.kube.errors import Status
from kerf.kube.interning import interner
from kerf.kube.salvage import salvage
from kerf.model.kinds import Kind
from kerf.ports import Change, Disconnected, Expired, Forbidden, PortError
from kerf_api.bounds import Bound, bound_of
from kerf_api.decoders import decoder_of
from kerf_api.v1.meta import Value

T = TypeVar("T")
#: Called with a kind and what is wrong with an object of it.
OnPoison = Callable[[Kind, str], None]


class ListMeta(Value, frozen=True, kw_only=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list."""

    metadata: ListMeta
    items: tuple[T, ...] | None = None


class _Line(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Bare(msgspec.Struct, frozen=True):
    metadata: ListMeta


_LINE, _BARE, _STATUS = msgspec.json.Decoder(_Line), msgspec.json.Decoder(_Bare), msgspec.json.Decoder(Status)
_RAW_PAGE = msgspec.json.Decoder(Page[msgspec.Raw])


class KindDecoder:
    """The decoders of one kind, made once."""

    def __init__(self, kind: Kind, on_poison: OnPoison) -> None:
        self._kind, self._on_poison = kind, on_poison
        self._one = decoder_of(kind.type)
        self._page = decoder_of(Page[kind.type])  # type: ignore[name-defined]
        self._kept = _keeper(bound_of(kind.type), interner(kind))

    def one(self, raw: bytes | msgspec.Raw) -> Any:
        """An object, or what can be read of it. Raises msgspec.DecodeError when not even its name can be."""
        try:
            value = self._one.decode(raw)
        except msgspec.DecodeError as error:
            self._on_poison(self._kind, str(error))
            value = salvage(self._kind.type, raw, str(error))
            if value is None:
                raise
        return self._kept(value)

    def page(self, raw: bytes) -> tuple[tuple[Any, ...], ListMeta]:
        """A page's items and metadata."""
        try:
            page = self._page.decode(raw)
            return tuple(map(self._kept, page.items or ())), page.metadata
        except msgspec.DecodeError:
            return self._one_by_one(raw)

    def _one_by_one(self, raw: bytes) -> tuple[tuple[Any, ...], ListMeta]:
        page = _RAW_PAGE.decode(raw)
        found = []
        for item in page.items or ():
            with suppress(msgspec.DecodeError):
                found.append(self.one(item))
        return tuple(found), page.metadata

    def line(self, raw: bytes) -> Change | None:
        """One line of a watch; None when not even the object's name could be read. Raises what an ERROR line means."""
        line = _LINE.decode(raw)
        if line.type == "ERROR":
            raise _broken(_STATUS.decode(line.object))
        try:
            value = None if line.type == "BOOKMARK" else self.one(line.object)
            return Change(line.type, value, _BARE.decode(line.object).metadata.resource_version)
        except msgspec.DecodeError:
            return None


def _keeper(bound: Bound | None, intern: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """The function that makes of an object what decisions get: parts shared with its like, times within bounds."""
    if bound is None:
        return intern or (lambda value: value)
    return bound if intern is None else lambda value: bound(intern(value))


def _broken(status: Status) -> PortError:
    text = f"watch: {status.code} {status.message or status.reason}"
    if status.code == 410 or status.reason in ("Expired", "Gone"):
        return Expired(text)
    return Forbidden(text) if status.code in (401, 403) else Disconnected(text)
