"""The texts of the repository that users and contributors read, piece by piece with their lines."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.sources import FOLDERS, ROOT

#: What users do not read as prose: code, comments of HTML, the targets of links.
_NO_PROSE: Final = re.compile(
    r"```[^\n]*\n.*?^\s*```|``[^`]+``|`[^`]*`|<!--.*?-->|\]\([^)]*\)", re.DOTALL | re.MULTILINE
)
_PAGES: Final = ("docs/**/*.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
_RULES: Final = "api/kerf_api/lint/rulebook/*.yaml"
_NOTES: Final = "charts/*/templates/NOTES.txt"
#: Texts of alerts and dashboards, which operators read.
_MONITORING: Final = ("charts/*/files/alerts.yaml", "charts/*/files/dashboards/*.json")
#: Comments of charts, and of the templates in them.
_CHARTS: Final = ("charts/**/*.yaml", "charts/**/*.tpl", "charts/**/*.txt")
_COMMENT: Final = re.compile(r"(?:^|\s)#[^\n]*|\{\{-? ?/\*.*?\*/ ?-?\}\}", re.DOTALL)
_DEFINED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Text(NamedTuple):
    """A piece of text, its kind, and the line of the file (below the root) on which it begins."""

    kind: str
    file: str
    line: int
    text: str


def texts(root: Path = ROOT) -> Iterator[Text]:
    """Every text of the kinds `docs`, `messages` and `comments`."""
    for pattern in (*_PAGES, _RULES, _NOTES, *_MONITORING):
        for path in sorted(root.glob(pattern)):
            yield Text("docs", str(path.relative_to(root)), 1, prose(path.read_text(encoding="utf-8")))
    for folder in FOLDERS.values():
        for path in sorted((root / folder).rglob("*.py")):
            source, file = path.read_text(encoding="utf-8"), str(path.relative_to(root))
            yield from (Text("messages", file, line, text) for line, text in messages(source))
            yield from (Text("comments", file, line, text) for line, text in comments(source))
    for pattern in _CHARTS:
        for path in sorted(root.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            for found in _COMMENT.finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                yield Text("comments", str(path.relative_to(root)), line, prose(found.group()))


@cache
def of_the_repository() -> tuple[Text, ...]:
    """All texts, read once in a process."""
    return tuple(texts())


def prose(page: str) -> str:
    """A page of Markdown without its code; what is left out becomes blanks, so that lines stay where they are."""
    return _NO_PROSE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), page)


def messages(source: str) -> Iterator[tuple[int, str]]:
    """The strings of several words in a Python file that are no docstrings, with their lines; `…` is a value."""
    nodes = _nodes(source)
    skipped = {id(text) for text in _docstrings(nodes)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in skipped:
            said = _text(node)
            if " " in said.strip():
                yield node.lineno, prose(said)


def comments(source: str) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a Python file, with their lines."""
    for text in _docstrings(_nodes(source)):
        yield text.lineno, prose(str(text.value))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], prose(token.string)


@lru_cache(maxsize=1)
def _nodes(source: str) -> Sequence[ast.AST]:
    """Every node of a file, which is read for its messages and for its comments."""
    return list(ast.walk(ast.parse(source)))


def _docstrings(nodes: Sequence[ast.AST]) -> Iterator[ast.Constant]:
    for node in nodes:
        if isinstance(node, _DEFINED) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
