"""The nearest valid value: what someone probably meant.

A refusal is only half of the help. For names it is the closest known name; for the API's little languages (durations,
percentages, sizes, label values) it is the same intention in the form of the API. Every function returns None when it
has no good idea, because a wild guess is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from typing import Any, Final

from kerf_api import labels

#: Well-known labels that a NodePool may name.
USABLE_LABELS: Final = labels.WELL_KNOWN - {labels.NODEPOOL}

_DURATION = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*+(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?"
    r"|w|weeks?)?\s*",
    re.ASCII | re.IGNORECASE,
)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*+([kmgtKMGT]?)(i?)[bB]?\s*", re.ASCII)
_LARGEST_GIB: Final = 59000
_AMOUNT = re.compile(r"([+-]?)(\d++\.?\d*|\.\d+)(%?)", re.ASCII)
_LONGEST_NUMBER: Final = 40
_WHOLE_PERCENT: Final = 100
#: Names that are less alike are different names; a beginning of fewer letters says nothing.
_ALIKE: Final = 0.7
_TELLING: Final = 3


def name(word: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like `word`, small and capital letters aside."""
    names = sorted(known)
    same = [candidate for candidate in names if _bare(candidate) == _bare(word)]
    if same:
        return same[0]
    lower = {candidate.lower(): candidate for candidate in names}
    close = get_close_matches(word.lower(), sorted(lower), n=1, cutoff=0.55)
    return lower[close[0]] if close else None


def label(key: str, known: Iterable[str]) -> str | None:
    """The known key whose name looks like that of `key`: the same name in any domain, else a similar one in its own.

    Domains are not compared: two keys of one long domain look alike whatever their names are. None where several are
    equally similar.
    """
    domain, _, last = key.rpartition("/")
    names = sorted(known)
    same = [one for one in names if _bare(one.rpartition("/")[2]) == _bare(last)]
    if same:
        return next((one for one in same if one.startswith(f"{domain}/")), same[0])
    own = [one for one in names if one.startswith(f"{domain}/")]
    likeness = {one: _likeness(last, one.rpartition("/")[2]) for one in own}
    best = [one for one in own if likeness[one] == max(likeness.values())]
    return best[0] if len(best) == 1 and likeness[best[0]] >= _ALIKE else None


def _likeness(word: str, other: str) -> float:
    """From 0 to 1, without the first parts that both names share; 1 where one of the two begins with the other."""
    one, two = word.lower().split("-"), other.lower().split("-")
    while len(one) > 1 and len(two) > 1 and one[0] == two[0]:
        del one[0], two[0]
    short, long = sorted(("-".join(one), "-".join(two)), key=len)
    if len(short) >= _TELLING and long.startswith(short):
        return 1.0
    return SequenceMatcher(None, short, long).ratio()


def meant(word: str, known: Iterable[str]) -> str:
    """The end of a complaint about a word that is none of the known ones; "" when none of them looks like it."""
    close = name(word, known)
    return f"; did you mean {close}?" if close else ""


def label_hint(key: str, usable: frozenset[str] = USABLE_LABELS) -> str:
    """The usable label that looks most like a reserved key, as a question; or what to do instead."""
    if key == labels.HOSTNAME or key in labels.WELL_KNOWN:
        return "remove it"
    close = label(key, usable)
    return f"did you mean {close}?" if close else "use a domain of your own, such as example.com"


def duration(text: Any) -> str | None:
    """`1d` → `24h`, `1.5h` → `90m`, `30` → `30s`, `never` → `Never`."""
    if isinstance(text, str) and text.strip().lower() in ("never", "none", "off"):
        return "Never"
    seconds = _seconds(str(text)) if isinstance(text, (str, int, float)) and not isinstance(text, bool) else None
    if seconds is None:
        return None
    for unit in "hm":
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{seconds}s"


def window(text: Any) -> str | None:
    """As `duration`, in hours and minutes only, rounded up to a minute."""
    found = duration(text)
    if found is None or found == "Never":
        return None
    seconds = int(found[:-1]) * _SECONDS[found[-1]]
    return found if seconds % 60 == 0 and seconds else f"{max(1, -(-seconds // 60))}m"


def grace(text: Any) -> str | None:
    """As `duration`, without `Never`: there the field is simply left out."""
    found = duration(text)
    return None if found == "Never" else found


