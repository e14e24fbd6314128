"""The figures of the house: that they are counted right, and that what was reached stays."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

from tests import sources
from tests.house import picture, report, sizes
from tests.house.calls import Calls
from tests.house.imports import circle, imports
from tests.house.report import WIDE, Figure, complexity, of_attributes, of_functions, of_rooms

#: The figures of `make house` that have been brought within their limits.
REACHED: Final = (
    "largest folder by itself",
    "modules in one folder",
    "lines of a file",
    "circles of imports",
    "lines of a function",
    "parameters of a function",
    "functions of a complexity over 10",
    "attributes of a class",
)

WIDTHS: Final = {"Listed": 12, "Grown": 13, "Idle": 10, "Unlisted": 11, "Small": 3}


def written(folder: Path, **sources: str) -> dict[str, Path]:
    """Modules by name: `a__b` is the module `a.b`; a package is said by `a____init__`."""
    files = {}
    for name, source in sources.items():
        path = folder.joinpath(*name.split("__", 1)).with_suffix(".py") if "__" in name else folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(source), encoding="utf-8")
        files[name.replace("____init__", "").replace("__", ".")] = path
    return files


def function(source: str) -> ast.FunctionDef:
    [found] = ast.parse(dedent(source)).body
    assert isinstance(found, ast.FunctionDef)
    return found


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with nothing in it."""
    monkeypatch.setattr(sizes, "ROOT", tmp_path)
    monkeypatch.setattr(report, "ROOT", tmp_path)
    return tmp_path


def test_what_was_reached_stays() -> None:
    files = sizes.modules()
    figures = {one.name: one for one in (*of_rooms(files), *of_functions(files), of_attributes(files), complexity())}
    assert {name: figures[name].beyond for name in REACHED} == dict.fromkeys(REACHED, ())


def test_parameters_are_counted_without_self() -> None:
    assert sizes.parameters(function("def f(self, a, /, b, *rest, c, **more): ...")) == 3


def test_a_function_is_as_long_as_its_text() -> None:
    assert sizes.length(function('def f():\n    """Say."""\n\n    return 1\n')) == 4


def test_attributes_are_declared_or_set(at: Path) -> None:
    files = written(at, a="class A:\n    x: int\n    def f(self):\n        self.y, self.x = 1, self.z\n")
    assert sizes.attributes(files) == {"a.py:A": 2}


def test_a_class_may_have_as_many_attributes_as_the_record_says(at: Path) -> None:
    classes = "".join(f"class {name}:\n" + "".join(f"    x{i}: int\n" for i in range(n)) for name, n in WIDTHS.items())
    (at / WIDE).parent.mkdir(parents=True)
    (at / WIDE).write_text("| `a.py:Listed` | 12 | so |\n| `a.py:Grown` | 12 | so |\n| `a.py:Idle` | 12 | so |\n")
    beyond = of_attributes(written(at, a=classes)).beyond
    assert beyond == ("a.py:Grown: 13", "a.py:Unlisted: 11", f"{WIDE}: a.py:Idle has 10")


def test_what_is_beyond_a_limit_is_named_with_its_place(at: Path) -> None:
    files = written(at, a="def long():\n" + "    x = 1\n" * 41, b="def f(a, b, c, d, e, f, g, h): ...\n")
    lines, parameters = of_functions(files)
    assert lines == Figure("lines of a function", "42", "40", ("a.py:1 long: 42",))
    assert parameters.beyond == ("b.py:1 f: 8",)


def test_a_circle_is_found_and_one_for_the_type_checker_is_none(at: Path) -> None:
    files = written(
        at,
        p____init__="",
        p__a="from p.b import f\n",
        p__b="def f():\n    from p import a\n",
        p__c="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import d\n",
        p__d="from . import c\n",
    )
    graph = imports(files)
    assert graph == {"p": set(), "p.a": {"p.b"}, "p.b": {"p.a"}, "p.c": set(), "p.d": {"p.c"}}
    assert set(circle(graph)) == {"p.a", "p.b"}


def test_a_chain_of_calls_follows_names_methods_and_annotated_types(at: Path) -> None:
    files = written(
        at,
        p____init__="from p.a import top\n",
        p__a="""
            from p import b
            from p.b import Thing as Other
            def top(): return middle(b.make())
            def middle(thing: Other | None): return thing.act()
        """,
        p__b="""
            class Base:
                def rest(self): return done()
            class Thing(Base):
                held: "Base"
                def act(self): return self.held.rest()
            def make(): return Thing()
            def done(): return 1
        """,
    )
    assert Calls.of(files).longest() == ["p.a.top", "p.a.middle", "p.b.Thing.act", "p.b.Base.rest", "p.b.done"]


def test_functions_that_call_each_other_are_one_station(at: Path) -> None:
    files = written(
        at,
        p____init__="",
        p__a="def a(): b()\ndef b(): c(); a()\ndef c(): d()\ndef d(): c(); e()\ndef e(): pass\n",
    )
    assert Calls.of(files).longest() == ["p.a.a", "p.a.c", "p.a.e"]


@pytest.mark.parametrize("holds", ["api", "reconciler", "webhook"])
def test_complexity_is_asked_of_ruff(at: Path, holds: str) -> None:
    (at / "pyproject.toml").write_text((sources.ROOT / "pyproject.toml").read_text(encoding="utf-8"), encoding="utf-8")
    branches = "".join(f"    if x == {n}:\n        return {n}\n" for n in range(10))
    for folder in ("api", "reconciler", "webhook"):
        (at / folder).mkdir()
    (at / holds / "a.py").write_text(f"def knotty(x):\n{branches}\n\ndef plain(x):\n    return x\n", encoding="utf-8")
    found = complexity()
    assert found.value == "1"
    assert "`knotty`" in found.beyond[0]


def test_the_picture_of_the_rooms_shows_the_imports_as_they_are() -> None:
    held, graph = picture.rooms(sizes.modules())
    assert picture.shown(picture.PICTURE) == (held.keys(), set(graph.edges)), "make picture"


def test_an_arrow_that_others_imply_is_left_out(at: Path) -> None:
    files = written(at, kerf__a="from kerf import b, c\n", kerf__b="import kerf.c\n", kerf__c="")
    assert set(picture.rooms(files)[1].edges) == {("kerf.a", "kerf.b"), ("kerf.b", "kerf.c")}


def test_the_same_imports_make_the_same_picture(tmp_path: Path) -> None:
    picture.draw(tmp_path / "one.svg")
    picture.draw(tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
