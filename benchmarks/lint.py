"""The linter: one manifest after the other in a warm process, and a folder of 500 files from cold."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Final

from ruamel.yaml import YAML

from api import lint
from benchmarks.nodepools import nodepool
from benchmarks.table import Row, milliseconds, quantile

_MANIFESTS: Final = 200
_FILES: Final = 500
_ROOT: Final = Path(__file__).resolve().parents[1]


def single() -> list[float]:
    """CPU seconds of `validate` for each of many different NodePools of 30 requirements, warm."""
    lint.prepare()
    seconds = []
    for number in range(_MANIFESTS):
        manifest = nodepool(number)
        began = process_time()
        problems = lint.validate(manifest)
        seconds.append(process_time() - began)
        if any(problem.severity == "error" for problem in problems):
            raise ValueError(f"the benchmark's own manifest is wrong: {problems[0]}")
    return seconds


def folder() -> dict[str, float]:
    """A new process reads and validates 500 YAML files: seconds in all, and CPU seconds of reading and validating."""
    with tempfile.TemporaryDirectory() as name:
        for number in range(_FILES):
            with (Path(name) / f"pool-{number}.yaml").open("w") as file:
                YAML().dump(nodepool(number), file)
        began = perf_counter()
        command = [sys.executable, "-m", "benchmarks.lint", name]
        done = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True)
        seconds = perf_counter() - began
    found: dict[str, float] = json.loads(done.stdout)
    if (found["files"], found["errors"]) != (_FILES, 0):
        raise ValueError(f"unexpected: {found}")
    return {**found, "seconds": seconds}


def rows() -> list[Row]:
    """What `python -m benchmarks` shows."""
    seconds, files = single(), folder()
    return [
        Row("validate a NodePool of 30 requirements, CPU, median", milliseconds(quantile(seconds, 0.5))),
        Row("  99th percentile", milliseconds(quantile(seconds, 0.99))),
        Row(f"read and validate {_FILES} such files, new process", f"{files['seconds']:.2f} s"),
        Row("  CPU of reading YAML / of validating", f"{files['reading']:.2f} s / {files['validating']:.2f} s"),
    ]


def main(path: Path) -> int:
    """Read and validate every file of a folder; print numbers and CPU seconds as JSON."""
    yaml = YAML(typ="safe")
    began = process_time()
    manifests = [yaml.load(file) for file in sorted(path.glob("*.yaml"))]
    read = process_time()
    problems = [problem for manifest in manifests for problem in lint.validate(manifest)]
    found = {"files": len(manifests), "errors": sum(problem.severity == "error" for problem in problems)}
    print(json.dumps({**found, "reading": read - began, "validating": process_time() - read}))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
