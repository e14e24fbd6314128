"""The objects in files and folders that a scenario or `--nodepools` names. Errors state file, line and column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kerf.cli.arguments import Mistake
from kerf.cli.gathering import sources
from kerf.cli.gathering.sources import Source
from kerf.cli.verbs.simulation import shapes
from kerf.manifests import documents
from kerf.manifests.documents import Document
from kerf.manifests.nodes import Node, Place, Unreadable
from kerf.simulating.reading import Path, missing
from kerf_api.lint.reading.stored import stored

_TWICE: Final = "KERF-FILE-TWICE"


#: Called with the place and the object.
Unused = Callable[[str, Mapping[str, Any]], None]


def of(path: str, unused: Unused = lambda *_: None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each object of a kind that a simulation uses, with its place `file:line`; `unused` gets the others.

    Raises Mistake.
    """
    if path == sources.STDIN:
        raise Mistake("- is standard input, which is not possible here; give a file or folder")
    try:
        found = [row for source in sources.find([path]) for row in _of_file(source)]
    except sources.NotFound as error:
        raise Mistake(str(error)) from error
    if not found:
        raise Mistake(f"{path}: there is no object in it; add one, or remove the path")
    for name, node in found:
        where = f"{name}:{node.start.line}"
        if (used := _used(name, node)) is not None:
            yield where, used
        else:
            unused(where, node.value)


def only_document(name: str, data: bytes) -> Node:
    """The only document of a file. Raises Mistake."""
    found = [_node(name, one) for one in documents.read(data)]
    if not found:
        raise _mistake(name, Place(1, 1), "the file is empty; write a scenario (--schema prints its fields)")
    if len(found) > 1:
        raise _mistake(name, found[1].start, "a second YAML document begins here; a scenario is one document")
    return found[0]


def place(node: Node, path: Path) -> Place:
    """The place of the value at a path, or of the last part of the path that exists: of a field its name."""
    found = node.start
    for step in path:
        below, key = node.below.get(step), node.keys.get(str(step))
        if below is None:
            return found
        node, found = below, key.start if key is not None else below.start
    return found


def named(manifest: Mapping[str, Any]) -> str:
    """Kind and name of an object in messages."""
    meta = manifest.get("metadata")
    return f"{manifest['kind']} {meta.get('name', '') if isinstance(meta, Mapping) else ''}".rstrip()


def _of_file(source: Source) -> Iterator[tuple[str, Node]]:
    """The objects of a file, of a list each of its items. Raises Mistake."""
    try:
        data = source.read()
    except OSError as error:
        raise Mistake(f"{source.name}: {error.strerror or error}") from error
    for document in documents.read(data):
        node = _node(source.name, document)
        items = node.below.get("items")
        for one in items.below.values() if items is not None and isinstance(items.value, list) else [node]:
            yield source.name, one


def _node(name: str, document: Document | Unreadable) -> Node:
    """Raises Mistake for a document that cannot be read, or has a key twice: the first value would have no effect."""
    if isinstance(document, Unreadable):
        hint = f"; {document.hint}" if document.hint else ""
        raise _mistake(name, document.place, f"{document.message}{hint}")
    for oddity in document.oddities:
        if oddity.rule == _TWICE:
            raise _mistake(name, oddity.place, f"{oddity.message}; remove one of the two")
    return document.node


def _used(name: str, node: Node) -> Mapping[str, Any] | None:
    """An object as it is stored; None for a kind that a simulation does not use. Raises Mistake for a fault."""
    value = node.value
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else "a single value"
        raise _mistake(
            name, node.start, f"this is {kind}, no object of Kubernetes; write a map with apiVersion and kind"
        )
    if "kind" not in value:
        words = "this is a scenario, not an object of Kubernetes; do not list it here"
        other = (
            "this is no object of Kubernetes: it has no kind; remove the file from the list, or add apiVersion and kind"
        )
        raise _mistake(name, node.start, words if "assertions" in value else other)
    if shapes.is_unknown(value):
        raise _mistake(name, place(node, ("kind",)), missing("kind", str(value["kind"]), shapes.USED))
    if value["kind"] not in shapes.USED or shapes.is_foreign(value):
        return None
    found: Mapping[str, Any] = stored(value)
    for steps, words in shapes.faults(found):
        where = ".".join(map(str, steps))
        raise _mistake(name, place(node, steps), f"{shapes.refused(steps, named(value))}: {where}: {words}")
    return found


def _mistake(name: str, where: Place, words: str) -> Mistake:
    return Mistake(f"{name}:{where.line}:{where.column}: {words}")
