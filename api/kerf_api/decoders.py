"""Decoders of typed values, made by one thread at a time.

msgspec (0.22) works a type out when it is first used, and notes it at its class before it is complete. A thread that
decodes the same type meanwhile ends the process. So code that threads run takes its decoders from here.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Final

import msgspec

_MAKING: Final = Lock()
_MADE: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}


def decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of JSON for a type; `msgspec.convert` to the type is safe from then on, too."""
    made = _MADE.get(kind)
    if made is None:
        with _MAKING:
            made = _MADE.setdefault(kind, msgspec.json.Decoder(kind))
    return made
