"""docs/reference/logs.md names every message that the code has, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from kerf.telemetry.log.lines import STEPS
from tests.sources import ROOT

PAGE = ROOT / "docs/reference/logs.md"
#: Functions whose first argument is a message.
SAY = frozenset({"info", "error", "debug", "trouble"})
#: What Karpenter's log is parsed for.
PARSED = (
    *STEPS.values(),
    "created nodeclaim",
    "disrupting node(s)",
    "initiating delete from interruption message",
    "annotated nodeclaim",
    "tainted node",
    "deleted nodeclaim",
)


def messages() -> Iterator[tuple[str, str]]:
    """Level and message of every call that logs."""
    for path in (path for path in (ROOT / "reconciler").rglob("*.py") if "cli" not in path.parts):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            if node.func.attr in SAY:
                level = {"trouble": "ERROR"}.get(node.func.attr, node.func.attr.upper())
                found = (text.value for text in ast.walk(node.args[0]) if isinstance(text, ast.Constant))
                yield from ((level, text) for text in found if isinstance(text, str))


def rows() -> dict[str, list[str]]:
    """The cells after the message, by message."""
    page = PAGE.read_text()
    table = page[page.index("## Every message") : page.index("## Other messages of Karpenter")]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    return {row[0].strip("`"): row[1:] for row in cells}


def test_every_message_is_listed_and_no_other() -> None:
    found = {text for _, text in messages()} | set(STEPS.values())
    assert found == set(rows())


def test_the_levels_are_those_of_the_code() -> None:
    listed = rows()
    for level, text in messages():
        assert level in listed[text][0].split(", "), text


def test_every_message_is_compared_with_karpenters() -> None:
    listed = rows()
    assert all(re.match(r"same|renamed|Kerf's own", row[2]) for row in listed.values())
    assert all(listed[message][2].startswith("same") for message in PARSED)


def test_pages_quote_messages_that_exist() -> None:
    """A message of a failure that a page names, and every text after the word log, can be searched in the log."""
    listed, quoted = set(rows()), set()
    for page in (ROOT / "docs").rglob("*.md"):
        if "reference" not in page.parts:
            text = re.sub(r"\s+", " ", page.read_text())
            quoted |= set(re.findall(r"\blog `([a-zA-Z' ]+ [a-z' ]+)`|`([a-zA-Z' ]+ [a-z' ]+ failed)`", text))
    found = {first or second for first, second in quoted}
    assert len(found) > 5
    assert found <= listed
