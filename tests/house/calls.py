"""The longest chain of calls that can be read off the source: how deep somebody must go who follows one.

A call is followed where its callee is written down: a function of the same module or an imported one, a method of
`self`, of a parameter, of an attribute or of a variable whose type is annotated, or of what was made by naming its
class. What is handed over as a value is not followed. Functions that call each other count as one station.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.house.imports import absolute

_DEFINITION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(slots=True)
class _Module:
    """What names mean in a module: `names` full names of what it defines and imports."""

    tree: ast.Module
    names: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Class:
    module: str
    bases: list[str]
    attributes: dict[str, str]


@dataclass(slots=True)
class Calls:
    """All functions of the product by full name, and what each calls."""

    modules: dict[str, _Module] = field(default_factory=dict)
    classes: dict[str, _Class] = field(default_factory=dict)
    functions: dict[str, tuple[str, str | None, ast.FunctionDef | ast.AsyncFunctionDef]] = field(default_factory=dict)
    edges: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Mapping[str, Path]) -> Calls:
        """Read all files; `files` by full module name."""
        calls = cls()
        for name, path in files.items():
            calls._read(name, ast.parse(path.read_text(encoding="utf-8")), is_package=path.name == "__init__.py")
        for name in calls.modules:
            calls._annotate(name)
        for function in calls.functions:
            calls.edges[function] = set(calls._called(function)) - {function}
        return calls

    def longest(self) -> list[str]:
        """The longest chain, from its first caller."""
        groups, of = _together(self.edges)
        best: dict[int, list[str]] = {}
        for number, group in enumerate(groups):  # callees come before their callers
            after = {of[callee] for one in group for callee in self.edges[one]} - {number}
            tail = max((best[one] for one in after), key=len, default=[])
            best[number] = [min(group), *tail]
        return max(best.values(), key=len, default=[])

    # --- reading ------------------------------------------------------------------------------------------------
    def _read(self, name: str, tree: ast.Module, *, is_package: bool) -> None:
        module = self.modules[name] = _Module(tree)
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=names):
                    module.names |= {one.asname: one.name for one in names if one.asname}
                case ast.ImportFrom(module=source, names=names, level=level):
                    base = absolute(name, source, level, is_package=is_package)
                    module.names |= {one.asname or one.name: f"{base}.{one.name}" for one in names}
        for node in tree.body:
            if isinstance(node, _DEFINITION):
                module.names[node.name] = f"{name}.{node.name}"
                self.functions[f"{name}.{node.name}"] = (name, None, node)
            elif isinstance(node, ast.ClassDef):
                module.names[node.name] = full = f"{name}.{node.name}"
                self.classes[full] = _Class(name, [ast.unparse(base) for base in node.bases], {})
                for one in node.body:
                    if isinstance(one, _DEFINITION):
                        self.functions[f"{full}.{one.name}"] = (name, full, one)

    def _annotate(self, name: str) -> None:
        for node in self.modules[name].tree.body:
            if isinstance(node, ast.ClassDef):
                known = self.classes[f"{name}.{node.name}"].attributes
                for one in ast.walk(node):
                    match one:
                        case ast.AnnAssign(target=ast.Name(id=attribute) | ast.Attribute(attr=attribute)):
                            known[attribute] = self._type(name, one.annotation)
                        case ast.Assign(
                            targets=[ast.Attribute(value=ast.Name(id="self"), attr=attribute)],
                            value=ast.Call(func=made),
                        ):
                            known.setdefault(attribute, self._type(name, made))

    def _type(self, module: str, node: ast.AST | None) -> str:
        """The class that an annotation names, itself or beside None; empty if it names none of the product's."""
        match node:
            case ast.Constant(value=str() as text):
                return self._type(module, ast.parse(text, mode="eval").body)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self._type(module, left) or self._type(module, right)
            case ast.Name() | ast.Attribute():
                full = self._full(module, ast.unparse(node))
                return full if full in self.classes else ""
        return ""

    def _full(self, module: str, dotted: str) -> str:
        first, _, rest = dotted.partition(".")
        named = self.modules[module].names.get(first, first)
        full = f"{named}.{rest}" if rest else named
        source, _, last = full.rpartition(".")
        if full not in self.classes and full not in self.functions and source in self.modules:
            return self.modules[source].names.get(last, full)  # handed on by a package
        return full

    # --- calls --------------------------------------------------------------------------------------------------
    def _called(self, function: str) -> Iterator[str]:
        module, owner, node = self.functions[function]
        types = self._types(module, owner, node)
        for one in ast.walk(node):
            if isinstance(one, ast.Call):
                yield from self._callee(module, types, one.func)

    def _types(self, module: str, owner: str | None, node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
        types = {"self": owner, "cls": owner} if owner else {}
        taken = node.args
        for one in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs):
            if found := self._type(module, one.annotation):
                types[one.arg] = found
        for each in ast.walk(node):
            match each:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=made)):
                    if found := self._type(module, made):
                        types[name] = found
        return types

    def _callee(self, module: str, types: Mapping[str, str], func: ast.expr) -> Iterator[str]:
        match func:
            case ast.Attribute(value=value, attr=name) if found := self._type_of(module, types, value):
                yield from self._method(found, name)
                return
            case ast.Name() | ast.Attribute():
                full = self._full(module, ast.unparse(func))
                if full in self.classes:
                    yield from self._method(full, "__init__")
                elif full in self.functions:
                    yield full

    def _type_of(self, module: str, types: Mapping[str, str], value: ast.expr) -> str:
        match value:
            case ast.Name(id=name):
                return types.get(name, "")
            case ast.Attribute(value=inner, attr=name):
                owner = self._type_of(module, types, inner)
                return self.classes[owner].attributes.get(name, "") if owner else ""
            case ast.Call(func=made):
                return self._type(module, made)
        return ""

    def _method(self, owner: str, name: str) -> Iterator[str]:
        full = f"{owner}.{name}"
        if full in self.functions:
            yield full
            return
        for base in self.classes[owner].bases:
            named = self._full(self.classes[owner].module, base)
            if named in self.classes:
                yield from self._method(named, name)


def _together(edges: Mapping[str, set[str]]) -> tuple[list[list[str]], dict[str, int]]:
    """Functions that call each other, as groups (Tarjan): callees first; and the group of each function."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    groups: list[list[str]] = []
    of: dict[str, int] = {}
    stack: list[str] = []
    for start in edges:
        if start in index:
            continue
        index[start] = low[start] = len(index)
        stack.append(start)
        walk = [(start, iter(sorted(edges[start])))]
        while walk:
            one, callees = walk[-1]
            for callee in callees:
                if callee not in index:
                    index[callee] = low[callee] = len(index)
                    stack.append(callee)
                    walk.append((callee, iter(sorted(edges[callee]))))
                    break
                if callee not in of:
                    low[one] = min(low[one], index[callee])
            else:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[one])
                if low[one] == index[one]:
                    at = stack.index(one)
                    groups.append(stack[at:])
                    of |= dict.fromkeys(stack[at:], len(groups) - 1)
                    del stack[at:]
    return groups, of
