"""From the API server's dialect of OpenAPI to JSON Schema that `jsonschema` understands.

A CustomResourceDefinition uses a few words of its own (`x-kubernetes-int-or-string`, list types, preserved unknown
fields), checks number formats, drops unknown fields, and writes patterns for Go's RE2. What comes out here says the
same in plain JSON Schema, except that unknown fields are errors: someone who misspells a field wants to hear of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from kerf_api import crds

#: Keywords that a validator of JSON Schema judges as the API server does.
BOUNDS: Final = (
    "enum",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
)
_COPIED: Final = (*BOUNDS, "required")
_BOUNDS: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
#: The API server knows these of every object; deeper checks of metadata are its own business.
METADATA_FIELDS: Final = (
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
#: In metadata the API server reads null as if nothing were there, which templates make much use of.
_TEXT: Final = {"type": ["string", "null"]}
_NUMBER: Final = {"type": ["integer", "null"]}
_FLAG: Final = {"type": ["boolean", "null"]}
_TEXTS: Final = {"type": ["object", "null"], "additionalProperties": _TEXT}
#: The texts of an owner have a rule of their own (KERF-META-104).
_OWNER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        **{name: {} for name in ("apiVersion", "kind", "name", "uid")},
        **dict.fromkeys(("controller", "blockOwnerDeletion"), _FLAG),
    },
    "additionalProperties": False,
}
_METADATA: Final[dict[str, Any]] = {
    "type": ["object", "null"],
    "properties": {
        **{name: {} for name in METADATA_FIELDS},
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"), _TEXT),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        "finalizers": {"type": ["array", "null"], "items": _TEXT},
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TEXT),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _NUMBER),
        "ownerReferences": {"type": ["array", "null"], "items": _OWNER},
    },
    "additionalProperties": False,
}


@cache
def json_schema(kind: str) -> Mapping[str, Any]:
    """The JSON Schema of a kind. Raises KeyError for a kind that is not ours."""
    schema = translated(crds.schema(kind))
    schema["properties"]["metadata"] = _METADATA
    return schema


def translated(schema: Mapping[str, Any]) -> dict[str, Any]:
    """One schema and all below it, in the new dialect."""
    result: dict[str, Any] = {word: schema[word] for word in _COPIED if word in schema}
    if schema.get("type"):
        result["type"] = [schema["type"], "null"] if schema.get("nullable") else schema["type"]
    if schema.get("x-kubernetes-int-or-string"):
        result.update(type=["integer", "string"], minimum=_BOUNDS["int64"][0], maximum=_BOUNDS["int64"][1])
    if "pattern" in schema and schema.get("type") != "array":
        result["pattern"] = schema["pattern"]
    _formats(schema, result)
    _lists(schema, result)
    _objects(schema, result)
    return result


def _formats(schema: Mapping[str, Any], result: dict[str, Any]) -> None:
    bounds = _BOUNDS.get(schema.get("format", ""))
    if bounds:
        result["minimum"] = max(bounds[0], schema.get("minimum", bounds[0]))
        result["maximum"] = min(bounds[1], schema.get("maximum", bounds[1]))
    if schema.get("format") == "date-time":
        result["format"] = "date-time"


def _lists(schema: Mapping[str, Any], result: dict[str, Any]) -> None:
    if "items" in schema:
        result["items"] = translated(schema["items"])
    if schema.get("x-kubernetes-list-type") == "set":
        result["uniqueItems"] = True
    if schema.get("x-kubernetes-list-type") == "map":
        result["uniqueKeys"] = schema["x-kubernetes-list-map-keys"]


def _objects(schema: Mapping[str, Any], result: dict[str, Any]) -> None:
    if "properties" in schema:
        result["properties"] = {name: translated(part) for name, part in schema["properties"].items()}
        result["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    elif isinstance(schema.get("additionalProperties"), Mapping):
        result["additionalProperties"] = translated(schema["additionalProperties"])


def python_pattern(pattern: str) -> str:
    """An RE2 pattern for Python's `re` with the ASCII flag: `$` is the end of the text, not before a last newline."""
    result, escaped, in_class = "", False, False
    for letter in pattern:
        result += r"\Z" if letter == "$" and not escaped and not in_class else letter
        in_class = not escaped and (letter == "[" or (in_class and letter != "]"))
        escaped = letter == "\\" and not escaped
    return result
