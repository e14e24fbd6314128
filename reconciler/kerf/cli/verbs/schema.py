"""`kerf schema`: the JSON Schema of a kind, for editors and for validators such as kubeconform.

Made from the CustomResourceDefinitions. It refuses unknown fields and keeps descriptions and defaults, which editors
show; what the definitions state in CEL it cannot say, so that `kerf validate` finds more.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kerf.cli.parser import Parser
from kerf.cli.terminal import say

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_KEPT: Final = ("description", "default")


def main(arguments: Sequence[str]) -> int:
    """Print one kind's schema, or write those of all kinds into a folder; 2 for a kind that is not known."""
    from kerf_api import crds

    parser = Parser("kerf schema", description="The JSON Schema of a kind, for editors and kubeconform.")
    parser.add_argument("kind", nargs="?", metavar="KIND", help=", ".join(crds.kinds()))
    parser.add_argument("--all", metavar="DIR", help="write every kind's as DIR/GROUP/KIND_VERSION.json")
    asked = parser.parse_args(arguments)
    if (asked.kind is None) == (asked.all is None):
        parser.error("name a kind, or a folder with --all")
    if asked.all is not None:
        return _write_all(Path(asked.all))
    kind = {name.lower(): name for name in crds.kinds()}.get(asked.kind.lower())
    if kind is None:
        say(f"kerf schema: {_unknown(asked.kind)}", err=True)
        return 2
    sys.stdout.write(_text(kind))
    return 0


def _unknown(kind: str) -> str:
    from kerf_api import crds
    from kerf_api.lint import nearest

    close = nearest.name(kind, crds.kinds())
    known = f"did you mean {close}?" if close else f"known are {', '.join(crds.kinds())}"
    return f"{kind} is no kind that is known here; {known}"


def _write_all(folder: Path) -> int:
    from kerf_api import crds

    try:
        for kind in crds.kinds():
            path = folder / file_name(kind)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_text(kind), encoding="utf-8")
            print(path)
    except OSError as error:
        say(f"kerf schema: {error.filename}: {error.strerror}", err=True)
        return 2
    return 0


def _text(kind: str) -> str:
    return json.dumps(schema(kind), indent=2) + "\n"


def file_name(kind: str) -> str:
    """Where kubeconform looks: `karpenter.sh/nodepool_v1.json`."""
    from kerf_api import crds

    group, _, version = crds.api_version(kind).partition("/")
    return f"{group}/{kind.lower()}_{version}.json"


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a kind. Raises KeyError for a kind that is not ours."""
    from kerf_api import crds
    from kerf_api.lint.shape.translate import translated

    source = crds.schema(kind)
    body = translated(source)
    _describe(body, source)
    fields: dict[str, Any] = body["properties"]
    fields["apiVersion"] = {"type": "string", "const": crds.api_version(kind)}
    fields["kind"] = {"type": "string", "const": kind}
    fields["metadata"] = _metadata()
    required = dict.fromkeys(("apiVersion", "kind", "metadata", *body.get("required", ())))
    head = {"$schema": DRAFT, "$id": f"https://kerf.sh/schemas/{file_name(kind)}", "title": kind}
    return {**head, **body, "required": list(required)}


def _metadata() -> dict[str, Any]:
    """An object's own fields; what the API server writes there is left to it."""
    from kerf_api.lint.shape.translate import METADATA_FIELDS

    texts = {"type": ["object", "null"], "additionalProperties": {"type": "string"}}
    fields: dict[str, Any] = {name: {} for name in METADATA_FIELDS}
    named = {"name": {"type": "string"}, "generateName": {"type": "string"}, "labels": texts, "annotations": texts}
    either = [{"required": ["name"]}, {"required": ["generateName"]}]
    return {"type": "object", "properties": {**fields, **named}, "additionalProperties": False, "anyOf": either}


def _describe(result: dict[str, Any], source: Mapping[str, Any]) -> None:
    """Add what the translation leaves out for people; remove the word that only our own validator knows."""
    result.pop("uniqueKeys", None)
    result.update({word: source[word] for word in _KEPT if word in source})
    for child, origin in _below(result, source):
        _describe(child, origin)


def _below(result: Mapping[str, Any], source: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], Mapping[str, Any]]]:
    for name, part in source.get("properties", {}).items():
        yield result["properties"][name], part
    for word in ("items", "additionalProperties"):
        if isinstance(source.get(word), Mapping) and isinstance(result.get(word), dict):
            yield result[word], source[word]
