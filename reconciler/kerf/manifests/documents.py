"""From the bytes of a file to its YAML documents, each by itself: a fault in one hides nothing in the next.

JSON is read by the same parser, so that its problems have places too. What cannot be read becomes an `Unreadable` with
the line and column of the first error. Templates of Helm and its kind are no YAML yet; they are
recognised and named as what they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from kerf.manifests.nodes import Builder, Node, Oddity, Place, Unreadable
from kerf_api.lint.problem import shown
from kerf_api.lint.reading import placeholders
from kerf_api.lint.reading.placeholders import Placeholder

#: The API server accepts three mebibytes at a time; whole releases rendered into one file are larger.
LARGEST: Final = 64 * 1024 * 1024
_LOADER: Final[Any] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_MARKER = re.compile(r"^---(?=\s|\Z)", re.MULTILINE)
_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\r\n]*+|---)*+")
_DIRECTIVES = re.compile(r"(?:\s++|[#%][^\r\n]*+)*+")
_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PAIR = re.compile(r"(?<!\\)((?:\\\\)*+)\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)
_JSON = re.compile(r"\s*[\[{]")
_SPACES = re.compile(r"\s*+")
#: Values of one long line are shown at this column, so that the text of all of them stays as long as the line.
_DEEPEST_INDENT: Final = 200
#: A byte order mark at the beginning of a document that is not the first of its file: files were joined.
_MARK = re.compile(r"(---[ \t]*(?:\r\n|[\r\n]))\ufeff")
#: Templates that are no YAML wherever they stand.
_ANYWHERE: Final = ("{{", "%{", "{%", "{#", "<%")
_UNCLOSED: Final = "found unexpected end of stream"
_WORDS: Final = {
    "mapping values are not allowed in this context": (
        "a second colon makes no sense here",
        "put the value in quotes, or indent it under its key",
    ),
    "did not find expected key": (
        "a key of the map above is expected here",
        "check the indentation of this line, and for quotes that are not closed",
    ),
    "did not find expected '-' indicator": (
        "another entry of the list above, beginning with -, is expected here",
        "check the indentation of this line",
    ),
    "did not find expected ',' or ']'": ("the list in brackets above is not closed", "add , or ]"),
    "did not find expected ',' or '}'": ("the map in braces above is not closed", "add , or }"),
    "did not find expected node content": ("a value is expected here", ""),
    "could not find expected ':'": ("the key above has no colon", "write key: value"),
    _UNCLOSED: ("the quotes that are opened here are never closed", ""),
    "found unknown escape character": (
        "this is no escape that a text in double quotes may contain",
        r"write \\ for a backslash, or use single quotes",
    ),
    "did not find expected <document start>": ("the document ends above", "begin a new one with ---"),
}


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document that is not empty, and what is odd about how it is written."""

    node: Node
    oddities: tuple[Oddity, ...]


def read(data: bytes) -> Iterator[Document | Unreadable]:
    """The documents of a file in their order, and in the place of a document what kept it from being read."""
    try:
        text = decoded(data)
    except Unreadable as failure:
        yield failure
        return
    for part, first_line in _parts(text):
        if not _BLANK.fullmatch(part):
            yield from _documents(part, first_line)


