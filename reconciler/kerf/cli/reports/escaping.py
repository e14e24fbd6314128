"""Text from files, as a terminal and the log of a CI service may show it.

A file under test may come from a stranger. Its names and values must not move a cursor, hide text, begin a line, or
give a command to the service that reads the log, such as `::error` of GitHub or `##vso[…]` of Azure.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kerf.manifests.checking import Finding, Report

#: Control characters, characters without width, marks of direction, breaks of lines, and halves of surrogates.
_HIDDEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
_COMMAND: Final = re.compile(r"##(?=[A-Za-z]{0,20}\[)")
_NAMES: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str) -> str:
    """The text on one line, with an escape such as `\\x1b` for each character that would not be seen."""
    return _COMMAND.sub(r"#\\x23", _HIDDEN.sub(_escape, text))


def name(file: str) -> str:
    """The name of a file as the beginning of a line."""
    text = visible(file)
    return f"./{text}" if text.lstrip().startswith(("::", "##")) else text


def report(found: Report) -> Report:
    """A report with visible texts. Names of files stay, as programs look for them."""
    subjects = tuple(replace(subject, name=visible(subject.name)) for subject in found.subjects)
    return replace(found, findings=tuple(map(finding, found.findings)), subjects=subjects)


def finding(found: Finding) -> Finding:
    """A finding with visible texts."""
    problem = found.problem
    path, message, hint = visible(problem.path), visible(problem.message), visible(problem.hint)
    return replace(
        found, subject=visible(found.subject), problem=replace(problem, path=path, message=message, hint=hint)
    )


def as_json(value: Any) -> str:
    """A value as JSON of ASCII letters, with the names and values of files as they are."""
    return _COMMAND.sub(r"#\\u0023", json.dumps(value, indent=2, default=str)) + "\n"


def complain(words: str) -> None:
    """Print one line to standard error."""
    print(visible(words), file=sys.stderr)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character in _NAMES:
        return _NAMES[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
