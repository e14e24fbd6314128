"""What a Prometheus would have seen of a running Kerf: its metrics every second, as files with their times.

    with Scraper(targets, folder) as scraper:
        ...
    scraper.scrapes

A target that does not answer is left out of that round.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .prometheus_programs import Scrape

EVERY_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to ask: the labels that Prometheus would add, and what gives the text (empty: nobody answers).

    Of rounds it takes part in the first, in one of `one_in`, and in the last.
    """

    labels: Mapping[str, str]
    text: Callable[[], str]
    one_in: int = 1


class Scraper:
    """A context manager: it scrapes in a thread of its own while the block runs, and once more at its end."""

    def __init__(self, targets: list[Target], folder: Path) -> None:
        self._targets, self._folder = targets, folder
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scraper", daemon=True)
        self.scrapes: list[Scrape] = []

    def __enter__(self) -> Scraper:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._round(0)

    def _run(self) -> None:
        for count in itertools.count():
            self._round(count)
            if self._stop.wait(EVERY_SECONDS):
                return

    def _round(self, count: int) -> None:
        millis = int(time.time() * 1000)
        for number, target in enumerate(self._targets):
            text = target.text() if count % target.one_in == 0 else ""
            if text:
                path = self._folder / f"{millis}-{number}.txt"
                path.write_text(text, encoding="utf-8")
                self.scrapes.append(Scrape(path, millis, target.labels))
