"""The reference page of the rules, made from the rule book; and one rule as plain text, as `kerf explain` shows it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from ruamel.yaml import YAML

from kerf_api.lint.rulebook import Entry, book
from kerf_api.lint.rulebook.paths import steps

_HEAD: Final = """# Rules

<!-- Rendered from api/kerf_api/lint/rulebook by `make manifests`. Edit the rule book, not this page. -->

What `kerf validate` and the admission webhook find, rule by rule. **Errors** are refused: by the API server itself
where the number is below 100 or the rule is about the shape, by the controllers at run time otherwise. **Warnings** are
admitted and reported. **Information** is reported by `kerf validate` alone. `# kerf:ignore RULE reason` in a manifest,
or `--ignore RULE`, silences a rule; `kerf explain RULE` shows its text in a terminal.

The examples change one thing in an otherwise sound manifest; tests violate and obey every rule with them.
"""


def markdown() -> str:
    """The whole page."""
    parts = [_HEAD]
    for family, entries in groupby(book().values(), key=lambda entry: entry.family):
        listed = list(entries)
        parts.append(f"\n## {family}\n\n| rule | | |\n|---|---|---|\n")
        parts += [f"| [{e.id}](#{e.id.lower()}) | {e.severity} | {e.title} |\n" for e in listed]
        parts += ["".join(_section(entry)) for entry in listed]
    return "".join(parts)


def _section(entry: Entry) -> Iterator[str]:
    yield f"\n### {entry.id}\n\n**{entry.title}** ({entry.severity}). {entry.why}\n\n{entry.fix}\n"
    for name, example in examples(entry):
        yield f"\n{name}:\n\n```yaml\n{example}```\n"


def text(entry: Entry) -> str:
    """One rule for a terminal."""
    parts = [f"{entry.id} ({entry.severity}): {entry.title}", "", entry.why, entry.fix]
    for name, example in examples(entry):
        parts += ["", f"{name}:", *(f"  {line}" for line in example.splitlines())]
    return "\n".join(parts)


def examples(entry: Entry) -> list[tuple[str, str]]:
    """What an entry shows, each with a name; as YAML."""
    found: list[tuple[str, str]] = []
    for name, fields in (("Before", entry.old), ("Wrong", entry.wrong), ("Right", entry.right)):
        if fields is not None:
            found.append((name, _yaml(_nested(fields))))
    beside = "" if entry.old_files else ", side by side"
    for name, files in (
        ("Before", entry.old_files),
        (f"Wrong{beside}", entry.wrong_files),
        (f"Right{beside}", entry.right_files),
    ):
        if files:
            found.append((name, "---\n".join(_yaml(_file(row)) for row in files)))
        elif entry.old_files:
            found.append((name, "# nothing\n"))
    return found


def _file(row: Mapping[str, Any]) -> dict[str, Any]:
    fields = dict(row.get("set", {}))
    if "class" in row:
        fields["T.nodeClassRef.name"] = row["class"]
    return {"kind": row["kind"], "metadata": {"name": row["name"]}, **_nested(fields)}


def _nested(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Paths and values as one tree; fields that are left out are not shown."""
    tree: dict[str, Any] = {}
    for path, value in fields.items():
        if value is not None:
            _put(tree, steps(path), value)
    return tree


def _put(tree: dict[str, Any], way: Sequence[str | int], value: Any) -> None:
    place: Any = tree
    for step, following in zip(way, [*way[1:], None], strict=True):
        inner: Any = value if following is None else [] if isinstance(following, int) else {}
        if isinstance(step, int):
            if not place:
                place.append(inner)
            place = place[0]
        else:
            place = place.setdefault(step, inner)


def _yaml(tree: Any) -> str:
    writer, out = YAML(), io.StringIO()
    writer.default_flow_style = None  # the innermost maps and lists on one line
    writer.width = 110
    writer.dump(tree or {}, out)
    return out.getvalue()
