"""A controller in a sandbox whose decisions are recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from kerf.decide import decide
from kerf.records.encoding import Encoder
from kerf.records.reading import Part, Step
from kerf.records.replaying import Outcome, Replay
from kerf.runtime.controller import Controller
from kerf.runtime.parts import Parts
from kerf.runtime.recording.recorder import Recorder
from kerf.runtime.recording.ring import Ring, parts
from kerf.sandbox.world import World
from kerf.snapshots import files
from tests.unit.snapshots.worlds import SETTINGS
from tests.worlds import deployment, node_class, node_pool

MIB = 1024 * 1024
MANY = 10**6
#: Seconds after an error of the disk.
PAUSE = 0.2
Manifest = Mapping[str, Any]


@dataclass
class Life:
    """A world, its controller and the recorder of its decisions in a folder; `errors` are those of the recorder."""

    folder: Path
    bytes: int = 64 * MIB
    hours: float = 24
    manifests: tuple[Manifest, ...] = (
        node_class(),
        node_pool("general", {"disruption": {"consolidateAfter": "0s"}}),
        deployment("web", {"replicas": 3}),
    )
    errors: list[Exception] = field(default_factory=list)
    rings: type[Ring] = Ring

    def __post_init__(self) -> None:
        self.world = World(seed=5)
        self.ring = self.rings(self.folder, self.bytes, timedelta(hours=self.hours))
        encoder = Encoder(b"key", {"kerf": "1"}, "run")
        self.recorder = Recorder(self.ring, encoder, self.errors.append, capacity=MANY, pause=PAUSE)
        deciding = self.recorder.deciding(decide, lambda: self.controller.state.catalogues.region)
        self.controller = Controller(self.world.ports, Parts(decide=deciding), settings=SETTINGS, inline=True)
        for manifest in self.manifests:
            self.world.apply(manifest)

    def live(self, minutes: float) -> None:
        """Let the world run, and write all decisions down."""
        self.world.run(self.controller, timedelta(minutes=minutes))
        self.recorder.wait()

    def busy(self) -> None:
        """Nodes come, an edited class makes one drift, and pods go."""
        self.live(3)
        self.world.scale("default", "web", 12)
        self.live(3)
        self.world.scale("default", "web", 2)
        self.live(6)


def read(folder: Path, each: Callable[[Step], None] = lambda step: None) -> list[Step]:
    """All decisions of a record; `each` is called while the snapshot of its decision is at hand."""
    found = []
    for path in parts(folder):
        for step in Part().steps(files.lines(path.read_bytes(), lambda: None)):
            each(step)
            found.append(step)
    return found


def replayed(folder: Path) -> Iterator[Outcome]:
    """All decisions of a record, made again."""
    for path in parts(folder):
        replay = Replay()
        for step in Part().steps(files.lines(path.read_bytes(), lambda: None)):
            yield replay.again(step)