def decoded(data: bytes) -> str:
    """The text of a file. Raises Unreadable when it is too large, or no UTF-8, or holds what no text may hold."""
    if len(data) > LARGEST:
        raise Unreadable("KERF-FILE-LIMIT", Place(1, 1), f"the file has {len(data)} bytes; {LARGEST} are the most")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise Unreadable("KERF-FILE-READ", Place(1, 1), "the file is written in UTF-16", "save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _place(data[: error.start].decode("utf-8-sig", "replace"))
        message = f"the byte {data[error.start]:#04x} is no part of a text in UTF-8"
        raise Unreadable("KERF-FILE-READ", place, message, "save the file as UTF-8") from error
    if found := _UNPRINTABLE.search(text):
        place = _place(text[: found.start()])
        message = f"the character U+{ord(found[0]):04X} is not allowed in a YAML file"
        hint = "save the file as UTF-8" if found[0] == "\0" else "remove it"
        raise Unreadable("KERF-FILE-READ", place, message, hint)
    return text


def lines(text: str) -> list[str]:
    """The lines of a text, as the parser counts them."""
    return _BREAK.split(text)


def _place(before: str) -> Place:
    """The place just after a text that begins where the file begins."""
    above = lines(before)
    return Place(len(above), len(above[-1]) + 1)


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """The text cut before every line that begins a document, each part with the number of its first line."""
    if _JSON.match(text):
        yield from _json_parts(text)
        return
    begin, line = 0, 1
    for marker in _MARKER.finditer(text):
        part = text[begin : marker.start()]
        if _DIRECTIVES.fullmatch(part) and "%" in part:
            continue
        yield part, line
        line += len(_BREAK.findall(part))
        begin = marker.start()
    yield text[begin:], line


def _json_parts(text: str) -> Iterator[tuple[str, int]]:
    """JSON objects one after the other, as kubectl and jq print them; other text that begins so is left whole."""
    reader, begin, place, parts = json.JSONDecoder(), 0, Place(1, 1), []
    try:
        while (start := content(text, begin)) < len(text):
            place = _after(place, text[begin:start])
            end = reader.raw_decode(text, start)[1]
            # The parser wants to see the characters that JSON writes as two escapes.
            part = _PAIR.sub(_character, text[start:end])
            parts.append((" " * min(place.column - 1, _DEEPEST_INDENT) + part, place.line))
            place = _after(place, text[start:end])
            begin = end
    except (ValueError, RecursionError):
        parts = [(text, 1)]
    yield from parts


def content(text: str, begin: int) -> int:
    """The place of the next character that is no space, or the end of the text."""
    found = _SPACES.match(text, begin)
    return found.end() if found else begin


def _after(place: Place, text: str) -> Place:
    """The place just after a text that begins at a place."""
    rows = lines(text)
    return Place(place.line + len(rows) - 1, len(rows[-1]) + (1 if len(rows) > 1 else place.column))


def _character(pair: re.Match[str]) -> str:
    high, low = int(pair[2], 16), int(pair[3], 16)
    return pair[1] + chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def _documents(part: str, first_line: int) -> Iterator[Document | Unreadable]:
    try:
        yield from _built(part, first_line)
    except Unreadable as failure:
        limit = failure.rule == "KERF-FILE-LIMIT"
        yield failure if limit else _template(part, first_line, failure.place.line) or failure
    except yaml.YAMLError as error:
        translated = _translated(error, part, first_line)
        yield _template(part, first_line, translated.place.line) or translated
    except RecursionError:
        yield Unreadable("KERF-FILE-LIMIT", Place(first_line, 1), "is nested too deep to be read")


def _built(part: str, first_line: int) -> Iterator[Document]:
    loader = _LOADER(_MARK.sub(r"\1", part, count=1) if "\ufeff" in part else part)
    try:
        while (event := loader.get_event()) is not None:
            if event.__class__ is yaml.DocumentStartEvent:
                builder = Builder(loader.get_event, first_line)
                node = builder.node(loader.get_event())
                builder.oddities += _begun(event, node, first_line)
                if node.value is not None:
                    yield Document(node, tuple(builder.oddities))
            elif event.__class__ is yaml.StreamEndEvent:
                return
    finally:
        loader.dispose()


def _begun(event: Any, node: Node, first_line: int) -> Iterator[Oddity]:
    """What is odd about the first lines of a document: YAML allows it, and kubectl refuses the file."""
    start, place = event.start_mark, Place(event.start_mark.line + first_line, 1)
    if event.version or event.tags:
        message = "kubectl reads the lines before --- as a document of its own, and refuses a directive there"
        yield Oddity("KERF-FILE-YAML", place, message, "remove the directive (the line that begins with %)", ())
    if event.explicit and node.first.line == event.end_mark.line and node.value is not None:
        message = "kubectl refuses a document that begins in the line of its ---"
        place = Place(start.line + first_line, node.first.column + 1)
        yield Oddity("KERF-FILE-YAML", place, message, "begin it in the next line", ())


def _translated(error: yaml.YAMLError, part: str, first_line: int) -> Unreadable:
    problem = str(getattr(error, "problem", "") or error)
    # Of what has no end, the beginning is the place to look at.
    marks = ("context_mark", "problem_mark") if problem == _UNCLOSED else ("problem_mark", "context_mark")
    mark = next((mark for name in marks if (mark := getattr(error, name, None))), None)
    # The parser sees one more line than there is when the last has no break.
    last = _place(part)
    place = min(Place(mark.line + 1, mark.column + 1), last) if mark else Place(1, 1)
    place = place._replace(line=place.line + first_line - 1)
    message, hint = _WORDS.get(problem, (problem, ""))
    if problem == "found character that cannot start any token":
        message = "no value can begin with this character"
        hint = "indent with spaces, not with tabs; put values that begin with @, ` or % in quotes"
    return Unreadable("KERF-FILE-YAML", place, f"this is no YAML: {message}", hint)


def _template(part: str, first_line: int, broken: int) -> Unreadable | None:
    """The cause when it is a text that no tool has rendered yet. `broken` is the line of the file at which it
    is no YAML: directives of templates are it wherever they stand, a placeholder only there and in the line above."""
    for number, line in enumerate(lines(part)):
        found = placeholders.search(line)
        near = 0 <= broken - first_line - number <= 1
        if found and (near or found.text.startswith(_ANYWHERE)):
            start = line.index(found.text)
            if "#" not in line[:start]:
                return placeholder(found, Place(first_line + number, start + 1))
    return None


def placeholder(found: Placeholder, place: Place) -> Unreadable:
    """The complaint about a placeholder of a template."""
    if found.text.startswith("{{"):
        message = "{{ begins a template, which is no YAML before it is rendered"
    else:
        message = f"{shown(found.text, quotes=False)} is {found.kind}, and not yet a value"
    return Unreadable("KERF-FILE-TEMPLATE", place, message, found.remedy)
