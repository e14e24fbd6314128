"""The rules about files: what is wrong before a manifest can be looked at, or with how it is written.

The linter's own rule book speaks of manifests; these entries complete it for the command line, which alone sees files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from api.lint import Severity

if TYPE_CHECKING:
    from api.lint.rulebook import Entry

READ, YAML, TEMPLATE, LIMIT = "KERF-FILE-READ", "KERF-FILE-YAML", "KERF-FILE-TEMPLATE", "KERF-FILE-LIMIT"
TWICE, KEY, IGNORE, UNUSED = "KERF-FILE-TWICE", "KERF-FILE-KEY", "KERF-FILE-IGNORE", "KERF-FILE-UNUSED"

_ID = re.compile(r"^(KERF-[A-Z0-9-]+):", re.MULTILINE)
#: A file that breaks one of these could not be looked at, wholly or in part.
UNREADABLE: Final = frozenset({READ, YAML, TEMPLATE, LIMIT})
SEVERITIES: Final[Mapping[str, Severity]] = {
    **dict.fromkeys((*UNREADABLE, TWICE, IGNORE), "error"),
    KEY: "warning",
    UNUSED: "info",
}
#: Title, why and fix of each.
_PAGES: Final[Mapping[str, tuple[str, str, str]]] = {
    READ: (
        "The file cannot be read",
        "It cannot be opened, or it is no text in UTF-8, or it holds a control character. kubectl refuses such a file.",
        "Save it as UTF-8, or look at the rights of the file.",
    ),
    YAML: (
        "This is no YAML",
        "The text breaks the rules of YAML at the place shown, so that nothing behind it in the document can be known. "
        "The other documents of the file are checked all the same.",
        "Look at the line shown and the one above it: most often it is the indentation, a tab, or a missing quote.",
    ),
    TEMPLATE: (
        "A template instead of YAML",
        "Helm's templates are no YAML before they are rendered, and what they will hold depends on values.",
        "Check what comes out: helm template my-release ./chart | kerf validate -",
    ),
    LIMIT: (
        "Too large, too deep or too often repeated",
        "No manifest is nested a hundred levels deep, unfolds into a hundred thousand values by its aliases, or comes "
        "in a file of more than 64 MiB. Such a text is a mistake or an attack.",
        "Look at the place shown; cut the file into several.",
    ),
    TWICE: (
        "A key is written twice",
        "kubectl silently keeps the last of the two values; kustomize, Argo CD and Flux refuse the file.",
        "Remove one of the two.",
    ),
    KEY: (
        "A key is read as something else",
        "Clusters read YAML by its old rules: an unquoted on, yes or y is true, and 010 is 8. As a key it becomes the "
        "text of that value.",
        'Put the key in quotes: "on".',
    ),
    IGNORE: (
        "An exception that nobody can understand",
        "An exception names the rule that it is from and says why, or else the next reader cannot tell whether it is "
        "still needed. This one is not heeded.",
        "Write it like: # kerf:ignore KERF-NP-201 the image is rolled out by hand",
    ),
    UNUSED: (
        "An exception from a rule that is kept",
        "The rule that it names has no complaint there, so the exception only hides what may come later.",
        "Remove the comment.",
    ),
}


def entry(rule: str) -> Entry:
    """The page of a rule about files. Raises KeyError for another rule."""
    from api.lint.rulebook import Entry

    title, why, fix = _PAGES[rule]
    return Entry(id=rule, family="Files", title=title, severity=SEVERITIES[rule], why=why, fix=fix)


def known() -> frozenset[str]:
    """The IDs of every rule there is; in a fraction of the time that the pages would take to read."""
    from importlib.resources import files

    from api.lint import rulebook

    texts = (files(rulebook.__name__).joinpath(name).read_text(encoding="utf-8") for name in rulebook.FAMILIES.values())
    return frozenset(_PAGES).union(*(_ID.findall(text) for text in texts))


def book() -> dict[str, Entry]:
    """Every rule there is: the linter's own and those about files."""
    from api.lint import rulebook

    return {**rulebook.book(), **{rule: entry(rule) for rule in _PAGES}}
