"""`python -m kerf_api.crds.reference FILE`: all kinds, field by field, as Markdown out of the definitions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from . import api_version, is_namespaced, kinds, load, schema

_HEAD: Final = """\
# API reference

Rendered by `make manifests` from the definitions (`api/kerf_api/crds/`), which are also what the API server checks. A
field that is marked with * has to be set where what it is part of is set. `[]` is each entry of a list,
`<key>` for each key of a map. What a rule with an ID is for, and how it is met, is in [rules](rules.md).
"""
#: By the keyword of the schema, how the bound reads.
_BOUNDS: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "maxLength": "at most {} characters",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
}


def markdown() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(line for kind in kinds() for line in _kind(kind))]).rstrip() + "\n"


def _kind(kind: str) -> Iterator[str]:
    names, whole = load(kind)["spec"]["names"], schema(kind)
    short = ", ".join(f"`{name}`" for name in names.get("shortNames", ()))
    yield f"## {kind}\n"
    yield f"{_line(whole.get('description', ''))}\n"
    scope = "namespaced" if is_namespaced(kind) else "cluster-scoped"
    yield f"`{api_version(kind)}`, {scope}{', for short ' + short if short else ''}.\n"
    for part in ("spec", "status"):
        if part in whole["properties"]:
            yield f"### {kind}: {part}\n"
            yield "| field | type | default | |\n|---|---|---|---|"
            yield from _rows(part, whole["properties"][part], required=False)
            yield ""


def _rows(path: str, field: Mapping[str, Any], *, required: bool) -> Iterator[str]:
    told = _told(field)
    if told or required or not path.endswith(("[]", ">")):
        yield f"| `{path}`{'*' if required else ''} | {_type(field)} | {_default(field)} | {told} |"
    needed = field.get("required", ())
    for name, inner in sorted(field.get("properties", {}).items()):
        yield from _rows(f"{path}.{name}", inner, required=name in needed)
    for inner, step in ((field.get("items"), "[]"), (field.get("additionalProperties"), ".<key>")):
        if isinstance(inner, Mapping) and _says_more(inner):
            yield from _rows(path + step, inner, required=False)


def _says_more(field: Mapping[str, Any]) -> bool:
    """Whether an entry has a description that its list or map does not."""
    return bool(field.keys() - {"type", "description"})


def _type(field: Mapping[str, Any]) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    inner = field.get("items") if field.get("type") == "array" else field.get("additionalProperties")
    if isinstance(inner, Mapping):
        of = _type(inner)
        return f"list of {of}" if field.get("type") == "array" else f"map to {of}"
    return str(field.get("type", "any"))


def _default(field: Mapping[str, Any]) -> str:
    return f"`{_cell(_plain(field['default']))}`" if "default" in field else ""


def _plain(value: Any) -> str:
    """A value as YAML would have it on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_plain(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_plain, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _told(field: Mapping[str, Any]) -> str:
    parts = [_line(field.get("description", ""))]
    if "enum" in field:
        parts.append("One of " + ", ".join(f"`{value}`" for value in field["enum"] if value != "") + ".")
    bounds = [words.format(field[keyword]) for keyword, words in _BOUNDS.items() if keyword in field]
    if bounds:
        parts.append(f"{', '.join(bounds).capitalize()}.")
    rules = [_line(rule["message"]) for rule in field.get("x-kubernetes-validations", ()) if "message" in rule]
    if rules:
        parts.append(f"Rules: {'; '.join(rules)}.")
    return _cell(" ".join(part for part in parts if part))


def _line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page to the file that is named."""
    (path,) = arguments if arguments is not None else sys.argv[1:]
    Path(path).write_text(markdown(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
