"""Measured parts of a document: what stands between two markers is replaced, all else stays as it is written.

<!-- measured: pods -->
(a table)
<!-- end of pods -->
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path


class NoSuchPart(Exception):
    """The document has no such markers, or has them twice; the message names the file and the part."""


def rewrite(path: Path, parts: Mapping[str, str]) -> None:
    """Replace these parts of a document. Raises NoSuchPart, and then nothing is written."""
    text = path.read_text()
    for name, content in parts.items():
        begin, end = f"<!-- measured: {name} -->\n", f"<!-- end of {name} -->"
        new = f"{begin}{content}\n{end}".replace("\\", r"\\")  # re reads a backslash in a replacement
        made, times = re.subn(f"{re.escape(begin)}.*?{re.escape(end)}", new, text, flags=re.S)
        if times != 1:
            raise NoSuchPart(f"{path} has {times} parts between {begin.strip()} and {end}")
        text = made
    path.write_text(text)
