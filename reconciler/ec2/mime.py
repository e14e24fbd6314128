"""MIME multipart user data, as cloud-init reads it: a user's own parts first, then ours.

A node runs the parts in order, so what a user wants done before the node joins comes before what makes it join.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from email import message_from_string

BOUNDARY = "//"
SHELL = 'text/x-shellscript; charset="us-ascii"'
NODE_CONFIG = "application/node.eks.aws"


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its header lines (Content-Type first or alone) and its text."""

    headers: tuple[tuple[str, str], ...]
    text: str

    @classmethod
    def of(cls, content_type: str, text: str) -> Part:
        return cls((("Content-Type", content_type),), text)


def is_archive(text: str) -> bool:
    """Whether user data is a MIME document already."""
    return text.lstrip().startswith(("MIME-Version:", "Content-Type:"))


def split(text: str) -> list[Part]:
    """The leaf parts of a MIME document, each as it is written. Raises ValueError when the document is malformed."""
    message = message_from_string(text.strip() + "\n")
    parts: list[Part] = []
    for node in message.walk():
        if node.defects:
            raise ValueError(f"user data is not valid MIME: {type(node.defects[0]).__name__}")
        if not node.is_multipart():
            headers = tuple((name, value) for name, value in node.items() if name.lower() != "mime-version")
            parts.append(Part(headers, str(node.get_payload())))
    return parts


def join(parts: Iterable[Part]) -> str:
    """A MIME document of these parts."""
    lines = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{BOUNDARY}"', ""]
    for part in parts:
        lines += [f"--{BOUNDARY}", *(f"{name}: {value}" for name, value in part.headers), "", part.text]
    return "\n".join([*lines, f"--{BOUNDARY}--", ""])
