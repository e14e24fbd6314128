"""The CEL expressions by which DeviceClasses and requests choose devices, run in this process.

A device is shown to an expression as Kubernetes shows it: `device.driver`, `device.attributes["domain"].name`,
`device.capacity["domain"].name`, `device.allowMultipleAllocations`; an unknown domain is an empty map. Of Kubernetes'
libraries there are quantities, versions, `lowerAscii`, `upperAscii` and `cel.bind`; not optional fields (`[?"x"]`). An
expression is compiled once. One that cannot be read, fails, or says neither true nor false is an error with its text:
a request by it gets nothing, which is what the kube-scheduler makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from kerf.model.kubernetes.devices import Attribute, SliceDevice
from kerf_api import quantity
from kerf_api.cel_library import cel

_DOMAINS: Final = re.compile(r"(?:attributes|capacity)\s*\[\s*(?:\"([^\"]+)\"|'([^']+)')\s*\]")
_MEMBERSHIP: Final = re.compile(r"\bin\s+device\.")
_BIND: Final = re.compile(r"\bcel\.bind\s*\(\s*(\w+)\s*,")
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+.*)?")
_BRACKETS: Final = {"(": ")", "[": "]", "{": "}"}
#: Quantities in thousandths: what CEL counts in has 64 bits.
_SCALE: Final = 1000


class UnreadableSelector(ValueError):
    """An expression that cannot be read or evaluated; the text says which, and why."""


def matches(expression: str, driver: str, device: SliceDevice) -> bool:
    """Whether a device of a driver is one that the expression is about. Raises UnreadableSelector."""
    program, names, domains = _compiled(expression)
    try:
        shown = _shown(driver, device, domains)
        context = cel.Context(variables={"device": shown}, functions={name: _FUNCTIONS[name] for name in names})
        answer = program.execute(context)
    except Exception as error:
        raise _unreadable(expression, f"fails on device {device.name} of {driver}: {error}") from error
    if not isinstance(answer, bool):
        raise _unreadable(expression, f"is neither true nor false for device {device.name} of {driver}")
    return answer


def _unreadable(expression: str, why: object) -> UnreadableSelector:
    return UnreadableSelector(f"CEL expression {expression.strip()[:120]!r} {str(why).splitlines()[0][:200]}")


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> tuple[Any, tuple[str, ...], frozenset[str]]:
    """The program, the functions of ours that it uses, and the domains that are empty maps if a device has none."""
    source = _without_bind(expression)
    try:
        program = cel.compile(source)
    except Exception as error:
        raise _unreadable(expression, f"cannot be read: {error}") from error
    names = tuple(name for name in _FUNCTIONS if re.search(rf"\b{name}\s*\(", source))
    # `"domain" in device.attributes` is to be false for a domain that the device lacks
    asked = set[str]() if _MEMBERSHIP.search(source) else {a or b for a, b in _DOMAINS.findall(source)}
    return program, names, frozenset(asked)


def _without_bind(expression: str) -> str:
    """`cel.bind(name, value, body)` as `[value].map(name, body)[0]`, which means the same."""
    while (found := _BIND.search(expression)) is not None:
        ends = _arguments(expression, found.end())
        if len(ends) != 2:
            raise _unreadable(expression, "cannot be read: cel.bind has three arguments")
        value, body = expression[found.end() : ends[0]], expression[ends[0] + 1 : ends[1]]
        rest = expression[ends[1] + 1 :]
        expression = f"{expression[: found.start()]}[{value}].map({found[1]}, {body})[0]{rest}"
    return expression


def _arguments(text: str, start: int) -> list[int]:
    """Where the arguments of a call end that begin here: at each comma, and at the bracket that closes the call."""
    ends, open_, quote = list[int](), list[str](), ""
    for place in range(start, len(text)):
        letter = text[place]
        if quote:
            quote = "" if letter == quote and text[place - 1] != "\\" else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _BRACKETS:
            open_.append(_BRACKETS[letter])
        elif open_ and letter == open_[-1]:
            open_.pop()
        elif letter in ",)" and not open_:
            ends.append(place)
            if letter == ")":
                break
    return ends


# --- what an expression sees --------------------------------------------------------------------------------------
def _shown(driver: str, device: SliceDevice, domains: frozenset[str]) -> dict[str, Any]:
    return {
        "driver": driver,
        "allowMultipleAllocations": device.allow_multiple_allocations,
        "attributes": _by_domain(driver, domains, {name: _value(own) for name, own in device.attributes.items()}),
        "capacity": _by_domain(driver, domains, {n: _quantity(str(own.value)) for n, own in device.capacity.items()}),
    }


def _by_domain(driver: str, domains: frozenset[str], own: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """A name without a domain has the driver's."""
    found: dict[str, dict[str, Any]] = {domain: {} for domain in sorted(domains)}
    for name, value in own.items():
        domain, slash, rest = name.partition("/")
        found.setdefault(domain if slash else driver, {})[rest if slash else name] = value
    return found


def _value(own: Attribute) -> object:
    if own.version is not None:
        return _version(own.version)
    known = (value for value in (own.whole, own.truth, own.text) if value is not None)
    return next(known, None)


# --- functions ----------------------------------------------------------------------------------------------------
def _quantity(text: str) -> dict[str, int]:
    return {"quantity": int(quantity.parse(text) * _SCALE)}


def _version(text: str) -> dict[str, list[Any]]:
    """A semantic version; a pre-release comes before its release."""
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a semantic version")
    parts = [[0, int(part), ""] if part.isdigit() else [1, 0, part] for part in (found[4] or "").split(".") if part]
    return {"version": [int(found[1]), int(found[2]), int(found[3]), 0 if parts else 1, parts]}


def _compared(one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    ((kind, a),), ((other_kind, b),) = one.items(), other.items()
    if kind != other_kind:
        raise ValueError(f"a {kind} cannot be compared with a {other_kind}")
    return int(a > b) - int(a < b)


def _is_quantity(text: str) -> bool:
    try:
        return bool(_quantity(text))
    except ValueError:
        return False


def _is_version(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "quantity": _quantity,
    "isQuantity": _is_quantity,
    "semver": _version,
    "isSemver": _is_version,
    "compareTo": _compared,
    "isGreaterThan": lambda one, other: _compared(one, other) > 0,
    "isLessThan": lambda one, other: _compared(one, other) < 0,
    "lowerAscii": str.lower,
    "upperAscii": str.upper,
}
