"""The API server's refusals, translated by what the caller must do next. Source: Kubernetes API conventions, Status."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kerf.ports import (
    AlreadyExists,
    AlreadyGone,
    Conflict,
    EvictionBlocked,
    Expired,
    Forbidden,
    Invalid,
    PortError,
    SeveralBudgets,
    Throttled,
    Unavailable,
)
from kerf_api.decoders import decoder_of


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: tuple[_Cause, ...] | None = None
    retry_after_seconds: float = 0.0


class Status(msgspec.Struct, frozen=True):
    """metav1.Status, only what is read."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None

    def caused_by(self, reason: str) -> bool:
        return self.details is not None and any(c.reason == reason for c in self.details.causes or ())


_SEVERAL_BUDGETS = "more than one PodDisruptionBudget"


def read_status(body: bytes) -> Status:
    """What an answer's body says; an empty Status when it is not one (a proxy answered, perhaps)."""
    try:
        found: Status = decoder_of(Status).decode(body)
        return found
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Status(message=body[:200].decode(errors="replace").strip())


def translate(call: str, code: int, body: bytes, headers: Mapping[str, str]) -> PortError:
    """The error for an answer of 400 or above. `call` is the method and path, for the text."""
    status = read_status(body)
    text = f"{call}: {code} {status.message or status.reason}".rstrip()
    if code == 429 or (code == 500 and _SEVERAL_BUDGETS in status.message):
        return _too_many(text, code, status, headers)
    if code == 409:
        return AlreadyExists(text) if status.reason == "AlreadyExists" else Conflict(text)
    for codes, error in _BY_CODE:
        if code in codes:
            return error(text)
    return Unavailable(text)


_BY_CODE: tuple[tuple[frozenset[int], type[PortError]], ...] = (
    (frozenset({404}), AlreadyGone),
    (frozenset({410}), Expired),
    (frozenset({401, 403}), Forbidden),
    (frozenset({400, 405, 413, 415, 422}), Invalid),
)


def _too_many(text: str, code: int, status: Status, headers: Mapping[str, str]) -> PortError:
    """Budgets answer 429 as overload does, but name themselves; several budgets for one pod answer 500."""
    if code == 500:
        return SeveralBudgets(text)
    if status.caused_by("DisruptionBudget"):
        return EvictionBlocked(text)
    asked = headers.get("Retry-After", "")
    seconds = float(asked) if asked.isdigit() else status.details.retry_after_seconds if status.details else 0.0
    return Throttled(text, seconds)
