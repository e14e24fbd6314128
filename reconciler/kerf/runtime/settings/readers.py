"""How the text of a setting is read. A reader returns the value, or raises ValueError with what would be right."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from kerf.model.settings import FeatureGates
from kerf.runtime.leadership.leases import LeaseName
from kerf_api import durations

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
#: Whole numbers as Go reads them, which knows no blanks, no underscores and no digits of other scripts.
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
#: A bucket and a prefix of readable characters, without an empty or relative folder in it.
_KEY: Final = "(mrk-[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
_ALIAS: Final = "alias/[A-Za-z0-9/_-]{1,250}"
_ENCRYPTION: Final = re.compile(
    f"AES256|none|aws:kms(:dsse)?|{_KEY}|{_ALIAS}|arn:aws[a-z-]{{0,20}}:kms:[a-z0-9-]{{1,30}}:[0-9]{{12}}:(key/{_KEY}|{_ALIAS})"
)
_BUCKET: Final = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[A-Za-z0-9_-][A-Za-z0-9._=-]*+)*+/?")
_LABEL: Final = "[a-z0-9]++(?:-++[a-z0-9]++)*+"
#: A DNS subdomain, as the API server requires it of names, and how long it may be. Source: RFC 1123.
_OBJECT_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*+")
_LONGEST_NAME: Final = 253
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_GATES = {
    "NodeRepair": "node_repair",
    "ReservedCapacity": "reserved_capacity",
    "SpotToSpotConsolidation": "spot_to_spot_consolidation",
    "NodeOverlay": "node_overlay",
    "StaticCapacity": "static_capacity",
    "CapacityBuffer": "capacity_buffer",
}
_PROVIDER_GATES = frozenset({"NodeClassCEL"})
#: Names that are accepted here and mean nothing: any more, or because they are set elsewhere.
_GATES_WITHOUT_EFFECT = frozenset({"Drift", *_PROVIDER_GATES})


class SeveralProblems(ValueError):
    """What is wrong with one text, a line each that names its place in it."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


def text(value: str) -> str:
    return value


def object_name(value: str) -> str:
    if len(value) > _LONGEST_NAME or not _OBJECT_NAME.fullmatch(value):
        raise ValueError("must be a DNS name of small letters, digits, - and ., of 253 characters at most")
    return value


def boolean(value: str) -> bool:
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise ValueError("must be true or false")


def whole(lowest: int, highest: int | None = None) -> Callable[[str], int]:
    def read(value: str) -> int:
        if not _WHOLE.fullmatch(value):
            raise ValueError("must be a whole number")
        number = int(value)
        if number < lowest or (highest is not None and number > highest):
            raise ValueError(f"must be at least {lowest}" if highest is None else f"must be {lowest} to {highest}")
        return number

    return read


def share(value: str) -> float:
    if not _NUMBER.fullmatch(value):
        raise ValueError("must be a number")
    number = float(value)
    if not 0 <= number < 1:
        raise ValueError("must be at least 0 and less than 1")
    return number


def number(most: int, unit: str = "") -> Callable[[str], float]:
    """A reader of numbers from 0 to `most`, of a unit if they have one."""

    def read(value: str) -> float:
        if not _NUMBER.fullmatch(value):
            raise ValueError(f"must be a number{unit and f' of {unit}'}")
        found = float(value)
        if not 0 <= found <= most:
            raise ValueError(f"must be at least 0 and at most {most}{unit and f' {unit}'}")
        return found

    return read


#: As Go writes that no time passes.
_NO_TIME = ("0", "0s")


def duration(lowest: timedelta = timedelta(milliseconds=1)) -> Callable[[str], timedelta]:
    def read(value: str) -> timedelta:
        found = timedelta(0) if value in _NO_TIME and not lowest else durations.parse_go(value)
        if found is None:
            raise ValueError("must be a duration such as 300ms, 10s or 1h30m")
        if found < lowest:
            raise ValueError(f"must be at least {durations.go_text(lowest)}")
        return found

    return read


