"""What an unquoted word of YAML means to a cluster.

kubectl, Helm and Argo CD read YAML through go-yaml, which follows the old rules: `yes`, `on` and `n` are booleans and
`010` is eight. It does so without the oddest of them: `1:30` is a text, and so is a date. The JSON that is made of it
on the way knows only one kind of number, so that `10.0` arrives as 10. Reading a manifest by any other rules would
praise what the cluster refuses.
"""

from __future__ import annotations

import re
from typing import Any, Final

TRUE: Final = ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE")
FALSE: Final = ("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE")
NULL: Final = ("", "~", "null", "Null", "NULL")
_INFINITY: Final = {f"{sign}.{word}": float(f"{sign}inf") for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")}
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(TRUE, True),
    **dict.fromkeys(FALSE, False),
    **dict.fromkeys(NULL, None),
    **_INFINITY,
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
#: Only words that begin with one of these can be anything but a text.
_HINTS: Final = frozenset("0123456789+-.yYnNtTfFoO~")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_BASES: Final = (16, 2, 8, 10)
#: Longer numbers are no numbers that a cluster could hold, and slow to read.
_LONGEST_NUMBER: Final = 320


def meaning(word: str) -> Any:
    """An unquoted word's value: None, a bool, an int, a float or the word itself."""
    if word and word[0] not in _HINTS and word not in _WORDS:
        return word
    if word in _WORDS:
        return _WORDS[word]
    return _number(word)


def tagged(word: str, tag: str) -> Any:
    """The value of a word under an explicit tag; tags that are not YAML's own are passed over, as go-yaml does.

    Raises ValueError when the word is nothing of the kind that the tag names.
    """
    name = tag.removeprefix("tag:yaml.org,2002:").removeprefix("!!") if tag.startswith(("tag:yaml.org", "!!")) else ""
    if name not in _TAGS:
        return word
    value = float(word) if name == "float" and _FLOAT.fullmatch(word) else meaning(word)
    if not isinstance(value, _TAGS[name]) or (name == "int" and isinstance(value, bool)):
        raise ValueError(f"{word!r} is no {name}")
    return value


_TAGS: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}


def key_text(value: Any) -> str | None:
    """What a key that is no text becomes on its way to JSON; None when it cannot become anything."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _number(word: str) -> Any:
    plain = word.replace("_", "")
    if len(plain) > _LONGEST_NUMBER:
        return word
    if found := _INTEGER.fullmatch(plain):
        digits, base = next((text, base) for text, base in zip(found.groups()[1:], _BASES, strict=True) if text)
        return int(found[1] + digits, base)
    if not _FLOAT.fullmatch(plain):
        return word
    value = float(plain)
    if value in (float("inf"), float("-inf")):
        return word
    return int(value) if value.is_integer() else value
