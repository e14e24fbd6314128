"""How a document is written: its lines, and where in them a value begins and ends."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from kerf.manifests import scalars
from kerf.manifests.nodes import Node

_KEEPS_BLANKS = re.compile(r"[|>][0-9]?\+")
_WIDE: Final = 1 << 20


def own_keys(node: Node) -> list[Node]:
    """The keys that a map has itself, without those that a merge brings."""
    return [key for key in node.keys.values() if key.start >= node.start]


def last_line(lines: list[str], node: Node) -> int:
    """The last line that belongs to a node, from 1."""
    if node.below and node.style not in ("{", "[", "*"):
        written = [child for child in node.below.values() if child.start >= node.start]
        ends = [*(key.end.line for key in own_keys(node)), *(last_line(lines, child) for child in written)]
        return max(ends, default=node.start.line)
    if node.style not in ("|", ">"):
        return node.end.line
    head = lines[node.start.line - 1][node.start.column - 1 :]
    last = node.end.line - 1 if node.end.column == 1 else node.end.line
    while not _KEEPS_BLANKS.match(head) and last > node.start.line and not lines[last - 1].strip():
        last -= 1
    return last


class _Dumper(yaml.SafeDumper):
    """Puts in quotes what clusters would not read as the text that it is, such as 099, a number for Go's reader."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # Several lines in quotes are folded, which strict readers refuse below the indentation of the key.
    read_as = '"' if "\n" in text else None if scalars.meaning(text) == text else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=read_as)


_Dumper.add_representer(str, _text)


def literal(text: str) -> tuple[str, list[str]] | None:
    """A text of several lines as a literal block: its indicator, and its lines without indentation.

    None for a text of one line, and for one that a block cannot hold, or only with an indicator of indentation.
    """
    rows = text.removesuffix("\n").split("\n")
    plain = text.replace("\n", "").replace("\t", "").isprintable() and not rows[0].startswith((" ", "\t"))
    if "\n" not in text or not (plain and rows[0] and rows[-1].strip()):
        return None
    return ("|" if text.endswith("\n") else "|-"), rows


def flow(value: Any) -> str:
    """A value on one line."""
    text = yaml.dump([value], Dumper=_Dumper, default_flow_style=True, sort_keys=False, width=_WIDE, allow_unicode=True)
    return text.strip()[1:-1]
