"""The rules about files: what is wrong before a manifest can be looked at, or with how it is written.

Their pages are in the rule book with all others (`api/kerf_api/lint/rulebook/file.yaml`); the command line alone sees
files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kerf_api.lint import Severity

READ, YAML, TEMPLATE, LIMIT = "KERF-FILE-READ", "KERF-FILE-YAML", "KERF-FILE-TEMPLATE", "KERF-FILE-LIMIT"
RENDER: Final = "KERF-FILE-RENDER"
TWICE, KEY, IGNORE, UNUSED = "KERF-FILE-TWICE", "KERF-FILE-KEY", "KERF-FILE-IGNORE", "KERF-FILE-UNUSED"

_ID = re.compile(r"^(KERF-[A-Z0-9-]+):", re.MULTILINE)
#: A file that breaks one of these could not be looked at, wholly or in part.
UNREADABLE: Final = frozenset({READ, YAML, TEMPLATE, LIMIT, RENDER})
SEVERITIES: Final[Mapping[str, Severity]] = {
    **dict.fromkeys((*UNREADABLE, TWICE, IGNORE), "error"),
    KEY: "warning",
    UNUSED: "info",
}


def known() -> frozenset[str]:
    """The IDs of every rule there is; in a fraction of the time that the pages would take to read."""
    from importlib.resources import files

    from kerf_api.lint import rulebook

    texts = (files(rulebook.__name__).joinpath(name).read_text(encoding="utf-8") for name in rulebook.FAMILIES.values())
    return frozenset(rule for text in texts for rule in _ID.findall(text))
