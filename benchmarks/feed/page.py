"""The controller's ticks while three people use the page, in a process of its own; and without it, to compare.

Both periods have the same events, one after the other. The page reads the cluster every 60 s as it is deployed.
"""

from __future__ import annotations

import http.client
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.feed.measuring import SETTLE_SECONDS, Load, rates, say, ticks
from benchmarks.feed.people import PEOPLE
from benchmarks.feed.processes import Controller, Server, kubeconfig
from benchmarks.feed.specimens import CLUSTER
from benchmarks.table import Row, milliseconds, quantile
from benchmarks.usage import usage
from tests.cluster.processes import free_ports
from tests.sources import ROOT

#: Seconds between two requests of one person, who goes from view to view.
LOOKING_SECONDS: Final = 5.0
VIEWS: Final = ("/", "/pending", "/next", "/cost")
#: Seconds until the first views of a large cluster are there.
_READY_SECONDS: Final = 300.0


class Page:
    """`kerf ui-server` against the feed; a context manager."""

    def __init__(self, server: Server, folder: Path) -> None:
        (self.port,) = free_ports(1)
        where = ("--kubeconfig", str(kubeconfig(server, folder, "page")), "--bind", f"127.0.0.1:{self.port}")
        with (folder / "page.log").open("wb") as log:
            self._process = subprocess.Popen(
                (sys.executable, "-m", "kerf.cli.main", "ui-server", *where),
                cwd=ROOT,
                env={**os.environ, "CLUSTER_NAME": CLUSTER},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def get(self, path: str, person: str) -> int:
        """The status of an answer; 0 while nothing listens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {person}", "Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            answer.read()
        except OSError:
            return 0
        finally:
            connection.close()
        return answer.status

    def ready(self) -> None:
        """Wait until everybody has seen a view. Raises RuntimeError when time is over."""
        until = time.monotonic() + _READY_SECONDS
        while any(self.get("/", person) != http.client.OK for person in PEOPLE):
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the page shows nothing: see page.log")
            time.sleep(1)

    @property
    def cpu_seconds(self) -> float:
        """Since its start."""
        return usage(self._process.pid).cpu_seconds

    @property
    def peak_bytes(self) -> int:
        """Of its processes together."""
        return sum(usage(self._process.pid).peak_bytes.values())


class Browser(threading.Thread):
    """A person who goes from view to view until `stop`; the seconds and statuses of the answers."""

    def __init__(self, page: Page, person: str) -> None:
        super().__init__(daemon=True)
        self._page, self._person, self._ended = page, person, threading.Event()
        self.took, self.statuses = list[float](), Counter[int]()

    def run(self) -> None:
        for path in itertools.cycle(VIEWS):
            began = time.perf_counter()
            self.statuses[self._page.get(path, self._person)] += 1
            self.took.append(time.perf_counter() - began)
            if self._ended.wait(LOOKING_SECONDS):
                return

    def stop(self) -> None:
        """After the current request."""
        self._ended.set()
        self.join()


def run(load: Load, folder: Path) -> list[Row]:
    """Both periods."""
    say(f"making {load.nodes} nodes and {load.pods} pods …")
    with Server(load.nodes, load.pods) as server, Controller(server, folder) as controller:
        controller.wait(lambda: controller.ready, "everything listed", 300)
        time.sleep(SETTLE_SECONDS)
        say("without the page …")
        alone = _period(controller, server, load)
        with Page(server, folder) as page:
            page.ready()
            say(f"with {len(PEOPLE)} people on the page …")
            browsers = [Browser(page, person) for person in PEOPLE]
            before = page.cpu_seconds
            for browser in browsers:
                browser.start()
            watched = _period(controller, server, load)
            for browser in browsers:
                browser.stop()
            spent = (page.cpu_seconds - before) / load.seconds
            return [*_named("without the page", alone), *_named("with people", watched), *_page(page, browsers, spent)]


def _period(controller: Controller, server: Server, load: Load) -> list[Row]:
    began = time.time()
    server.ask("churn", seconds=load.seconds, **rates(load))
    time.sleep(load.seconds)
    return ticks([turn for turn in controller.turns(began) if turn.ended <= began + load.seconds], load.seconds)


def _named(period: str, rows: list[Row]) -> list[Row]:
    return [replace(row, what=f"{period}: {row.what.strip()}") for row in rows]


def _page(page: Page, browsers: list[Browser], spent: float) -> list[Row]:
    took = [seconds for browser in browsers for seconds in browser.took]
    statuses = sum((browser.statuses for browser in browsers), Counter[int]())
    answers = ", ".join(f"{count} of {status}" for status, count in sorted(statuses.items()))
    return [
        Row("the page: answers by status", answers, "200 only", set(statuses) == {http.client.OK}),
        Row("  p50 / p99", f"{milliseconds(quantile(took, 0.5))} / {milliseconds(quantile(took, 0.99))}"),
        Row("  CPU", f"{spent:.2f} s a second"),
        Row("  peak memory", f"{page.peak_bytes / 2**20:.0f} MiB"),
    ]
