"""Every fault of `faults.py`, made on the real control plane: the tools of an operator name its cause in time.

`make faults` goes on where an earlier run has stopped: it keeps what is in `build/faults`.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from . import fault_records
from .control_plane import ControlPlane
from .fault_records import EVERY, TOOLS, Record, Seen
from .faults import FAULTS, WORKLOADS, Fault, Faulty

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1500)]
#: The folder that a run writes to, and whose faults it leaves out; empty: a run keeps nothing.
KEPT: Final = os.environ.get("KERF_FAULTS", "")
LEAST_SECONDS: Final = 5 * EVERY
#: With `kerf status`; an alert names each fault, too.
LEAST_TOOLS: Final = 2
#: Metrics are as of the last reconcile, so they are later than `kerf status`.
SCRAPES_AFTER: Final = 3
_TROUBLES: Final = re.compile(r"^kerf_troubles\{.*\} [1-9]", re.MULTILINE)


@pytest.fixture(scope="module")
def kerf(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    """By itself, for it is asked whether anything is wrong."""
    folder = tmp_path_factory.mktemp("faults")
    with Faulty(own_control_plane, folder, proxied=True, kept_running=True) as installation:
        installation.admit()
        installation.kubectl("apply", "-f", str(WORKLOADS))
        yield installation


def status(kerf: Faulty) -> str:
    return kerf.tried("status", "--url", f"http://127.0.0.1:{kerf.debug_port}")


def at_rest(kerf: Faulty) -> None:
    kerf.kubectl("scale", "deployment/web", "--replicas=4")
    kerf.wait(lambda: len(kerf.running()) == 4, 300, "four pods run")
    kerf.wait(lambda: status(kerf).startswith("all is well"), 400, "all is well")
    kerf.wait(lambda: not _TROUBLES.search(kerf.metrics()), 120, "the metrics count no trouble")


def texts(kerf: Faulty, fault: Fault) -> dict[str, Callable[[], str]]:
    """What each tool says now."""
    return {
        "status": lambda: status(kerf),
        "why": lambda: kerf.tried("why", *fault.why(kerf), "--cluster-name", "kerf-e2e"),
        "preflight": lambda: preflight(kerf),
        "condition": lambda: conditions(kerf),
        "event": lambda: events(kerf),
    }


def preflight(kerf: Faulty) -> str:
    """Each finding that is not right in one line, with its fix."""
    lines = kerf.tried("preflight").replace("\n          ", "; ").splitlines()
    return "\n".join(line for line in lines if line.startswith(("  WRONG", "  ?")))


def conditions(kerf: Faulty) -> str:
    rows: list[str] = []
    for kind in ("nodepools", "ec2nodeclasses", "nodeclaims"):
        for one in kerf.get(kind):
            rows += [f"{c['type']} is {c['status']}: {c['reason']}: {c['message']}" for c in _of(one)]
    return "\n".join(rows)


def _of(one: Mapping[str, object]) -> list[dict[str, str]]:
    status = one.get("status")
    found: list[dict[str, str]] = status.get("conditions", []) if isinstance(status, dict) else []
    return [c for c in found if c["status"] != "True"]


def events(kerf: Faulty) -> str:
    found = kerf.get("events", namespace="")
    return "\n".join(f"{one['reason']}: {' '.join(one['message'].split())}" for one in found)


class Watching:
    """The tools and the metrics, asked again and again while a fault lasts."""

    def __init__(self, kerf: Faulty, fault: Fault) -> None:
        self._kerf, self._fault, self._texts = kerf, fault, texts(kerf, fault)
        #: Lines of before the fault, which name no cause.
        self._calm = {tool: set(self._told(tool)) for tool in ("condition", "event")}
        self.seen: dict[str, Seen] = {}
        self.calm, self.during = self._series(), list[dict[str, float]]()

    def run(self) -> None:
        """Until enough tools name the cause and enough is recorded, or the fault's time is over."""
        stop, began = threading.Event(), time.monotonic()
        scraper = threading.Thread(target=self._scrape, args=(stop,), name="scraper", daemon=True)
        scraper.start()
        while (passed := time.monotonic() - began) < self._fault.seconds:
            if self.enough and passed >= LEAST_SECONDS:
                break
            for tool in TOOLS:
                self._kerf.keep_running()
                if tool not in self.seen:
                    self._ask(tool, began)
        time.sleep(SCRAPES_AFTER * EVERY)
        stop.set()
        scraper.join()

    def _scrape(self, stop: threading.Event) -> None:
        due = time.monotonic()
        while not stop.wait(max(due - time.monotonic(), 0)):
            self.during.append(self._series())
            due += EVERY

    @property
    def enough(self) -> bool:
        """Whether `kerf status` and enough others name the cause."""
        return "status" in self.seen and len(self.seen) >= LEAST_TOOLS

    def _series(self) -> dict[str, float]:
        kerf = self._kerf
        texts = {"kerf": kerf.metrics(), "kerf-webhook": kerf.webhook_metrics()}
        return fault_records.series(texts, time.time())

    def _ask(self, tool: str, began: float) -> None:
        new = (line for line in self._told(tool) if line not in self._calm.get(tool, ()))
        line = next((line for line in new if re.search(self._fault.cause, line)), None)
        if line is not None:
            self.seen[tool] = Seen(round(time.monotonic() - began), fault_records.shown(line))

    def _told(self, tool: str) -> list[str]:
        return self._texts[tool]().splitlines()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.slug))
def test_the_tools_name_the_cause(kerf: Faulty, fault: Fault) -> None:
    kept = Path(KEPT) / f"{fault.slug}.json"
    if KEPT and kept.exists():
        return
    at_rest(kerf)
    watching = Watching(kerf, fault)
    with fault.made(kerf):
        watching.run()
    print(f"\n{fault.name}: " + ", ".join(f"{tool} {one.seconds} s" for tool, one in watching.seen.items()))
    both = fault_records.recorded(watching.calm, watching.during)
    found = Record(fault.name, fault.alerts, watching.seen, both["calm"], both["during"])
    if KEPT:
        fault_records.write(found, Path(KEPT if watching.enough else f"{KEPT}-failed"))
    assert "status" in found.seen, status(kerf)
    assert len(found.seen) >= LEAST_TOOLS, found.seen
