"""Sizes that a reader meets: of rooms, folders, functions and classes, taken from the syntax trees."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.sources import FOLDERS, ROOT, module_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
#: `self` and its like count for nothing: who calls does not write them.
_BOUND: Final = frozenset({"self", "cls"})


def modules() -> dict[str, Path]:
    """Every module of the product by its full name; a package goes by its own name."""
    files = [path for folder in FOLDERS.values() for path in sorted((ROOT / folder).rglob("*.py"))]
    return {module_of(str(path.relative_to(ROOT))).removesuffix(".__init__"): path for path in files}


def lines_of_folders(files: Mapping[str, Path]) -> Counter[str]:
    """Lines of the modules that lie in a folder itself, not in those below it, by the folder's path from the root."""
    counts: Counter[str] = Counter()
    for path in files.values():
        counts[_folder(path)] += len(path.read_text(encoding="utf-8").splitlines())
    return counts


def modules_of_folders(files: Mapping[str, Path]) -> Counter[str]:
    """How many modules a folder has, `__init__.py` apart."""
    return Counter(_folder(path) for path in files.values() if path.name != "__init__.py")


def functions(files: Mapping[str, Path]) -> Iterator[tuple[str, Function]]:
    """Every function and method, inner ones too, with its place (`path:line name`)."""
    for path in files.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Function):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node


def length(function: Function) -> int:
    """Lines from `def` to the end, docstring included."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def parameters(function: Function) -> int:
    """Named parameters, without `self` and `cls`."""
    taken = function.args
    return sum(one.arg not in _BOUND for one in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs))


def attributes(files: Mapping[str, Path]) -> dict[str, int]:
    """How many attributes each class has (declared in its body, or set on `self`), by `path:Class`."""
    found = {}
    for path in files.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[f"{path.relative_to(ROOT)}:{node.name}"] = len({*_declared(node), *_set(node)})
    return found


def _declared(node: ast.ClassDef) -> Iterator[str]:
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            yield one.target.id


def _set(node: ast.ClassDef) -> Iterator[str]:
    for one in ast.walk(node):
        match one:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def _folder(path: Path) -> str:
    return path.parent.relative_to(ROOT).as_posix()