def budget_nodes(value: Any) -> str | None:
    """`150%` → `100%`, `10 %` → `10%`, `0.1` → `10%`, `5` → `"5"`."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    found = re.fullmatch(r"\s*(\d{1,12})(?:\.\d+)?\s*+(%?)\s*", str(value), re.ASCII)
    if not found:
        return None
    if found[2]:
        return f"{min(100, int(found[1]))}%"
    if "." in str(value) and float(value) < 1:
        return f"{round(float(value) * 100)}%"
    return found[1]


def price(value: Any) -> str | None:
    """`$0.05` → `0.05`, `.5` → `0.5`, `0,05` → `0.05`; None for what is below 0."""
    found = _AMOUNT.fullmatch(_number_text(value))
    return _amount(found[2]) if found and not found[3] and found[1] != "-" else None


def price_adjustment(value: Any) -> str | None:
    """`10%` → `+10%`, `5` → `+5`, `-.5%` → `-0.5%`, `-150%` → `-100%`."""
    found = _AMOUNT.fullmatch(_number_text(value))
    if not found:
        return None
    sign, number, percent = found[1] or "+", _amount(found[2]), found[3]
    if sign == "-" and percent and float(number) >= _WHOLE_PERCENT:
        return "-100%"
    return f"{sign}{number}{percent}"


def _number_text(value: Any) -> str:
    """A number, or a text of bearable length, without what people put around prices."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or len(str(value)) > _LONGEST_NUMBER:
        return ""
    return re.sub(r"[\s$]|USD", "", str(value)).replace(",", ".")


def _amount(number: str) -> str:
    whole, _, fraction = number.partition(".")
    return f"{whole or 0}.{fraction}" if fraction else whole or "0"


def volume_size(value: Any) -> str | None:
    """`100GB` → `100G`, `100` → `100Gi`, `512Mi` → `1Gi`, `18Ti` → `18432Gi`."""
    found = _SIZE.fullmatch(str(value)) if isinstance(value, (str, int)) and not isinstance(value, bool) else None
    if not found or float(found[1]) == 0 or len(found[1]) > 9:
        return None
    number, scale, binary = float(found[1]), found[2].upper(), found[3] or not found[2]
    gigas = number * {"": 1.0, "K": 1e-6, "M": 1e-3, "G": 1.0, "T": 1024.0 if binary else 1000.0}[scale]
    return f"{min(_LARGEST_GIB, max(1, -(-round(gigas * 1000) // 1000)))}{'Gi' if binary else 'G'}"


def label_value(value: Any) -> str | None:
    """The value with what labels may not hold replaced by dashes, or the text of a number or boolean."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (str, int, float)):
        return None
    cleaned = re.sub(r"[^A-Za-z0-9_.-]+", "-", str(value))[:63]
    return re.sub(r"^[-_.]+|[-_.]+$", "", cleaned) or None


def label_key(value: Any) -> str | None:
    """The key with what keys may not hold replaced by dashes, the domain in lower case."""
    if not isinstance(value, str):
        return None
    prefix, slash, rest = value.strip().partition("/")
    last = label_value(rest.replace("/", "-") if slash else prefix)
    domain = re.sub(r"[^a-z0-9.-]+", "-", prefix.lower()).strip("-.") if slash else ""
    return (f"{domain}/{last}" if domain else last) if last else None


def _seconds(text: str) -> int | None:
    total, place = 0.0, 0
    while place < len(text):
        found = _DURATION.match(text, place)
        if not found or len(found[1]) > 12:
            return None
        unit = (found[2] or "s").lower()
        total += float(found[1]) * (0.001 if unit.startswith(("ms", "milli")) else _SECONDS[unit[0]])
        place = found.end()
    return -(-round(total * 1000) // 1000) if text else None


def _bare(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())


#: For each field whose form is a pattern: what is allowed, in words, and how to find the nearest valid value.
FORMS: Final[Mapping[str, tuple[str, Callable[[Any], str | None]]]] = {
    "expireAfter": ("a duration of whole hours, minutes and seconds such as 720h or 1h30m, or Never", duration),
    "consolidateAfter": ("a duration of whole hours, minutes and seconds such as 30s or 1h30m, or Never", duration),
    "terminationGracePeriod": ("a duration of whole hours, minutes and seconds such as 30m or 48h", grace),
    "duration": ("a duration of whole hours and minutes such as 8h, 30m or 1h30m", window),
    "nodes": ('a quoted number such as "5", or a percentage from 0% to 100%', budget_nodes),
    "price": ("a number of dollars an hour without a sign, such as 0.05", price),
    "priceAdjustment": (
        "an amount or a percentage with its sign, such as +0.01, -0.005, +10% or -15%; at least -100%",
        price_adjustment,
    ),
    "volumeSize": ("a whole number with Gi (1 to 59000), G (1 to 64000), Ti or T (to 64), such as 100Gi", volume_size),
    "key": ("a label name such as team or example.com/team", label_key),
    "value": ("letters, digits, dashes, underscores and dots, beginning and ending with a letter or digit", label_key),
    "labels": (
        "at most 63 letters, digits, dashes, underscores and dots, with a letter or digit at both ends",
        label_value,
    ),
}
