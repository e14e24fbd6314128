"""Values of the model as JSON values, and back. Maps whose keys are no texts become lists of pairs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import msgspec

from kerf.model.changes.indexes import InstanceIndex
from kerf_api.decoders import decoder_of

#: The only key of an object that stands for a map with keys that are no texts.
PAIRS: Final = "$pairs"
#: A fraction as `plain` writes it. Others that Python reads, such as 1e999999999, would take all memory.
_FRACTION: Final = re.compile(r"-?[0-9]{1,40}(/0*[1-9][0-9]{0,39})?")


def plain(value: Any) -> Any:
    """The value as JSON has it: sets are sorted, times are RFC 3339 text, durations ISO 8601 text."""
    return _paired(msgspec.to_builtins(value, enc_hook=_encoded, order="deterministic"))


def typed(data: Any, kind: Any) -> Any:
    """The value of this type that `plain` has written.

    Raises msgspec.ValidationError, naming the path, when it is none.
    """
    decoder_of(kind)  # works the type out
    return msgspec.convert(_unpaired(data), kind, dec_hook=_decoded)


def _encoded(value: Any) -> Any:
    if isinstance(value, InstanceIndex):
        return dict(value.by_id)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Fraction):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be stored in a snapshot")


def _decoded(kind: type[Any], value: Any) -> Any:
    if kind is Fraction:
        if not isinstance(value, str) or not _FRACTION.fullmatch(value):
            raise ValueError(f"{str(value)[:20]!r} is no fraction")
        return Fraction(value)
    raise NotImplementedError(f"{kind.__name__} cannot be stored in a snapshot")


def _paired(data: Any) -> Any:
    if isinstance(data, dict):
        if all(isinstance(key, str) for key in data):
            return {key: _paired(value) for key, value in data.items()}
        return {PAIRS: [[_paired(key), _paired(value)] for key, value in data.items()]}
    if isinstance(data, (list, tuple)):
        return [_paired(one) for one in data]
    return data


def _unpaired(data: Any) -> Any:
    if isinstance(data, dict):
        if data.keys() == {PAIRS}:
            return {_key(key): _unpaired(value) for key, value in data[PAIRS]}
        return {key: _unpaired(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_unpaired(one) for one in data]
    return data


def _key(key: Any) -> Any:
    return tuple(map(_key, key)) if isinstance(key, list) else key
