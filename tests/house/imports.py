"""Which module imports which, when the program runs; imports for the type checker alone close no circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path


def imports(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """Each module with the modules of the product that it imports, inside functions too."""
    found = {}
    for name, path in files.items():
        tree, is_package = ast.parse(path.read_text(encoding="utf-8")), path.name == "__init__.py"
        named = {_module(source, one, files) for source, one in _named(tree, name, is_package=is_package)}
        found[name] = {one for one in named if one in files and one != name}
    return found


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """One circle of imports, its first module repeated at the end; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _module(source: str, name: str, files: Mapping[str, Path]) -> str:
    return full if (full := f"{source}.{name}") in files else source


def _named(tree: ast.Module, module: str, *, is_package: bool) -> Iterator[tuple[str, str]]:
    for node in _at_run_time(tree):
        match node:
            case ast.Import(names=names):
                yield from ((one.name, "") for one in names)
            case ast.ImportFrom(module=source, names=names, level=level):
                base = absolute(module, source, level, is_package=is_package)
                yield from ((base, one.name) for one in names)


def _at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        yield from _at_run_time(node)


def absolute(module: str, source: str | None, level: int, *, is_package: bool) -> str:
    """The full name of what `from ...source import` names in a module."""
    if not level:
        return source or ""
    parts = module.split(".")
    above = parts[: len(parts) - level + is_package]
    return ".".join([*above, source] if source else above)
