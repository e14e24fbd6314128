"""Types that several threads decode at once for the first time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.sources import ROOT, python_path

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
