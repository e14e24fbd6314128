"""Scale 1,500 pods to 600 on a real control plane, under Kerf and under Karpenter's controller with its KWOK provider.

    python -m benchmarks.scale_down                   # both, one after the other; writes docs/performance.md
    python -m benchmarks.scale_down kerf --seed 2     # one of them, printed; its log is kept with --logs FOLDER

Each side has a control plane of its own, fresh. Twenty Deployments are applied at once, and when all pods run and
nothing has changed for a minute, all are scaled down at once. From then on nodes, claims and pods are followed until
nothing has changed for 90 seconds, or for ten minutes. Cost is by the price list that both sides reckon with.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.document import rewrite
from benchmarks.growth import DOCUMENT, machine
from benchmarks.peers.karpenter import PeerUnavailable
from benchmarks.scale_down import controllers
from benchmarks.scale_down.controllers import Running
from benchmarks.scale_down.journal import AuditLog, Journal, Moment
from benchmarks.scale_down.load import DEPLOYMENTS, LEFT, PODS, Json, Measure, catalogue, deployments
from benchmarks.table import Row, aligned, conclude, markdown
from kerf.kube.client import KubeClient
from kerf.model import kinds
from kerf.model.kubernetes.objects import Pod
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fleet import is_true
from tests.cluster.processes import wait_until

Side = Callable[[ControlPlane, Path, Sequence[Json]], AbstractContextManager[Running]]
OURS, PEER = "Kerf", "Karpenter"
SIDES: Final[dict[str, Side]] = {OURS: controllers.kerf, PEER: controllers.karpenter}
RUNNING_SECONDS: Final = 300.0
REST_SECONDS, QUIET_SECONDS, MOST_SECONDS = 60.0, 90.0, 600.0
#: To reach.
RATIO, SECONDS, EVICTIONS = 1.05, 120.0, 350


@dataclass(frozen=True, slots=True)
class Figures:
    """What came of one side. `before` is how it stood when all pods ran; ratios are of the cost by the bound."""

    before: Moment
    ratio_before: float
    bound: float
    moments: tuple[Moment, ...]
    #: Empty when changes came to an end and all pods ran then; else what was amiss.
    unrest: str

    @property
    def last(self) -> Moment:
        return self.moments[-1]

    def ratio(self, moment: Moment) -> float:
        return moment.cost / self.bound

    @property
    def near_after(self) -> float | None:
        """Seconds until the cost was near the bound for good; None when it never was."""
        dear = [one for one in self.moments if self.ratio(one) > RATIO]
        later = [one.seconds for one in self.moments if not dear or one.seconds > dear[-1].seconds]
        return later[0] if later else None


# --- measuring ----------------------------------------------------------------------------------------------------
def measure(side: Side, folder: Path, seed: int) -> Figures:
    """Scale up, rest, scale down, and follow. Raises PeerUnavailable."""
    rows, audit = catalogue(), folder / "audit.log"
    measure_, manifest = Measure(rows), deployments(seed)
    with ExitStack() as stack:
        cluster = stack.enter_context(ControlPlane(audit_log=audit))
        running = stack.enter_context(side(cluster, folder, rows))
        kube = KubeClient.from_kubeconfig(cluster.kubeconfig)
        journal = Journal(kube, AuditLog(audit), running.pid, measure_.cost)
        cluster.kubectl("apply", "-f", "-", input=manifest)
        wait_until(lambda: ready(kube) == PODS, lambda: f"{ready(kube)} of {PODS} pods run", RUNNING_SECONDS)
        before = journal.until_quiet(REST_SECONDS, MOST_SECONDS)[-1]
        for surprise in measure_.surprises(journal.nodes()):
            print(f"not as sold: {surprise}", file=sys.stderr)
        ratio = before.cost / measure_.bound(pods(kube))
        say(f"at rest: {before.nodes} nodes, {ratio:.3f} of the bound")
        scale = partial(cluster.kubectl, "scale", "deployment", "--all", f"--replicas={LEFT // DEPLOYMENTS}")
        began = time.time()
        moments = journal.until_quiet(QUIET_SECONDS, MOST_SECONDS, begin=scale)
        unrest = "" if time.time() - began - moments[-1].seconds >= QUIET_SECONDS else f"not within {MOST_SECONDS:.0f}"
        if (run := ready(kube)) != LEFT:
            unrest = f"{run} of {LEFT} pods run"
            say(f"{unrest}, as their Deployments say. Without its condition Ready: {', '.join(idle(kube)) or 'none'}")
        return Figures(before, ratio, measure_.bound(pods(kube)), tuple(moments), unrest)


def ready(kube: KubeClient) -> int:
    """How many pods of the Deployments are ready."""
    found: list[dict[str, Any]] = kube.request("GET", "/apis/apps/v1/namespaces/default/deployments")["items"]
    return sum(one["status"].get("readyReplicas", 0) for one in found)


def pods(kube: KubeClient) -> list[Pod]:
    """Those that stay."""
    found = kube.list(kinds.POD, namespace="default").items
    return [pod for pod in found if pod.metadata.deletion_timestamp is None]


def idle(kube: KubeClient) -> list[str]:
    """Pods that do not run, where they are bound to, and their status."""
    found: list[Json] = kube.request("GET", "/api/v1/namespaces/default/pods")["items"]
    told = [
        (pod["metadata"]["name"], pod["spec"].get("nodeName", "unbound"), json.dumps(pod["status"]))
        for pod in found
        if not is_true(pod, "Ready")
    ]
    return [" ".join(one) for one in told]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- figures --------------------------------------------------------------------------------------------------------
HEAD: Final = (
    "by",
    "nodes before",
    "ratio before",
    "last change, s",
    f"≤ {RATIO} after, s",
    "nodes",
    "$/h",
    "LP bound",
    "ratio",
    "evictions",
    "launches",
    "CPU s",
    "peak MiB",
)


def cells(by: str, one: Figures) -> tuple[str, ...]:
    last = one.last
    return (
        by,
        f"{one.before.nodes}",
        f"{one.ratio_before:.3f}",
        one.unrest or f"{last.seconds:.0f}",
        "-" if one.near_after is None else f"{one.near_after:.0f}",
        f"{last.nodes}",
        f"{last.cost / 1e6:.3f}",
        f"{one.bound / 1e6:.3f}",
        f"{one.ratio(last):.3f}",
        f"{last.evicted}",
        f"{last.launched}",
        f"{last.cpu_seconds:.1f}",
        f"{last.peak_bytes / 2**20:.0f}",
    )


def timeline(one: Figures) -> Iterator[tuple[str, ...]]:
    """A line for each moment at which nodes, claims or evictions were others than before."""
    yield ("second", "nodes", "claims", "launched", "ratio", "evicted", "pods created", "CPU s")
    before: tuple[int, ...] = ()
    for moment in one.moments:
        now = moment.nodes, moment.claims, moment.launched, moment.evicted
        if now != before:
            told = f"{one.ratio(moment):.3f}", f"{moment.evicted}", f"{moment.moved}", f"{moment.cpu_seconds:.1f}"
            yield (f"{moment.seconds:.0f}", f"{moment.nodes}", f"{moment.claims}", f"{moment.launched}", *told)
        before = now


def targets(one: Figures) -> list[Row]:
    """What ours is to reach."""
    what, last = f"scale-down of {PODS:,} pods to {LEFT}", one.last
    return [
        Row(
            f"{what}, last change",
            one.unrest or f"{last.seconds:.0f} s",
            f"≤ {SECONDS:.0f} s",
            not one.unrest and last.seconds <= SECONDS,
        ),
        Row(f"{what}, cost by the bound", f"{one.ratio(last):.3f}", f"≤ {RATIO}", one.ratio(last) <= RATIO),
        Row(f"{what}, evictions", f"{last.evicted}", f"≤ {EVICTIONS}", last.evicted <= EVICTIONS),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; both sides are written into the document. 1 when ours misses what it is to reach."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale_down", description="Most pods of a cluster go.")
    parser.add_argument("side", nargs="?", choices=[name.lower() for name in SIDES], help="only this one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--logs", type=Path, help="keep what the controllers wrote, and the audit logs")
    chosen = parser.parse_args(arguments)
    found: dict[str, Figures] = {}
    for name, side in SIDES.items():
        if chosen.side in (None, name.lower()):
            say(f"{name} …")
            try:
                found[name] = _measured(name, side, chosen.logs, chosen.seed)
            except PeerUnavailable as missing:
                say(str(missing))
    lines = [HEAD, *(cells(by, one) for by, one in found.items())]
    print(aligned(lines), end="\n\n")
    if chosen.side is None and len(found) == len(SIDES):
        rewrite(DOCUMENT, {"scale-down": f"{machine()}\n\n{markdown(lines)}"})
    return conclude(targets(found[OURS])) if OURS in found else 0


def _measured(name: str, side: Side, logs: Path | None, seed: int) -> Figures:
    with TemporaryDirectory() as temporary:
        folder = (logs or Path(temporary)) / name.lower()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "audit.log").unlink(missing_ok=True)
        figures = measure(side, folder, seed)
    print(aligned(list(timeline(figures))), end="\n\n", flush=True)
    return figures


if __name__ == "__main__":
    sys.exit(main())