def one_of(*allowed: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"must be one of {', '.join(a for a in allowed if a)}")
        return value

    return read


def some_of(*allowed: str) -> Callable[[str], tuple[str, ...]]:
    """Words by comma, or `all` of them; in the order in which they are allowed."""

    def read(value: str) -> tuple[str, ...]:
        words = {part.strip() for part in value.split(",") if part.strip()}
        if unknown := sorted(words - {*allowed, "all"}):
            raise ValueError(f"must be some of {', '.join(allowed)}, or all; not {', '.join(unknown)}")
        return tuple(word for word in allowed if word in words or "all" in words)

    return read


def url(value: str) -> str:
    try:
        parts = urlsplit(value)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its text has a part of the password
        valid = False
    if value and not valid:
        raise ValueError("must be a URL with scheme and host, and its password percent-encoded")
    return value


def bucket(value: str) -> str:
    """The address of a folder in a bucket. Source: S3 user guide, "General purpose bucket naming rules"."""
    if value and not _BUCKET.fullmatch(value):
        raise ValueError("must be s3://BUCKET/PREFIX or s3://BUCKET")
    return value


def prefix(address: str) -> str:
    """The prefix of the address of a folder in a bucket, without slashes at its ends; empty for the whole bucket."""
    return address.removeprefix("s3://").partition("/")[2].strip("/")


def encryption(value: str) -> str:
    """The encryption of objects in S3, or a KMS key. Source: S3 API reference, PutObject, x-amz-server-side-encryption;
    KMS API reference, "Key identifiers"."""
    if not _ENCRYPTION.fullmatch(value):
        keys = "the ID, ARN or alias of a KMS key such as alias/records"
        raise ValueError(f"must be AES256, aws:kms, aws:kms:dsse, {keys}, or none")
    return value


def base64_text(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("must be base64") from None
    return value


def leases(value: str) -> tuple[LeaseName, ...]:
    return tuple(LeaseName.parse(part) for part in filter(None, (p.strip() for p in value.split(","))))


def sinks(value: str) -> tuple[str, ...]:
    """Where lines go: `stdout`, `stderr` and paths of files, by comma."""
    found = tuple(part.strip() for part in value.split(","))
    if not all(found):
        raise ValueError("must be stdout, stderr or paths of files, by comma")
    return found


def millicores(value: str) -> int:
    """As Karpenter has them: nothing, or less, counts as one core."""
    number = whole(-(2**63))(value)
    return number if number > 0 else 1000


def _switches(value: str, known: Iterable[str], elsewhere: Iterable[str] = ()) -> dict[str, bool]:
    """`Name=true,Name=false`; names `elsewhere` are passed over. Raises SeveralProblems."""
    found, problems = dict[str, bool](), list[str]()
    for part in filter(None, (p.strip() for p in value.split(","))):
        name, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals or (text not in _TRUE and text not in _FALSE):
            problems.append(f"{part!r} is not of the form Name=true or Name=false")
        elif name in known:
            found[name] = text in _TRUE
        elif name not in elsewhere:
            problems.append(f"no gate is named {name!r}; there are {', '.join(sorted(known))}")
    if problems:
        raise SeveralProblems(problems)
    return found


def gates(value: str) -> FeatureGates:
    return FeatureGates(**{_GATES[name]: on for name, on in _switches(value, _GATES, _GATES_WITHOUT_EFFECT).items()})


def gates_text(value: FeatureGates) -> str:
    """What `gates` would read, every gate named."""
    return ",".join(f"{name}={str(getattr(value, field)).lower()}" for name, field in sorted(_GATES.items()))


def provider_gates(value: str) -> tuple[str, ...]:
    """The AWS provider's, those that are open; written as they are read: `Name=true`."""
    return tuple(f"{name}=true" for name, on in sorted(_switches(value, _PROVIDER_GATES).items()) if on)
