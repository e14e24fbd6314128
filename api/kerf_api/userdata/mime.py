"""MIME multipart user data, as cloud-init reads it: a user's own parts first, then ours.

A node runs the parts in order, so what a user wants done before the node joins comes before what makes it join.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from email import errors, message_from_string
from email.message import Message
from typing import Any, Final, cast

from . import shown

BOUNDARY = "//"
SHELL = 'text/x-shellscript; charset="us-ascii"'
NODE_CONFIG = "application/node.eks.aws"

_DEFECTS: Final[dict[type[Exception], str]] = {
    errors.NoBoundaryInMultipartDefect: "its Content-Type is multipart, but names no boundary",
    errors.StartBoundaryNotFoundDefect: "the line --{boundary}, with which its first part begins, is missing",
    errors.CloseBoundaryNotFoundDefect: "the line --{boundary}--, which ends its last part, is missing",
    errors.MissingHeaderBodySeparatorDefect: "{line} is no header, and no empty line precedes it",
    errors.FirstHeaderLineIsContinuationDefect: "its first header begins with a space",
    errors.MisplacedEnvelopeHeaderDefect: 'its headers contain a line that begins with "From "',
    errors.InvalidMultipartContentTransferEncodingDefect: "it is multipart, and so may not be encoded itself",
    errors.MultipartInvariantViolationDefect: "it is multipart, but has no parts",
}


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its header lines (Content-Type first or alone) and its text."""

    headers: tuple[tuple[str, str], ...]
    text: str

    @classmethod
    def of(cls, content_type: str, text: str) -> Part:
        return cls((("Content-Type", content_type),), text)

    @property
    def kind(self) -> str:
        """The content type in small letters and without parameters; MIME's default when there is none."""
        given = self._header("content-type").partition(";")[0].strip().lower()
        return given if given.count("/") == 1 else "text/plain"

    @property
    def encoded(self) -> bool:
        """Whether the text is not written as it is meant, but in base64 or the like."""
        return self._header("content-transfer-encoding").strip().lower() not in ("", "7bit", "8bit", "binary")

    def _header(self, wanted: str) -> str:
        return next((value for name, value in self.headers if name.lower() == wanted), "")


def is_archive(text: str) -> bool:
    """Whether user data is a MIME document already."""
    return text.lstrip().startswith(("MIME-Version:", "Content-Type:"))


def split(text: str) -> list[Part]:
    """The leaf parts of a MIME document, each as it is written. Raises ValueError when the document is malformed.

    A last boundary line without its closing `--` is accepted, as Go's multipart reader accepts it (`has_open_end`). So
    is an archive within another one without any last boundary line: the boundary of the outer archive ends it.
    """
    parts: list[Part] = []
    nodes = _parsed(text)
    nothing = {id(cast(list[Any], node.get_payload())[-1]) for node in nodes if _ends_open(node)}
    for number, node in enumerate(nodes):
        if id(node) in nothing:
            continue
        if node.defects and not _ends_open(node) and not (number and _unclosed(node)):
            raise ValueError(f"user data is not valid MIME: {_defect(node, number, text)}")
        if not node.is_multipart():
            headers = tuple((name, value) for name, value in node.items() if name.lower() != "mime-version")
            parts.append(Part(headers, str(node.get_payload())))
    return parts


def has_open_end(text: str) -> bool:
    """Whether a document that can be split, or an archive within it, does not end with its closing boundary line."""
    return any(map(_unclosed, _parsed(text)))


def _unclosed(node: Message[Any, Any]) -> bool:
    """Whether an archive lacks its closing boundary line, and nothing else."""
    return [type(one) for one in node.defects] == [errors.CloseBoundaryNotFoundDefect]


def _ends_open(node: Message[Any, Any]) -> bool:
    """Whether the last boundary line of an archive begins one part more, with headers at most.

    Go's reader passes over such a part, too.
    """
    if not _unclosed(node):
        return False
    *before, last = cast("list[Message[Any, Any]]", node.get_payload())
    return bool(before) and not last.is_multipart() and not last.defects and not str(last.get_payload()).strip()


def _parsed(text: str) -> list[Message[Any, Any]]:
    try:
        return [*message_from_string(text.strip() + "\n").walk()]
    except RecursionError:
        raise ValueError("user data is not valid MIME: archives within archives, too deep to be read") from None
    except (TypeError, ValueError):  # what the parser stumbles over when a parameter is given in pieces, and twice
        raise ValueError("user data is not valid MIME: the parameters of a Content-Type cannot be read") from None


def _defect(node: Message[Any, Any], number: int, text: str) -> str:
    """What is wrong with a part, in words; the whole document is number 0."""
    words = _DEFECTS.get(type(node.defects[0]), type(node.defects[0]).__name__)
    body = node.preamble if node.is_multipart() else str(node.get_payload())
    line = (body or "").partition("\n")[0]
    numbers = (n for n, written in enumerate(text.split("\n"), 1) if written.strip("\r") == line)
    told = f'line {next(numbers, 0)}, "{shown(line)}",'
    boundary = shown(str(node.get_boundary(""))) if "{boundary}" in words else ""
    return ("" if number == 0 else f"part {number}: ") + words.format(boundary=boundary, line=told)


def join(parts: Iterable[Part]) -> str:
    """A MIME document of these parts."""
    lines = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{BOUNDARY}"', ""]
    for part in parts:
        lines += [f"--{BOUNDARY}", *(f"{name}: {value}" for name, value in part.headers), "", part.text]
    return "\n".join([*lines, f"--{BOUNDARY}--", ""])
