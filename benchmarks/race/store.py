"""Finished runs as files: a second call of the benchmark goes on where the first one stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.race.records import Key, Run
from tests.go_build import fingerprint
from tests.sources import ROOT

FOLDER: Final = ROOT / ".cache" / "race"
KERF, KARPENTER = "kerf", "karpenter"
#: What the outcome depends on, of both sides and of each, as patterns below the root.
_WORLD: Final = (
    *(
        f"benchmarks/race/{name}.py"
        for name in ("days", "loads", "measuring", "pods", "prices", "sides", "sizes", "stage")
    ),
    *("benchmarks/scale_down/load.py", "tests/worlds.py", "tests/cluster/tools/go.mod", "tests/cluster/moto_aws/*.py"),
    *(
        f"tests/cluster/{name}"
        for name in ("bootstrapper.py", "components.py", "node_object.py", "kubelet_stages.yaml")
    ),
)
_OF_SIDE: Final = {
    KERF: ("reconciler/**/*.py", "api/**/*.py", "api/**/*.yaml", "charts/kerf/templates/*", "charts/kerf/values.yaml"),
    KARPENTER: ("benchmarks/peers/karpenter_aws/go.*", "benchmarks/peers/aws.py", "benchmarks/peers/controller.py"),
}


def code(side: str, root: Path = ROOT) -> str:
    """A hash of the sources that a side's outcome depends on: the other side's may change."""
    return fingerprint(sorted(_sources(side, root)))


def _sources(side: str, root: Path) -> Iterator[Path]:
    for pattern in (*_WORLD, *_OF_SIDE[side]):
        yield from (path for path in root.glob(pattern) if path.is_file())


class Store:
    """The runs in a folder, one JSON file each."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder

    def read(self, key: Key) -> Run | None:
        """The run, if it has been finished."""
        path = self._path(key)
        return msgspec.json.decode(path.read_bytes(), type=Run) if path.exists() else None

    def write(self, run: Run) -> None:
        """Keep a run, whole or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        part = self._path(run.key).with_suffix(".part")
        part.write_bytes(msgspec.json.encode(run))
        part.rename(self._path(run.key))

    def forget(self, key: Key) -> None:
        """Drop a run, so that it is made again."""
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: Key) -> Path:
        return self._folder / f"{key.name}.json"
