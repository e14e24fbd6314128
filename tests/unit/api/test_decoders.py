"""Types that several threads decode at once for the first time."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.sources import FOLDERS, ROOT, python_path

#: Where a type is worked out otherwise than by `decoder_of`, and why no two threads do that at once.
ALONE = {
    "api/kerf_api/decoders.py": "under the lock",
    "api/kerf_api/v1/meta.py": "after decoder_of",
    "api/kerf_api/lint/rulebook/__init__.py": "of one thread: the command line reads the book",
    "reconciler/kerf/kube/salvage.py": "parts of kinds whose decoders are made",
    "reconciler/kerf/simulating/reading.py": "after decoder_of",
    "reconciler/kerf/snapshots/plain.py": "after decoder_of",
    "reconciler/kerf/runtime/proposer.py": "of one thread: the worker process begins so",
}

#: In a process of its own, for what goes wrong here ends it: many new types, each first decoded by four threads.
FIRST = """
import sys, threading, types
from kerf_api.v1.meta import decode
from kerf.model.annotations import read
sys.setswitchinterval(1e-6)
fields = "\\n".join(f"    f{n}: 'Inner | None' = None" for n in range(30))
for number in range(100):
    module = types.ModuleType(f"made{number}")
    sys.modules[module.__name__] = module
    exec(
        "import msgspec\\nclass Inner(msgspec.Struct):\\n    b: 'dict[str, list[str]]' = {}\\n"
        "class Outer(msgspec.Struct):\\n" + fields,
        vars(module),
    )
    barrier = threading.Barrier(4)

    def first(turn):
        barrier.wait()
        if HOW == "convert":
            assert decode(module.Outer, {"f0": {"b": {"x": ["y"]}}}).f0.b == {"x": ["y"]}
        else:
            assert read({"a": '{"f0": {"b": {"x": ["y"]}}}'}, "a", module.Outer).f0.b == {"x": ["y"]}

    threads = [threading.Thread(target=first, args=(turn,)) for turn in range(4)]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
print("whole")
"""


@pytest.mark.parametrize("how", ["convert", "decode"])
def test_threads_that_decode_a_type_first_do_not_end_the_process(how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"HOW = {how!r}\n{FIRST}"],
        cwd=ROOT,
        env={"PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "whole\n", "")


def test_no_type_is_worked_out_beside_the_lock() -> None:
    """What an import does is done by one thread: decoders of modules are made there."""
    files = [path for folder in FOLDERS.values() for path in (ROOT / folder).rglob("*.py")]
    found = {str(path.relative_to(ROOT)) for path in files if any(_first_uses(ast.parse(path.read_text("utf-8"))))}
    assert found == ALONE.keys()


def _first_uses(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls in functions that may work out a type: of a decoder's class, of `convert`, of `decode` with a type."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.Lambda):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                    of, typed = ast.unparse(call.func), any(keyword.arg == "type" for keyword in call.keywords)
                    if of.startswith("msgspec.") and (call.func.attr in ("convert", "Decoder") or typed):
                        yield call


@pytest.mark.parametrize(
    ("source", "first"),
    [
        ("def f(x): return msgspec.json.decode(x, type=A)", True),
        ("def f(x): return msgspec.convert(x, A)", True),
        ("f = lambda: msgspec.msgpack.Decoder(A)", True),
        ("known = msgspec.json.Decoder(A)", False),
        ("def f(x): return msgspec.json.decode(x)", False),
        ("def f(x): return decoder_of(A).decode(x)", False),
    ],
)
def test_a_type_that_is_worked_out_elsewhere_is_found(source: str, *, first: bool) -> None:
    assert any(_first_uses(ast.parse(source))) is first
