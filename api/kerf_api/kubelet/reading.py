"""Readings of `spec.kubelet`, the open map: pod counts, reserved resources, eviction thresholds.

Values that are no plain number or quantity (an expression, a mistake) read as absent, until a number has taken the
place of the expression; whether the map is valid at all is judged in rules.py. Source: API reference §5.8.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil
from typing import Any

from kerf_api import quantity
from kerf_api.resources import Resources

#: Few digits and a short exponent: `1e9999999999%` is a short text, and a number that no memory holds.
_PERCENTAGE = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,2})?%")

Kubelet = Mapping[str, Any] | None
#: Field, resource and quantity, such as ("kubeReserved", "cpu", "120m").
Reserved = tuple[str, str, str]


def without_nulls(kubelet: Kubelet) -> Kubelet:
    """The map without its null fields at any depth: to the API server, and to a kubelet, null is no value."""
    return None if kubelet is None else {key: _kept(value) for key, value in kubelet.items() if value is not None}


def _kept(value: Any) -> Any:
    if isinstance(value, Mapping):
        return without_nulls(value)
    return [_kept(item) for item in value] if isinstance(value, list | tuple) else value


def count(kubelet: Kubelet, field: str) -> int | None:
    """A non-negative integer field, such as `maxPods`; None when it is absent or no such number."""
    value = (kubelet or {}).get(field)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def texts(kubelet: Kubelet, field: str) -> dict[str, str]:
    """A map of texts, such as `kubeReserved`, with every scalar as text; keys sorted. A null is absent."""
    value = (kubelet or {}).get(field)
    if not isinstance(value, Mapping):
        return {}
    return {key: str(value[key]) for key in sorted(value) if value[key] is not None}


def reserved(kubelet: Kubelet, field: str) -> Resources:
    """`kubeReserved` or `systemReserved`; entries that are no quantity are left out."""
    return Resources(
        {name: quantity.amount(name, text) for name, text in texts(kubelet, field).items() if is_quantity(text)}
    )


def with_reserved(kubelet: Kubelet, rows: Iterable[Reserved]) -> Kubelet:
    """The map with these quantities in the place of the expressions that they come from."""
    found = dict(kubelet or {})
    for field, name, amount in rows:
        found[field] = {**found[field], name: amount}
    return found if found else kubelet


def threshold(kubelet: Kubelet, signal: str, capacity: int) -> int | None:
    """What `evictionHard` keeps free of a capacity, in its unit; None when it does not say.

    A percentage is of the capacity, rounded up; `100%` switches the signal off (0).
    """
    text = texts(kubelet, "evictionHard").get(signal)
    if text is None:
        return None
    if not text.endswith("%"):
        return ceil(quantity.parse(text)) if is_quantity(text) else None
    percent = percentage(text)
    if percent is None:
        return None
    return 0 if percent == 100 else ceil(capacity * percent / 100)


def percentage(text: str) -> Fraction | None:
    """The number before a percent sign, 0 to 100; None when it is none."""
    if not _PERCENTAGE.fullmatch(text):
        return None
    value = Fraction(text[:-1])
    return value if 0 <= value <= 100 else None


def is_quantity(text: str) -> bool:
    """Whether a text is a quantity at all."""
    try:
        quantity.parse(text)
    except ValueError:
        return False
    return True
