"""From the API server's bytes to typed values: pages, single objects, watch lines. No dict trees on the way.

An object that does not fit its type (a poisoned custom resource, a field of an unforeseen shape) is left out, and told
to `on_poison`; the others of its page are not held up by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from api.v1.meta import Value
from reconciler.kube.errors import Status
from reconciler.kube.interning import interner
from reconciler.model.kinds import Kind
from reconciler.ports import Change, Disconnected, Expired, Forbidden, PortError

T = TypeVar("T")
#: Told of a kind and what is wrong with an object of it.
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
        self._one = msgspec.json.Decoder(kind.type)
        self._page = msgspec.json.Decoder(Page[kind.type])  # type: ignore[name-defined]
        self._intern = interner(kind)

    def one(self, raw: bytes | msgspec.Raw) -> Any:
        """Raises msgspec.ValidationError."""
        value = self._one.decode(raw)
        return value if self._intern is None else self._intern(value)

    def page(self, raw: bytes) -> tuple[tuple[Any, ...], ListMeta]:
        """A page's items and metadata."""
        try:
            page = self._page.decode(raw)
            items = page.items or ()
            return items if self._intern is None else tuple(map(self._intern, items)), page.metadata
        except msgspec.ValidationError:
            return self._page_without_poison(raw)

    def _page_without_poison(self, raw: bytes) -> tuple[tuple[Any, ...], ListMeta]:
        page = _RAW_PAGE.decode(raw)
        found = []
        for item in page.items or ():
            try:
                found.append(self.one(item))
            except msgspec.ValidationError as error:
                self._on_poison(self._kind, str(error))
        return tuple(found), page.metadata

    def line(self, raw: bytes) -> Change | None:
        """One line of a watch; None for an object that could not be read. Raises what an ERROR line means."""
        line = _LINE.decode(raw)
        if line.type == "ERROR":
            raise _broken(_STATUS.decode(line.object))
        version = _BARE.decode(line.object).metadata.resource_version
        if line.type == "BOOKMARK":
            return Change("BOOKMARK", None, version)
        try:
            return Change(line.type, self.one(line.object), version)
        except msgspec.ValidationError as error:
            self._on_poison(self._kind, str(error))
            return None


def _broken(status: Status) -> PortError:
    text = f"watch: {status.code} {status.message or status.reason}"
    if status.code == 410 or status.reason in ("Expired", "Gone"):
        return Expired(text)
    return Forbidden(text) if status.code in (401, 403) else Disconnected(text)
