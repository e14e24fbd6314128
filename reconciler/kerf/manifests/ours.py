"""Which manifests are Kerf's to judge, and documents that hold such manifests where no cluster looks for them."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, Final

from kerf.manifests.nodes import Node
from kerf_api import crds, labels
from kerf_api.lint import Problem
from kerf_api.lint.problem import at, shown

#: All kinds of these groups are ours to judge, also those of versions long gone.
_GROUPS: Final = (labels.GROUP, labels.AWS_GROUP)
#: What a template with one of our kinds, or with a plain part of one, has in it.
_MENTIONED: Final = frozenset({*_GROUPS, *(crds.api_version(kind).partition("/")[0] for kind in crds.kinds())})
#: A group that is this near to one of ours is a slip of the pen and no other product's.
_NEAR: Final = 0.75
_LONGEST_GROUP: Final = 253


def mentions_ours(data: bytes) -> bool:
    """Whether a text that cannot be read may hold manifests for us to judge: it names one of our groups."""
    return any(group.encode() in data for group in _MENTIONED)


def is_ours(version: Any, kind: Any) -> bool:
    """Whether a manifest is for us to judge: of our groups, or of one of our kinds under what looks like our group."""
    group = version.partition("/")[0] if isinstance(version, str) else ""
    if group in _GROUPS:
        return True
    if not isinstance(kind, str) or kind not in crds.kinds():
        return False
    if "." not in group or group.split(".")[-2:] == ["x-k8s", "io"]:
        return True
    return len(group) <= _LONGEST_GROUP and any(SequenceMatcher(None, group, ours).ratio() >= _NEAR for ours in _GROUPS)


def misplaced(node: Node) -> Iterator[tuple[Node, Problem]]:
    """What keeps kubectl from finding manifests of ours in a document: each problem with the value that it is about.

    Other documents may be what they like: patches and values of charts are lists and texts, too.
    """
    value = node.value
    if isinstance(value, list):
        if _hold_ours(value):
            hint = "write them as documents with --- between them, or as items of a List"
            yield node, at((), "KERF-SCHEMA-TYPE", "error", "a list of manifests is no manifest", hint)
    elif isinstance(value, str):
        if "apiVersion" in value and mentions_ours(value.encode()):
            hint = "comments begin with #, and every key ends with a colon and a space"
            yield node, at((), "KERF-SCHEMA-TYPE", "error", "this document is a text and no manifest", hint)
    elif isinstance(value, dict) and value.get("kind") == "List" and _hold_ours(value.get("items")):
        version = value.get("apiVersion")
        if version != "v1":
            message = f"apiVersion of the List is {'missing' if version is None else f'{shown(version)}, not v1'}"
            yield node, at(("apiVersion",), "KERF-SCHEMA-VERSION", "error", message, "write apiVersion: v1")


def _hold_ours(items: Any) -> bool:
    rows = items if isinstance(items, list) else []
    return any(isinstance(one, dict) and is_ours(one.get("apiVersion"), one.get("kind")) for one in rows)
