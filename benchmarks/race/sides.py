"""The two sides: a controller on a fresh control plane, with its AWS and the machines that boot there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.peers.aws import aws_controller
from benchmarks.race.store import KARPENTER, KERF
from benchmarks.scale_down.load import VM_MEMORY_OVERHEAD
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import Installation
from tests.cluster.moto_aws import MotoAws

#: How long machines boot, by the name of it: the least, and by how much the others may take longer, in seconds.
BOOTS: Final[dict[str, tuple[float, float]]] = {
    "short": (1.0, 0.0),
    "long": (30.0, 30.0),
}


@dataclass(frozen=True, slots=True)
class Running:
    """A controller at work; `pid` is its process's."""

    aws: MotoAws
    pid: Callable[[], int]


Side = Callable[[ControlPlane, Path, Sequence[str], str], AbstractContextManager[Running]]


@contextmanager
def kerf(cluster: ControlPlane, folder: Path, families: Sequence[str], boots: str) -> Iterator[Running]:
    """Ours, installed by its charts."""
    values = {"settings.vmMemoryOverheadPercent": f"{VM_MEMORY_OVERHEAD:g}"}
    least, more = BOOTS[boots]
    sold = tuple(families)
    installed = Installation(cluster, folder, families=sold, values=values, boot_seconds=least, uneven_seconds=more)
    with installed:
        yield Running(installed.aws, installed.pid)


@contextmanager
def karpenter(cluster: ControlPlane, folder: Path, families: Sequence[str], boots: str) -> Iterator[Running]:
    """Karpenter's, for AWS. Raises PeerUnavailable when it cannot be built here."""
    settings = {"VM_MEMORY_OVERHEAD_PERCENT": f"{VM_MEMORY_OVERHEAD:g}"}
    with aws_controller(cluster, folder, families, BOOTS[boots], settings) as found:
        yield Running(found.aws, lambda: found.controller.pid)


SIDES: Final[dict[str, Side]] = {KERF: kerf, KARPENTER: karpenter}
