"""Where the keys and scalars of a document stand: a # within them begins no comment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from kerf.manifests.nodes import Node, Place
from kerf.manifests.written import own_keys

_Span = tuple[int, int, int, int]
_END: Final = 1 << 62


class Texts:
    """The keys and scalars of some documents, found by binary search."""

    def __init__(self, roots: Iterable[Node]) -> None:
        self._spans = sorted(span for root in roots for span in _spans(root))

    def have(self, place: Place) -> bool:
        """Whether a place lies within a key or scalar."""
        index = bisect_right(self._spans, (*place, _END, _END))
        return index > 0 and place < self._spans[index - 1][2:]


def _spans(node: Node) -> Iterator[_Span]:
    """Lines and columns where texts begin and end."""
    if node.style == "*":
        return
    for key in own_keys(node):
        yield (*key.start, *key.end)
    if node.below:
        for child in node.below.values():
            yield from _spans(child)
    elif node.style in ("|", ">"):
        yield (node.start.line + 1, 1, *node.end)
    else:
        yield (*node.start, *node.end)
